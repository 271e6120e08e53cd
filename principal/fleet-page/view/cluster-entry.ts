import { type ClusterFacts, clusterStates, unhealthyOf } from '../model/cluster-facts.ts';
import type { FleetCluster } from '../model/fleet-model.ts';
import { abridged, type HtmlPart, html, type SafeHtml } from './html.ts';
import { counted, glyph, moment, numeral, silentGlyph, stateWords } from './words.ts';

/** How an entry of the fleet is shown. */
export type EntryView = 'map' | 'table';

const longestTitle = 120;
const longestReason = 300;

/** A cluster in the map or in the table. Made once for each change, for all viewers. */
export function clusterEntry({ facts, rendered }: FleetCluster, view: EntryView): string {
  const known = rendered.get(view);
  if (known !== undefined) {
    return known;
  }
  const made = (view === 'map' ? tile(facts) : row(facts)).text;
  rendered.set(view, made);
  return made;
}

/** The address of a cluster's page, below the first one. */
export function clusterPath(agent: string): string {
  return `clusters/${encodeURIComponent(agent)}`;
}

function data(facts: ClusterFacts): SafeHtml {
  const { agent, title, state, mode, version, pending, applications, why } = facts;
  return html`data-agent="${agent}" data-state="${state}" data-mode="${mode}" data-version="${version}" data-title="${title}" data-why="${why}" data-rank="${clusterStates.indexOf(state)}" data-lag="${pending}" data-unhealthy="${unhealthyOf(applications)}" data-applications="${applications.total}"`;
}

function tile(facts: ClusterFacts): SafeHtml {
  const { agent, title, state, mode, version, applications, pending, why } = facts;
  const hint = state === 'ready' ? title : `${title}: ${why}`;
  return html`<li class="tile" ${data(facts)}><a href="${clusterPath(agent)}" title="${abridged(hint, longestReason)}">${glyph(state)}<bdi class="name">${nameOf(title)}</bdi>
<span class="note">${state === 'ready' ? 'Ready' : abridged(why, longestReason)}</span>
<span class="bits"><span>${mode === '' ? 'mode unknown' : abridged(mode, 20)}</span><span>${counted(applications.total, 'Application')}</span>${pending > 0 && html`<span>${numeral(pending)} on the way</span>`}<span class="ver">${version === '' ? 'version unknown' : abridged(version, 24)}</span></span></a></li>`;
}

/** Names of a fleet often begin alike: where there is little room, their ends stay. */
function nameOf(title: string): HtmlPart {
  const text = abridged(title, longestTitle);
  return text.length > 10 && /^[\w.-]+$/.test(text)
    ? html`<span class="start">${text.slice(0, -8)}</span><span class="end">${text.slice(-8)}</span>`
    : html`<span class="start">${text}</span>`;
}

function row(facts: ClusterFacts): SafeHtml {
  const { agent, title, state, mode, version, applications, pending, why, connectedSince, lastSeen, certificate } =
    facts;
  const unhealthy = unhealthyOf(applications);
  return html`<tr ${data(facts)}><th scope="row"><a href="${clusterPath(agent)}"><bdi>${abridged(title, longestTitle)}</bdi></a></th>
<td class="state"><span class="tag tag-${state}">${silentGlyph(state)}${stateWords[state]}</span></td>
<td class="why"><bdi>${abridged(why, longestReason)}</bdi></td>
<td>${mode === '' ? '–' : abridged(mode, 20)}</td>
<td class="mono"><bdi>${version === '' ? '–' : abridged(version, 24)}</bdi></td>
<td>${connectedSince !== undefined ? moment(connectedSince) : lastSeen !== undefined ? html`last ${moment(lastSeen)}` : '–'}</td>
<td class="num">${numeral(pending)}</td>
<td class="num">${numeral(applications.total)}</td>
<td class="num${unhealthy > 0 && ' bad'}">${numeral(unhealthy)}</td>
<td>${certificate === undefined ? '–' : moment(certificate.ends)}</td></tr>`;
}
