import { type FleetCondition, healthNames, syncNames } from '../model/cluster-facts.ts';
import type { FleetCluster } from '../model/fleet-model.ts';
import { shareBar, timeline } from './charts.ts';
import { abridged, type HtmlPart, html, SafeHtml } from './html.ts';
import { counted, moment, numeral, silentGlyph, stateWords } from './words.ts';

/** An Application as a cluster's page lists it. */
export interface ListedApplication {
  readonly namespace: string;
  readonly name: string;
  readonly project: string;
  readonly health: string;
  readonly sync: string;
  /** What its health, its last operation or its conditions say; empty when they say nothing. */
  readonly message: string;
}

/** The Applications that a viewer may see of a cluster. */
export interface ListedApplications {
  readonly shown: readonly ListedApplication[];
  /** How many more there are that the viewer may see. */
  readonly more: number;
  /** How many the viewer may not see. */
  readonly withheld: number;
}

/** The parts of a cluster's page, by the names under which changes of them are sent. */
export function clusterRegions(cluster: FleetCluster, list: ListedApplications): Record<string, string> {
  return {
    head: head(cluster).text,
    conditions: conditions(cluster).text,
    facts: facts(cluster).text,
    applications: applications(cluster, list).text,
    history: lag(cluster).text,
  };
}

/** The content of a cluster's page. */
export function clusterPage(cluster: FleetCluster, list: ListedApplications): SafeHtml {
  const regions = clusterRegions(cluster, list);
  const region = (name: string) => new SafeHtml(regions[name] ?? '');
  return html`<nav aria-label="Breadcrumb" class="crumbs"><a href="../">Fleet</a></nav>
<div class="cluster-head" data-region="head">${region('head')}</div>
<div class="cluster">
<section class="panel wide" aria-labelledby="conditions-title" data-region="conditions">${region('conditions')}</section>
<section class="panel" aria-labelledby="facts-title" data-region="facts">${region('facts')}</section>
<section class="panel" aria-labelledby="history-title" data-region="history">${region('history')}</section>
<section class="panel wide" aria-labelledby="applications-title" data-region="applications">${region('applications')}</section>
</div>`;
}

function head({ facts: { title, agent, state, why } }: FleetCluster): SafeHtml {
  return html`<h1><bdi>${abridged(title, 200)}</bdi></h1><p class="verdict"><span class="tag tag-${state}">${silentGlyph(state)}${stateWords[state]}</span>${title !== agent && html` <span class="agent">agent <bdi class="mono">${agent}</bdi></span>`}</p>
${why !== '' && html`<p class="sub"><bdi>${abridged(why, 2_000)}</bdi></p>`}`;
}

function conditions({ facts: { conditions: all } }: FleetCluster): SafeHtml {
  const word = ({ ok, isMinor }: FleetCondition) =>
    ok === undefined ? 'waiting' : ok ? 'ready' : isMinor === true ? 'attention' : 'lost';
  return html`<h2 id="conditions-title">Conditions</h2><div class="table-frame" tabindex="0" role="region" aria-label="Table of conditions"><table class="conditions stacked"><thead><tr><th scope="col">Condition</th><th scope="col">Holds</th><th scope="col">Reason</th><th scope="col">Message</th></tr></thead><tbody>${all.map(
    (each) =>
      html`<tr><th scope="row">${each.type}</th><td><span class="tag tag-${word(each)}">${silentGlyph(word(each))}${each.ok === undefined ? 'Unknown' : each.ok ? 'True' : 'False'}</span></td><td>${each.reason}</td><td class="why"><bdi>${abridged(each.message, 2_000)}</bdi></td></tr>`,
  )}</tbody></table></div>`;
}

function facts({ facts: it }: FleetCluster): SafeHtml {
  const { agent, mode, version, connectedSince, lastSeen, pending, certificate, refused } = it;
  const rows: (readonly [string, HtmlPart])[] = [
    ['Agent', html`<bdi class="mono">${agent}</bdi>`],
    ['Mode', mode === '' ? 'not known yet' : mode],
    ['Version', version === '' ? 'not known yet' : html`<bdi class="mono">${abridged(version, 128)}</bdi>`],
    ['Connected since', connectedSince === undefined ? 'not connected' : moment(connectedSince)],
    ...(lastSeen === undefined ? [] : ([['Last seen', moment(lastSeen)]] as const)),
    ...(refused === undefined ? [] : ([['Refused', moment(refused.at)]] as const)),
    ['Out of step', counted(pending, 'resource')],
    ['Certificate ends', certificate === undefined ? 'not seen yet' : moment(certificate.ends)],
  ];
  return html`<h2 id="facts-title">Agent</h2><dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function lag({ lag: figures }: FleetCluster): SafeHtml {
  return html`<h2 id="history-title">Last hour</h2>${timeline({ name: 'Out of step', unit: 'resources', values: figures.values, kind: 'lag' })}`;
}

function applications({ facts: { applications: counts } }: FleetCluster, list: ListedApplications): SafeHtml {
  const kinds: Readonly<Record<string, string>> = {
    Degraded: 'lost',
    Missing: 'attention',
    Progressing: 'other',
    Suspended: 'pale',
    Healthy: 'ready',
    OutOfSync: 'attention',
    Synced: 'ready',
  };
  const bar = (names: readonly string[], sums: Readonly<Record<string, number>>) => {
    const parts = names.map((name) => ({ kind: kinds[name] ?? 'waiting', name, count: sums[name] ?? 0 }));
    return html`${shareBar(parts.toReversed())}<ul class="legend">${parts.filter(({ count }) => count > 0).map(({ kind, name, count }) => html`<li><i class="key fill-${kind}" aria-hidden="true"></i>${name} <b>${numeral(count)}</b></li>`)}</ul>`;
  };
  const rows = list.shown.map(
    ({ namespace, name, project, health, sync, message }) =>
      html`<tr><th scope="row"><bdi>${abridged(namespace, 63)}/${abridged(name, 253)}</bdi></th><td><bdi>${abridged(project, 100)}</bdi></td><td><i class="key fill-${kinds[health] ?? 'waiting'}" aria-hidden="true"></i>${abridged(health, 40)}</td><td><i class="key fill-${kinds[sync] ?? 'waiting'}" aria-hidden="true"></i>${abridged(sync, 40)}</td><td class="why"><bdi>${abridged(message, 500)}</bdi></td></tr>`,
  );
  const left = [
    ...(list.more > 0 ? [`${numeral(list.more)} more that are better off are not listed.`] : []),
    ...(list.withheld > 0 ? [`${counted(list.withheld, 'Application')} you may not see.`] : []),
  ];
  return html`<h2 id="applications-title">Applications <span class="count">${numeral(counts.total)}</span></h2>
<div class="pair"><div><h3>Health</h3>${bar(healthNames, counts.health)}</div><div><h3>Sync</h3>${bar(syncNames, counts.sync)}</div></div>
${rows.length > 0 && html`<div class="table-frame" tabindex="0" role="region" aria-label="Table of Applications"><table class="stacked"><thead><tr><th scope="col">Application</th><th scope="col">Project</th><th scope="col">Health</th><th scope="col">Sync</th><th scope="col">Message</th></tr></thead><tbody>${rows}</tbody></table></div>`}
${left.length > 0 && html`<p class="panel-sub">${left.join(' ')}</p>`}`;
}
