import { annotations } from '../../lib/argocd/index.ts';
import { connectionRecord } from '../../lib/clusters/index.ts';
import { keyOf } from '../../lib/kube/index.ts';
import { type ShownApplication, type Station, stationsOf } from '../../lib/way/index.ts';
import { applicationsOf, isSettled, modeOfAgent } from './applications.ts';
import type { Facts } from './facts.ts';
import { type Diagnosis, findingsAbout } from './finding.ts';

/** What the principal says of an Application itself. */
const notices = new Set(['AgentError', 'AgentWarning']);

/**
 * Changes that do not go from one side to the other: an Application that differs on the two sides although nobody has written
 * either for a while.
 */
export function changeFaults(facts: Facts, hub: Facts, agent: string): Diagnosis[] {
  if (facts.unknown.has('applications')) {
    return [];
  }
  const record = hub.leases.map(connectionRecord).find((one) => one?.agent === agent);
  const stuck = new Map<Stuck, { readonly application: ShownApplication; readonly text: string }[]>();
  const copyOf = copiesIn(facts.applications);
  for (const application of applicationsOf(hub, agent)) {
    const copy = copyOf(application);
    const isGoing = application.metadata.deletionTimestamp !== undefined;
    if (isGoing || !isSettled(hub, application) || (copy !== undefined && !isSettled(facts, copy))) {
      continue;
    }
    const way = stationsOf({ hub: application, agent, record, copy: copy ?? 'missing' });
    const waits = way.find((one): one is Station & { station: Stuck } => !one.isDone && isStuck(one.station));
    if (waits !== undefined) {
      const said = application.status?.conditions?.find(({ type }) => notices.has(type))?.message ?? '';
      const all = stuck.get(waits.station) ?? [];
      all.push({ application, text: said || waits.text });
      stuck.set(waits.station, all);
    }
  }
  const isAutonomous = modeOfAgent(hub, facts, agent) === 'autonomous';
  const finding = findingsAbout(agent);
  const mend = (application: ShownApplication) =>
    `argocd-agentctl trace ${keyOf(application)} --agent-context ${facts.context}; kubectl --context ${facts.context} --namespace ${facts.namespace} logs deployment/argocd-agent-agent`;
  return [...stuck].flatMap(([station, [first, ...others]]) => {
    if (first === undefined) {
      return [];
    }
    // The hub's mirrors follow the cluster, in everything.
    const { id, what } = isAutonomous ? stations.reported : stations[station];
    const count = others.length === 0 ? '' : ` and ${others.length} more`;
    const where = `Application ${keyOf(first.application)}${count}`;
    return finding(id, `${what}: ${first.text}`, where, mend(first.application));
  });
}

const stations = {
  copy: { id: 'change-not-delivered', what: 'a change on the hub does not reach the cluster' },
  reported: { id: 'state-not-reported', what: 'the state on the cluster does not reach the hub' },
} as const;
type Stuck = keyof typeof stations;
const isStuck = (station: string): station is Stuck => Object.hasOwn(stations, station);

/** Finds the same Application on the cluster: the copy of the hub's, or that which the hub mirrors; else one of its name. */
function copiesIn(all: readonly ShownApplication[]): (hub: ShownApplication) => ShownApplication | undefined {
  const sourceOf = ({ metadata }: ShownApplication) => metadata.annotations?.[annotations.sourceUid] ?? '';
  const indexed = (keyIn: (one: ShownApplication) => string | undefined) =>
    // The first of several counts.
    new Map(all.map((one) => [keyIn(one) ?? '', one] as const).reverse());
  const [bySource, byUid, byName] = [
    indexed(sourceOf),
    indexed(({ metadata }) => metadata.uid),
    indexed(({ metadata }) => metadata.name),
  ];
  return (hub) => {
    const [uid, source] = [hub.metadata.uid, sourceOf(hub)];
    return (
      (uid && bySource.get(uid)) ||
      (source && (bySource.get(source) ?? byUid.get(source))) ||
      byName.get(hub.metadata.name) ||
      undefined
    );
  };
}
