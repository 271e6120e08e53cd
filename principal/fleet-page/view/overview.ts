import type { FleetContent } from '../fleet-streams.ts';
import {
  type CertificateTerm,
  certificateTerms,
  clusterStates,
  healthNames,
  type ShownState,
  syncNames,
} from '../model/cluster-facts.ts';
import { type FleetLens, lateCertificates } from '../model/fleet-lens.ts';
import { rankedBars, shareBar, timeline } from './charts.ts';
import { clusterEntry, clusterPath, type EntryView } from './cluster-entry.ts';
import { abridged, html, SafeHtml } from './html.ts';
import { type FleetOrder, fleetOrders, isAsked, type PageQuery, queryText, sortedBy } from './page-query.ts';
import { counted, moment, numeral, silentGlyph, stateWords, termWords } from './words.ts';

/** The parts of the first page that show sums, by the names under which changes of them are sent. */
const overviewRegions = {
  headline,
  states,
  attention,
  versions,
  certificates,
  applications,
  history,
} as const;

const mostAttention = 8;
const mostVersions = 8;
const states4 = clusterStates.toReversed();

/** A region, made once for each change of the sums. */
function overviewRegion(lens: FleetLens, name: keyof typeof overviewRegions): string {
  const known = lens.rendered.get(name);
  if (known !== undefined) {
    return known;
  }
  const made = overviewRegions[name](lens).text;
  lens.rendered.set(name, made);
  return made;
}

/** What streams send of the first page: its entries in a view, and its regions. */
export function overviewContent(lens: FleetLens, view: EntryView): FleetContent {
  const names = Object.keys(overviewRegions) as (keyof typeof overviewRegions)[];
  const regions = Object.fromEntries(names.map((name) => [name, () => overviewRegion(lens, name)]));
  return { entry: (cluster) => clusterEntry(cluster, view), regions };
}

/** The content of the first page. */
export function overview(lens: FleetLens, query: PageQuery): SafeHtml {
  const region = (name: keyof typeof overviewRegions) => new SafeHtml(overviewRegion(lens, name));
  return html`<div class="headline" data-region="headline">${region('headline')}</div>
<nav class="states" aria-label="Clusters by state" data-region="states">${region('states')}</nav>
<section class="attention" aria-labelledby="attention-title" data-region="attention">${region('attention')}</section>
<div class="deck deck-${query.view}">
<aside class="panels" aria-label="Figures">
<section class="panel" aria-labelledby="history-title" data-region="history">${region('history')}</section>
<section class="panel" aria-labelledby="applications-title" data-region="applications">${region('applications')}</section>
<section class="panel" aria-labelledby="versions-title" data-region="versions">${region('versions')}</section>
<section class="panel" aria-labelledby="certificates-title" data-region="certificates">${region('certificates')}</section>
</aside>
<section class="chart" aria-labelledby="map-title">
<div class="chart-head"><h2 id="map-title">Clusters</h2><p id="shown" class="shown"></p>
<p class="views"><a href="./${queryText(query, { view: 'map' })}"${query.view === 'map' && new SafeHtml(' aria-current="page"')}>Map</a><a href="./${queryText(query, { view: 'table' })}"${query.view === 'table' && new SafeHtml(' aria-current="page"')}>Table</a></p></div>
${tools(lens, query)}
${query.view === 'map' ? map(lens, query) : table(lens, query)}
<p class="empty" id="empty" hidden>No cluster matches. <a href="./">Show all</a></p>
</section>
</div>`;
}

function headline({ totals }: FleetLens): SafeHtml {
  const { clusters } = totals;
  const ready = totals.states.get('ready') ?? 0;
  const main =
    clusters === 0
      ? html`No clusters yet.`
      : ready === clusters
        ? html`${clusters === 1 ? 'The one cluster is' : html`All <b>${numeral(clusters)}</b> clusters are`} ready.`
        : html`<b>${numeral(ready)}</b> of <b>${numeral(clusters)}</b> ${clusters === 1 ? 'cluster is' : 'clusters are'} ready.`;
  const late = lateCertificates(totals);
  const more = [
    `${counted(totals.applications, 'Application')}${totals.unhealthy > 0 ? `, ${numeral(totals.unhealthy)} not healthy` : ''}.`,
    totals.pending > 0 ? `${counted(totals.pending, 'change')} on the way.` : 'Nothing on the way.',
    ...(late > 0 ? [`${counted(late, 'certificate')} ${late === 1 ? 'was' : 'were'} not renewed in time.`] : []),
  ];
  return html`<h1 id="headline">${main}</h1><p class="sub">${more.join(' ')}</p>`;
}

function states({ totals }: FleetLens): SafeHtml {
  const parts = states4.map((state) => ({
    kind: state,
    name: stateWords[state],
    count: totals.states.get(state) ?? 0,
  }));
  return html`${shareBar(parts)}<ul class="chips">
<li><a class="chip" data-filter="" href="./"><span class="chip-name">All</span> <b>${numeral(totals.clusters)}</b></a></li>
${parts.map(
  ({ kind, name, count }) =>
    html`<li><a class="chip chip-${kind}${count === 0 && ' none'}" data-filter="${kind}" href="./?state=${kind}">${silentGlyph(kind)}<span class="chip-name">${name}</span> <b>${numeral(count)}</b></a></li>`,
)}</ul>`;
}

function attention(lens: FleetLens): SafeHtml {
  const shown = lens.troubled(mostAttention);
  const all = lens.totals.clusters - (lens.totals.states.get('ready') ?? 0) - (lens.totals.states.get('waiting') ?? 0);
  if (shown.length === 0) {
    return html`<h2 id="attention-title" class="vh">What needs you</h2><p class="calm">Nothing needs you.</p>`;
  }
  return html`<h2 id="attention-title">What needs you</h2><ol class="signs">${shown.map(
    (
      facts,
    ) => html`<li class="sign edge-${facts.state}">${silentGlyph(facts.state)}<div><p class="sign-name"><a href="${clusterPath(facts.agent)}"><bdi>${abridged(facts.title, 120)}</bdi></a><span class="sign-state">${stateWords[facts.state]}</span></p>
<p class="sign-why"><bdi>${abridged(facts.why, 300)}</bdi>${facts.lastSeen !== undefined && html` Last seen ${moment(facts.lastSeen)}.`}</p></div></li>`,
  )}</ol>${all > shown.length && html`<p class="more"><a href="./?view=table&amp;sort=trouble">and ${numeral(all - shown.length)} more</a></p>`}`;
}

function versions({ totals }: FleetLens): SafeHtml {
  const sorted = [...totals.versions].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  const shown = sorted.slice(0, mostVersions);
  const rest = sorted.slice(mostVersions).reduce((sum, [, count]) => sum + count, 0);
  const rows = shown.map(([version, count], index) => ({
    name: version === '' ? 'not known yet' : html`<bdi class="mono">${abridged(version, 32)}</bdi>`,
    count,
    kind: version === '' ? 'waiting' : index === 0 ? 'first' : 'other',
  }));
  const newest = sorted.filter(([version]) => version !== '').length;
  return html`<h2 id="versions-title">Versions</h2><p class="panel-sub">${newest === 1 ? 'All agents that were here run the same.' : newest === 0 ? 'None has been seen.' : `${counted(newest, 'version')} at the same time.`}</p>
${rankedBars(rest === 0 ? rows : [...rows, { name: 'others', count: rest, kind: 'waiting' }])}`;
}

function certificates({ totals }: FleetLens): SafeHtml {
  const kinds: Readonly<Record<CertificateTerm, ShownState | 'first'>> = {
    expired: 'refused',
    overdue: 'lost',
    week: 'first',
    month: 'first',
    later: 'first',
    unknown: 'waiting',
  };
  const rows = certificateTerms
    .map((term) => ({ name: termWords[term], count: totals.terms.get(term) ?? 0, kind: kinds[term] }))
    .filter(({ count }, index) => count > 0 || index === 1);
  return html`<h2 id="certificates-title">Certificates end</h2>${rankedBars(rows)}`;
}

function applications({ totals }: FleetLens): SafeHtml {
  const kinds: Readonly<Record<string, string>> = {
    Degraded: 'lost',
    Missing: 'attention',
    Unknown: 'waiting',
    Progressing: 'other',
    Suspended: 'pale',
    Healthy: 'ready',
    OutOfSync: 'attention',
    Synced: 'ready',
  };
  const list = (names: readonly string[], sums: ReadonlyMap<string, number>) => {
    const parts = names.map((name) => ({ kind: kinds[name] ?? 'other', name, count: sums.get(name) ?? 0 }));
    return html`${shareBar(parts.toReversed())}<ul class="legend">${parts
      .filter(({ count }) => count > 0)
      .map(
        ({ kind, name, count }) =>
          html`<li><i class="key fill-${kind}" aria-hidden="true"></i>${name} <b>${numeral(count)}</b></li>`,
      )}</ul>`;
  };
  return html`<h2 id="applications-title">Applications</h2><p class="panel-sub">${counted(totals.applications, 'Application')} on ${counted(totals.clusters, 'cluster')}</p>
<h3>Health</h3>${list(healthNames, totals.health)}<h3>Sync</h3>${list(syncNames, totals.sync)}`;
}

function history({ model, isWhole, totals }: FleetLens): SafeHtml {
  const title = html`<h2 id="history-title">Last hour</h2>`;
  if (!isWhole) {
    return html`${title}<p class="panel-sub">${counted(totals.pending, 'change')} on the way. The figures of the whole fleet are for those who may see all clusters.</p>`;
  }
  return html`${title}${timeline({ name: 'Out of step', unit: 'resources', values: model.lag.values, kind: 'lag' })}
${timeline({ name: 'Throughput', unit: 'messages/s', values: model.throughput.values, kind: 'flow' })}`;
}

function tools({ totals }: FleetLens, query: PageQuery): SafeHtml {
  const select = (name: string, label: string, options: readonly (readonly [string, string])[], chosen: string) =>
    html`<label>${label}<select name="${name}">${options.map(([value, text]) => html`<option value="${value}"${value === chosen && new SafeHtml(' selected')}>${text}</option>`)}</select></label>`;
  const known = (values: ReadonlyMap<string, number>, chosen: string) =>
    [...new Set([...values.keys(), chosen])]
      .filter((value) => value !== '')
      .sort()
      .slice(0, 200);
  return html`<form class="tools" id="tools" role="search" action="./" method="get">
<label class="search">Search<input type="search" name="q" value="${query.q}" placeholder="name, version, reason" autocomplete="off" spellcheck="false" maxlength="200"></label>
${select('state', 'State', [['', 'any'], ...clusterStates.map((state) => [state, stateWords[state]] as const)], query.state)}
${select('mode', 'Mode', [['', 'any'], ...known(totals.modes, query.mode).map((mode) => [mode, abridged(mode, 20)] as const)], query.mode)}
${select('version', 'Version', [['', 'any'], ...known(totals.versions, query.version).map((version) => [version, abridged(version, 24)] as const)], query.version)}
${select('sort', 'Order', Object.entries(fleetOrders), query.sort)}
<input type="hidden" name="view" value="${query.view}"><button type="submit" class="apply">Apply</button></form>`;
}

function entries(lens: FleetLens, query: PageQuery): SafeHtml {
  const order = sortedBy(query.sort);
  const sorted = [...lens.clusters()].sort((a, b) => order(a.facts, b.facts));
  return new SafeHtml(
    sorted
      .map((cluster) => {
        const made = clusterEntry(cluster, query.view);
        return isAsked(cluster.facts, query) ? made : made.replace(/^<(li|tr) /, '<$1 hidden ');
      })
      .join('\n'),
  );
}

function map(lens: FleetLens, query: PageQuery): SafeHtml {
  const { clusters } = lens.totals;
  const density = clusters <= 24 ? 'roomy' : clusters <= 120 ? 'medium' : 'dense';
  return html`<ul class="map ${density}" id="entries" aria-labelledby="map-title">${entries(lens, query)}</ul>`;
}

function table(lens: FleetLens, query: PageQuery): SafeHtml {
  const column = (text: string, order?: FleetOrder, isNumber = false) => {
    const direction =
      order === undefined || order !== query.sort
        ? undefined
        : order === 'name' || order === 'version' || order === 'trouble'
          ? 'ascending'
          : 'descending';
    return html`<th scope="col"${isNumber && new SafeHtml(' class="num"')}${direction !== undefined && html` aria-sort="${direction}"`}>${order === undefined ? text : html`<a data-sort="${order}" href="./${queryText(query, { sort: order })}">${text}</a>`}</th>`;
  };
  return html`<div class="table-frame" tabindex="0" role="region" aria-label="Table of clusters"><table><caption class="vh">Clusters with their states</caption>
<thead><tr>${column('Cluster', 'name')}${column('State', 'trouble')}${column('Why')}${column('Mode')}${column('Version', 'version')}${column('Connected since')}${column('Out of step', 'lag', true)}${column('Applications', 'applications', true)}${column('Unhealthy', 'unhealthy', true)}${column('Certificate ends')}</tr></thead>
<tbody id="entries">${entries(lens, query)}</tbody></table></div>`;
}
