import { type ClusterFacts, clusterStates, unhealthyOf } from '../model/cluster-facts.ts';

/** What the first page is asked to show. */
export interface PageQuery {
  readonly view: 'map' | 'table';
  readonly q: string;
  readonly state: string;
  readonly mode: string;
  readonly version: string;
  readonly sort: FleetOrder;
}

/** Orders of clusters, with their names. */
export const fleetOrders = {
  name: 'Name',
  trouble: 'Worst first',
  lag: 'Most out of step',
  unhealthy: 'Most unhealthy',
  applications: 'Most Applications',
  version: 'Version',
} as const;
/** One of {@link fleetOrders}. */
export type FleetOrder = keyof typeof fleetOrders;

/** Reads the query of a URL. What it does not know counts as not given. */
export function pageQuery(search: string): PageQuery {
  const given = new URLSearchParams(search);
  const text = (name: string) => (given.get(name) ?? '').slice(0, 200);
  const sort = text('sort');
  const state = text('state');
  return {
    view: text('view') === 'table' ? 'table' : 'map',
    q: text('q'),
    state: clusterStates.some((each) => each === state) ? state : '',
    mode: text('mode'),
    version: text('version'),
    sort: Object.hasOwn(fleetOrders, sort) ? (sort as FleetOrder) : 'name',
  };
}

/** The query as a URL has it, with changes; empty when it asks for nothing special. */
export function queryText(query: PageQuery, changes: Partial<PageQuery> = {}): string {
  const all = { ...query, ...changes };
  const standard: Readonly<Record<string, string>> = { view: 'map', sort: 'name' };
  const given = Object.entries(all).filter(([name, value]) => value !== (standard[name] ?? ''));
  return given.length === 0 ? '' : `?${new URLSearchParams(given as [string, string][])}`;
}

/** Whether a cluster is asked for. The words of the search may be in its name, agent, version or reason. */
export function isAsked(facts: ClusterFacts, { q, state, mode, version }: PageQuery): boolean {
  const { title, agent, why } = facts;
  const text = `${title} ${agent} ${facts.version} ${why}`.toLowerCase();
  return (
    (state === '' || facts.state === state) &&
    (mode === '' || facts.mode === mode) &&
    (version === '' || facts.version === version) &&
    q
      .toLowerCase()
      .split(/\s+/)
      .every((word) => text.includes(word))
  );
}

/** Compares two clusters in an order; equal ones are in the order of their names. */
export function sortedBy(order: FleetOrder): (a: ClusterFacts, b: ClusterFacts) => number {
  const key: Readonly<Record<FleetOrder, (facts: ClusterFacts) => number>> = {
    name: () => 0,
    trouble: ({ state }) => clusterStates.indexOf(state),
    lag: ({ pending }) => -pending,
    unhealthy: ({ applications }) => -unhealthyOf(applications),
    applications: ({ applications }) => -applications.total,
    version: () => 0,
  };
  const byName = new Intl.Collator('en', { numeric: true });
  return (a, b) =>
    key[order](a) - key[order](b) ||
    (order === 'version' ? byName.compare(a.version, b.version) : 0) ||
    byName.compare(a.title, b.title) ||
    byName.compare(a.agent, b.agent);
}
