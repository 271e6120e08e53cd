import type { Station } from '../../../lib/way/index.ts';
import { clusterStates, unhealthyOf } from '../model/cluster-facts.ts';
import type { FleetLens } from '../model/fleet-lens.ts';
import type { FleetCluster } from '../model/fleet-model.ts';
import { stateWords } from './words.ts';

/** Where the change of an Application is, for the UI extension: what `argocd-agentctl trace` knows without the cluster's side. */
export interface ApplicationWay {
  /** Undefined when no agent gets the Application. */
  readonly agent: string | undefined;
  readonly stations: readonly Station[];
}

const longestText = 300;

/** {@link ApplicationWay} and the cluster that it leads to, as JSON. */
export function wayData({ agent, stations }: ApplicationWay, cluster: FleetCluster | undefined): string {
  const waitsAt = stations.find(({ isDone }) => !isDone)?.station ?? '';
  return JSON.stringify({
    arrived: waitsAt === '',
    waitsAt,
    stations: stations.map((station) => ({ ...station, text: station.text.slice(0, longestText) })),
    agent: agent ?? null,
    cluster: cluster === undefined ? null : clusterData(cluster),
  });
}

/** A cluster for the UI extension. Its texts are what a cluster says of itself: text for whoever shows them. */
export function clusterData({ facts }: FleetCluster): Readonly<Record<string, string | number>> {
  const { title, state, why, mode, version, pending, applications, connectedSince, lastSeen } = facts;
  return {
    title: title.slice(0, longestText),
    state: stateWords[state],
    rank: clusterStates.indexOf(state),
    why: why.slice(0, longestText),
    mode: mode.slice(0, 20),
    version: version.slice(0, 60),
    since: (connectedSince ?? lastSeen)?.toISOString() ?? '',
    pending,
    applications: applications.total,
    unhealthy: unhealthyOf(applications),
  };
}

/** The sums over all clusters for the UI extension, as JSON. */
export function totalsData({ totals }: FleetLens): string {
  const { clusters, states, applications, unhealthy, pending } = totals;
  return JSON.stringify({ clusters, ready: states.get('ready') ?? 0, applications, unhealthy, pending });
}
