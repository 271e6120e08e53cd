import { type Counter, Gauge, type Registry } from 'prom-client';
import type { EventOutcome } from '../lib/bridge/index.ts';
import { grpcMetrics, instruments } from '../lib/ops/index.ts';
import { type ObservedCall, targets } from '../lib/wire/index.ts';
import { type QuotaLimit, quotaLimits } from './quotas/agent-quotas.ts';

/** Labels of events: the protocol's targets, and `unknown`. */
const resourceTypes = [...Object.values(targets), 'unknown'];

/** The kinds whose changes on the hub are counted. */
export type CountedKind = 'applications' | 'app_projects' | 'repositories';

/** An event that could not be sent, with the reason as a label value. */
export interface UnsendableEvent {
  readonly eventType: string;
  readonly resourceType: string;
  readonly reason: string;
}

/** State that is read at every scrape. */
export interface PrincipalState {
  /** Connected agents, and since when. */
  connections(): Iterable<{ readonly agent: string; readonly mode: string; readonly since: Date }>;
  /** Agents that have been without a connection for longer than the grace period, and how many Applications each has. */
  disconnected(): Iterable<{ readonly agent: string; readonly applications: number }>;
  gpgKeys(): number;
  /** Whether there is a connection to Argo CD's Redis. */
  isRedisConnected(): boolean;
}

/**
 * The principal's metrics, under the original's names where it has them. Labels `agent_name` are of agents with a cluster
 * Secret and go when the agent does.
 */
export interface PrincipalMetrics {
  connected(agent: string): void;
  eventReceived(): void;
  eventSent(): void;
  /** An event for an agent could not be sent. */
  unsendable(agent: string, event: UnsendableEvent): void;
  /** Transmission time of an event from an agent. */
  arrived(resourceType: string, seconds: number): void;
  /** An event of an agent has been processed. */
  processed(agent: string, resourceType: string, status: EventOutcome, seconds: number): void;
  refusedLogin(reason: string): void;
  /** A gRPC call has begun or ended. */
  called(call: ObservedCall): void;
  /** An agent sent an invalid or forbidden event. */
  refusedEvent(agent: string, resourceType: string): void;
  /** A write of an agent would exceed a limit of what it may have stored. */
  overQuota(agent: string, limit: QuotaLimit): void;
  /** An agent's messages waited because it writes faster than it may. */
  delayed(agent: string, seconds: number): void;
  /** A state of an object has arrived: on the agent's cluster (`to_cluster`), or on the hub (`from_cluster`). */
  propagated(direction: 'to_cluster' | 'from_cluster', resourceType: string, seconds: number): void;
  /** Changes of kinds seen on the hub. */
  changed(kind: CountedKind, change: 'created' | 'updated' | 'deleted'): void;
  /** The agent has left the fleet. */
  forgetAgent(agent: string): void;
}

/**
 * Agents whose events are timed each on its own; those of others are timed together. A histogram costs many series, and a
 * scrape of too many holds up everything else.
 */
const maxTimedAgents = 200;
const otherAgents = '(others)';

/** Registers the metrics. */
export function principalMetrics(registry: Registry, state: PrincipalState): PrincipalMetrics {
  const { counter, gauge, histogram } = instruments(registry);
  const changes = new Map<string, Counter>();
  for (const kind of ['applications', 'app_projects', 'repositories'] satisfies CountedKind[]) {
    for (const change of ['created', 'updated', 'deleted']) {
      changes.set(
        `${kind}_${change}`,
        counter(`principal_${kind}_${change}`, `Number of ${kind} ${change} on the hub`),
      );
    }
  }
  gauge('argocd_principal_connected_agents', 'Connected agents', () => [...state.connections()].length);
  gauge(
    'principal_agent_avg_connection_time',
    'Mean time, in minutes, for which the connected agents have been connected',
    () => {
      const ages = Array.from(state.connections(), ({ since }) => Date.now() - since.getTime());
      const sum = ages.reduce((total, age) => total + age, 0);
      return ages.length === 0 ? 0 : sum / ages.length / 60_000;
    },
  );
  gauge('argocd_principal_gpg_keys_count', "GPG keys in Argo CD's ConfigMap", state.gpgKeys);
  gauge('argocd_principal_redis_connected', "1 if the principal is connected to Argo CD's Redis, else 0", () =>
    state.isRedisConnected() ? 1 : 0,
  );
  new Gauge({
    name: 'argocd_principal_connected_agents_by_mode',
    help: 'Connected agents by mode',
    labelNames: ['mode'],
    registers: [registry],
    collect() {
      for (const mode of ['managed', 'autonomous']) {
        this.set({ mode }, 0);
      }
      for (const { mode } of state.connections()) {
        this.inc({ mode });
      }
    },
  });
  gauge(
    'argocd_principal_disconnected_agents',
    'Agents of the fleet that have not been connected for longer than the grace period',
    () => [...state.disconnected()].length,
  );
  new Gauge({
    name: 'argocd_principal_disconnected_agent_applications',
    help: 'Applications on the hub of each agent that has not been connected for longer than the grace period',
    labelNames: ['agent_name'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { agent, applications } of state.disconnected()) {
        this.set({ agent_name: agent }, applications);
      }
    },
  });
  const connections = counter('argocd_principal_agent_connections_total', 'Connections of agents', ['agent_name']);
  const received = counter('principal_events_received', 'Events received from agents');
  const sent = counter('principal_events_sent', 'Events sent to agents');
  const errors = counter('principal_errors', 'Events from agents that could not be processed', ['resource_type']);
  const processing = histogram(
    'principal_event_processing_time',
    'Seconds from the arrival of an event to its acknowledgement',
    ['status', 'agent_name', 'resource_type'],
    [0.005, 0.05, 0.5, 5],
  );
  const latency = histogram(
    'principal_event_propagation_latency_seconds',
    'Transmission time of events from agents, by the clocks of both sides',
    ['resource_type'],
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60],
  );
  const propagation = histogram(
    'argocd_principal_propagation_delay_seconds',
    "Seconds from a change of an object until the other side has it, by the object's own times and by direction",
    ['direction', 'resource_type'],
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800],
  );
  const refused = counter('argocd_principal_refused_logins_total', 'Refused calls of agents, by reason', ['reason']);
  const refusedEvents = counter(
    'argocd_principal_refused_events_total',
    'Events from agents that are unreadable or not permitted, by resource type',
    ['agent_name', 'resource_type'],
  );
  const overQuota = counter(
    'argocd_principal_quota_refusals_total',
    'Writes that were refused because an agent would have more on the hub than it may, by limit',
    ['agent_name', 'limit'],
  );
  const delayed = counter(
    'argocd_principal_rate_delay_seconds_total',
    'Seconds that messages of an agent waited because it writes to the hub faster than it may',
    ['agent_name'],
  );
  const called = grpcMetrics(registry, 'server');
  const unsendable = counter(
    'principal_event_writer_send_errors_total',
    'Events that could not be sent to an agent, by reason',
    ['agent_name', 'reason'],
  );
  const discarded = counter(
    'argocd_principal_event_writer_events_discarded_total',
    'Events that were not sent to an agent; the resource stays out of sync',
    ['agent_name', 'event_type', 'resource_type'],
  );
  const unsent = new Map<string, Map<string, UnsendableEvent>>();
  const processedBy = new Map<string, Set<string>>();
  return {
    connected: (agent) => connections.inc({ agent_name: agent }),
    eventReceived: () => received.inc(),
    eventSent: () => sent.inc(),
    unsendable: (agent, event) => {
      const { eventType, resourceType, reason } = event;
      const known = unsent.get(agent) ?? new Map();
      unsent.set(agent, known.set(`${eventType}\n${resourceType}\n${reason}`, event));
      unsendable.inc({ agent_name: agent, reason });
      discarded.inc({ agent_name: agent, event_type: eventType, resource_type: resourceType });
    },
    arrived: (type, seconds) => latency.observe({ resource_type: type }, seconds),
    processed: (agent, type, status, seconds) => {
      if (status !== 'success') {
        errors.inc({ resource_type: type });
      }
      const timed = processedBy.size - (processedBy.has(otherAgents) ? 1 : 0);
      const name = processedBy.has(agent) || timed < maxTimedAgents ? agent : otherAgents;
      const seen = processedBy.get(name) ?? new Set();
      processedBy.set(name, seen.add(`${status}\n${type}`));
      processing.observe({ status, agent_name: name, resource_type: type }, seconds);
    },
    called,
    refusedLogin: (reason) => refused.inc({ reason }),
    refusedEvent: (agent, type) => refusedEvents.inc({ agent_name: agent, resource_type: type }),
    overQuota: (agent, limit) => overQuota.inc({ agent_name: agent, limit }),
    delayed: (agent, seconds) => delayed.inc({ agent_name: agent }, seconds),
    propagated: (direction, resource_type, seconds) => propagation.observe({ direction, resource_type }, seconds),
    changed: (kind, change) => changes.get(`${kind}_${change}`)?.inc(),
    forgetAgent: (agent) => {
      connections.remove({ agent_name: agent });
      delayed.remove({ agent_name: agent });
      for (const limit of quotaLimits) {
        overQuota.remove({ agent_name: agent, limit });
      }
      for (const { eventType, resourceType, reason } of unsent.get(agent)?.values() ?? []) {
        unsendable.remove({ agent_name: agent, reason });
        discarded.remove({ agent_name: agent, event_type: eventType, resource_type: resourceType });
      }
      unsent.delete(agent);
      for (const resource_type of resourceTypes) {
        refusedEvents.remove({ agent_name: agent, resource_type });
      }
      for (const labels of processedBy.get(agent) ?? []) {
        const [status = '', resource_type = ''] = labels.split('\n');
        processing.remove({ status, agent_name: agent, resource_type });
      }
      processedBy.delete(agent);
    },
  };
}

/** Registers the number of resources that each connected agent has not acknowledged; `read` is called at every scrape. */
export function outOfStepMetric(
  registry: Registry,
  read: () => Iterable<readonly [agent: string, resources: number]>,
): void {
  new Gauge({
    name: 'argocd_principal_out_of_step_resources',
    help: 'Resources whose current state the agent has not acknowledged',
    labelNames: ['agent_name'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [agent, resources] of read()) {
        this.set({ agent_name: agent }, resources);
      }
    },
  });
}
