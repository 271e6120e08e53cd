import type { Registry } from 'prom-client';
import type { EventOutcome } from '../lib/bridge/index.ts';
import { certificateMetrics, grpcMetrics, instruments } from '../lib/ops/index.ts';
import type { ObservedCall } from '../lib/wire/index.ts';

/** The agent's metrics, under the original's names where it has them. */
export interface AgentMetrics {
  connected(): void;
  disconnected(): void;
  authFailed(): void;
  eventReceived(): void;
  eventSent(): void;
  /** An event for the principal could not be sent. */
  unsendable(eventType: string, resourceType: string): void;
  /** A gRPC call has begun, passed a message, or ended. */
  called(call: ObservedCall): void;
  /** Transmission time of an event from the principal. */
  arrived(resourceType: string, seconds: number): void;
  /** An event of the principal has been processed. */
  processed(resourceType: string, status: EventOutcome, seconds: number): void;
  /** The principal has a state of an object of this cluster. */
  propagated(resourceType: string, seconds: number): void;
  /** Requests for live resources, and those that were answered with an error. */
  readonly resourceProxy: { request(): void; failed(): void };
  /** Commands to Argo CD's cache, and those that failed; `get` or `subscribe`. */
  readonly redisProxy: { request(command: string): void; failed(command: string): void };
  /** Web terminals in this cluster. */
  readonly terminals: { opened(): void; closed(): void };
}

/** Registers the metrics; `state` is read at every scrape. */
export function agentMetrics(
  registry: Registry,
  state: {
    readonly mode: string;
    /** Resources not yet acknowledged by the principal. */
    outOfStep(): number;
    /** For how long the oldest state that the principal has not acknowledged has waited, in milliseconds. */
    oldestMs(): number;
    /** Its certificates in PEM. */
    certificates: Parameters<typeof certificateMetrics>[2];
    /** Whether there is a connection to Argo CD's Redis. */
    isRedisConnected(): boolean;
  },
): AgentMetrics {
  const { counter, gauge, histogram } = instruments(registry);
  gauge(
    'argocd_agent_out_of_step_resources',
    'Resources whose current state the principal has not acknowledged',
    state.outOfStep,
  );
  gauge(
    'argocd_agent_oldest_unsent_change_age_seconds',
    'Seconds for which the oldest change has waited for the acknowledgement of the principal; 0 when all is in step',
    () => state.oldestMs() / 1_000,
  );
  certificateMetrics(registry, 'argocd_agent_certificate_expiration_timestamp_seconds', state.certificates);
  gauge('argocd_agent_redis_connected', "1 if the agent is connected to Argo CD's Redis, else 0", () =>
    state.isRedisConnected() ? 1 : 0,
  );
  const connectionStatus = gauge(
    'argocd_agent_connection_status',
    '1 if the agent is connected to the principal, else 0',
  );
  const connectionStart = gauge(
    'argocd_agent_connection_start_timestamp_seconds',
    'Unix time at which the connection began; 0 without a connection',
  );
  const connections = counter('argocd_agent_connections_total', 'Connections to the principal');
  const authFailures = counter('argocd_agent_auth_failures_total', 'Failed authentications at the principal');
  const received = counter('agent_events_received', 'Events received from the principal');
  const sent = counter('agent_events_sent', 'Events sent to the principal');
  const discarded = counter(
    'argocd_agent_event_writer_events_discarded_total',
    'Events that are too large to be sent to the principal; the resource stays out of sync',
    ['event_type', 'resource_type'],
  );
  const errors = counter('agent_errors', 'Events from the principal that could not be processed', ['resource_type']);
  const processing = histogram(
    'agent_event_processing_time',
    'Seconds from the arrival of an event to its acknowledgement',
    ['status', 'agent_mode', 'resource_type'],
  );
  const latency = histogram(
    'agent_event_propagation_latency_seconds',
    'Transmission time of events from the principal, by the clocks of both sides',
    ['resource_type'],
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60],
  );
  const propagation = histogram(
    'argocd_agent_propagation_delay_seconds',
    "Seconds from a change of an object of this cluster until the hub has it, by the object's own times",
    ['resource_type'],
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800],
  );
  const terminals = gauge('argocd_agent_terminals', 'Open web terminals in this cluster');
  const requested = counter(
    'argocd_agent_resource_proxy_requests_total',
    'Requests for live resources of this cluster',
  );
  const refused = counter(
    'argocd_agent_resource_proxy_errors_total',
    'Requests for live resources of this cluster that were answered with an error',
  );
  const cached = counter('argocd_agent_redis_proxy_requests_total', "Commands from the principal to Argo CD's Redis", [
    'command',
  ]);
  const notCached = counter(
    'argocd_agent_redis_proxy_errors_total',
    "Failed commands from the principal to Argo CD's Redis",
    ['command'],
  );
  return {
    resourceProxy: { request: () => requested.inc(), failed: () => refused.inc() },
    redisProxy: {
      request: (command) => cached.inc({ command }),
      failed: (command) => notCached.inc({ command }),
    },
    terminals: { opened: () => terminals.inc(), closed: () => terminals.dec() },
    connected: () => {
      connections.inc();
      connectionStatus.set(1);
      connectionStart.setToCurrentTime();
    },
    disconnected: () => {
      connectionStatus.set(0);
      connectionStart.set(0);
    },
    authFailed: () => authFailures.inc(),
    eventReceived: () => received.inc(),
    eventSent: () => sent.inc(),
    unsendable: (event_type, resource_type) => discarded.inc({ event_type, resource_type }),
    called: grpcMetrics(registry, 'client'),
    arrived: (type, seconds) => latency.observe({ resource_type: type }, seconds),
    propagated: (resource_type, seconds) => propagation.observe({ resource_type }, seconds),
    processed: (type, status, seconds) => {
      if (status === 'failure') {
        errors.inc({ resource_type: type });
      }
      processing.observe({ status, agent_mode: state.mode, resource_type: type }, seconds);
    },
  };
}
