import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { EventOutcome } from '../lib/bridge/index.ts';
import { grpcMetrics } from '../lib/ops/index.ts';
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
    /** Whether there is a connection to Argo CD's Redis. */
    isRedisConnected(): boolean;
  },
): AgentMetrics {
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name, help, registers });
  const gauge = (name: string, help: string, read?: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      ...(read && {
        collect() {
          (this as Gauge).set(read());
        },
      }),
    });
  gauge(
    'argocd_agent_out_of_step_resources',
    'Resources whose current state the principal has not acknowledged',
    state.outOfStep,
  );
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
  const discarded = new Counter({
    name: 'argocd_agent_event_writer_events_discarded_total',
    help: 'Events that are too large to be sent to the principal; the resource stays out of sync',
    labelNames: ['event_type', 'resource_type'],
    registers,
  });
  const errors = new Counter({
    name: 'agent_errors',
    help: 'Events from the principal that could not be processed',
    labelNames: ['resource_type'],
    registers,
  });
  const processing = new Histogram({
    name: 'agent_event_processing_time',
    help: 'Seconds from the arrival of an event to its acknowledgement',
    labelNames: ['status', 'agent_mode', 'resource_type'],
    registers,
  });
  const latency = new Histogram({
    name: 'agent_event_propagation_latency_seconds',
    help: 'Transmission time of events from the principal, by the clocks of both sides',
    labelNames: ['resource_type'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60],
    registers,
  });
  const terminals = gauge('argocd_agent_terminals', 'Open web terminals in this cluster');
  const cached = new Counter({
    name: 'argocd_agent_redis_proxy_requests_total',
    help: "Commands from the principal to Argo CD's Redis",
    labelNames: ['command'],
    registers,
  });
  const notCached = new Counter({
    name: 'argocd_agent_redis_proxy_errors_total',
    help: "Failed commands from the principal to Argo CD's Redis",
    labelNames: ['command'],
    registers,
  });
  return {
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
    processed: (type, status, seconds) => {
      if (status === 'failure') {
        errors.inc({ resource_type: type });
      }
      processing.observe({ status, agent_mode: state.mode, resource_type: type }, seconds);
    },
  };
}
