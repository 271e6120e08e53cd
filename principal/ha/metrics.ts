import { Gauge, type Registry } from 'prom-client';
import { instruments } from '../../lib/ops/index.ts';
import { type HaState, type HaStateMachine, haStates } from './states.ts';

/** What a standby counts. */
export interface StandbyMetrics {
  received(): void;
  processed(): void;
  failed(): void;
  gap(): void;
  reconciled(): void;
  reconnected(): void;
  snapshot(agents: number): void;
  onlyHere(objects: number): void;
}

/** The lag of a pair, from either end. */
export interface HaFigures {
  followers(): number;
  lag(): { readonly objects: number; readonly ms: number };
  /** Objects that a standby cannot write. */
  refused(): number;
  isFollowing(): boolean;
  lastSequence(): number;
  isFenced(): boolean;
}

/** Metrics of a principal of a pair; argocd-agent's names where it has them. */
export interface HaMetrics extends StandbyMetrics {
  rejected(state: HaState): void;
  forwarded(): void;
}

/** Registers them. */
export function haMetrics(registry: Registry, machine: HaStateMachine, figures: HaFigures): HaMetrics {
  const { counter, gauge } = instruments(registry);
  const state = new Gauge({
    name: 'argocd_agent_ha_state',
    help: 'State of this principal of a pair: 1 for the current one',
    labelNames: ['state'],
    registers: [registry],
  });
  const show = () => {
    for (const one of haStates) {
      state.set({ state: one }, one === machine.current ? 1 : 0);
    }
  };
  show();
  const transitions = counter('argocd_agent_ha_transitions_total', 'Changes of the state', ['from_state', 'to_state']);
  const failovers = counter('argocd_agent_ha_failovers_total', 'Promotions');
  const failbacks = counter('argocd_agent_ha_failbacks_total', 'Demotions');
  machine.subscribe((now, before) => {
    show();
    transitions.inc({ from_state: before, to_state: now });
    if (now === 'active' && before !== 'recovering') {
      failovers.inc();
    }
    if (before === 'active') {
      failbacks.inc();
    }
  });
  const rejected = counter(
    'argocd_agent_ha_connections_rejected_total',
    'Agents refused by a principal that is not active',
    ['state', 'reason'],
  );
  const forwarded = counter('argocd_agent_replication_events_forwarded_total', 'Events sent to standbys');
  gauge('argocd_agent_replication_replicas_connected', 'Standbys that follow this principal', figures.followers);
  gauge(
    'argocd_principal_replication_lag_objects',
    'Objects by which a standby is behind: on the active hub of the slowest standby, on a standby its own',
    () => figures.lag().objects,
  );
  gauge(
    'argocd_principal_replication_lag_seconds',
    'For how long the oldest of these objects has been out of step',
    () => figures.lag().ms / 1000,
  );
  gauge(
    'argocd_principal_replication_objects_refused',
    'Objects that a standby cannot write, and tries on: its API server refuses them again and again',
    figures.refused,
  );
  gauge('argocd_principal_ha_fenced', 'Whether a Lease keeps both hubs from being active at the same time', () =>
    figures.isFenced() ? 1 : 0,
  );
  gauge('argocd_agent_replication_client_connected', 'Whether this principal follows the active one', () =>
    figures.isFollowing() ? 1 : 0,
  );
  gauge('argocd_agent_replication_client_last_sequence_number', 'Number of the last event', figures.lastSequence);
  const agents = gauge('argocd_agent_replication_client_snapshot_agents', 'Agents in the last snapshot');
  const onlyHere = gauge(
    'argocd_principal_replication_objects_only_here',
    'Applications and ApplicationSets of a standby that were never on the active hub',
  );
  const client = (name: string, help: string) => counter(`argocd_agent_replication_client_${name}`, help);
  const received = client('events_received_total', 'Events received from the active principal');
  const processed = client('events_processed_total', 'Changes of the active hub that were written');
  const errors = client('events_errors_total', 'Changes of the active hub that could not be written; repeated');
  const gaps = client('sequence_gaps_total', 'Gaps in the numbers of events');
  const reconciliations = client('reconciliations_total', 'Snapshots taken after the first');
  const reconnects = client('reconnect_attempts_total', 'Connections that ended or could not be made');
  return {
    rejected: (now) => rejected.inc({ state: now, reason: 'not accepting connections' }),
    forwarded: () => forwarded.inc(),
    received: () => received.inc(),
    processed: () => processed.inc(),
    failed: () => errors.inc(),
    gap: () => gaps.inc(),
    reconciled: () => reconciliations.inc(),
    reconnected: () => reconnects.inc(),
    snapshot: (count) => agents.set(count),
    onlyHere: (count) => onlyHere.set(count),
  };
}
