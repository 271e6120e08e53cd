import type { Registry } from 'prom-client';
import { instruments } from '../../lib/ops/index.ts';

/** What is counted of replicas. */
export interface ReplicaMetrics {
  /** An agent was given to another live replica. */
  handedOver(): void;
  /** This replica has deposed another one. */
  deposedOther(): void;
  /** This replica was deposed. */
  deposed(): void;
  /** This replica wrote nothing for this long, because it could not renew its Lease. */
  suspended(seconds: number): void;
}

/** State that is read at every scrape. */
export interface ReplicaState {
  readonly agents: () => number;
  readonly live: () => number;
  readonly isLeader: () => boolean;
  readonly isCurrent: () => boolean;
}

/** Registers the metrics of a principal that is one of several. */
export function replicaMetrics(registry: Registry, state: ReplicaState): ReplicaMetrics {
  const { counter, gauge } = instruments(registry);
  gauge('argocd_principal_replica_agents', 'Agents that this replica holds', state.agents);
  gauge('argocd_principal_replica_live', 'Live replicas, as this one sees them, itself included', state.live);
  gauge('argocd_principal_replica_leader', '1 if this replica is responsible for agents that are not connected', () =>
    state.isLeader() ? 1 : 0,
  );
  gauge(
    'argocd_principal_replica_suspended',
    '1 while this replica writes nothing, since its Lease is not renewed',
    () => (state.isCurrent() ? 0 : 1),
  );
  const handOvers = counter('argocd_principal_replica_handovers_total', 'Agents given to another live replica');
  const others = counter('argocd_principal_replica_deposed_others_total', 'Other replicas that this one has deposed');
  const own = counter('argocd_principal_replica_deposed_total', 'How often this replica was deposed and began anew');
  const suspended = counter(
    'argocd_principal_replica_suspended_seconds_total',
    'Time for which this replica wrote nothing, since its Lease was not renewed',
  );
  return {
    handedOver: () => handOvers.inc(),
    deposedOther: () => others.inc(),
    deposed: () => own.inc(),
    suspended: (seconds) => suspended.inc(seconds),
  };
}
