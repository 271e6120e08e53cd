import { Counter, Gauge, type Registry } from 'prom-client';

/** The agent's metrics, under the original's names. */
export interface AgentMetrics {
  readonly connectionStatus: Gauge;
  readonly connectionStart: Gauge;
  readonly connections: Counter;
  readonly authFailures: Counter;
  readonly eventsReceived: Counter;
  readonly eventsSent: Counter;
}

/** Registers the metrics; `outOfStep` is asked at every scrape for the resources not yet acknowledged by the principal. */
export function agentMetrics(registry: Registry, outOfStep: () => number): AgentMetrics {
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name, help, registers });
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
  new Gauge({
    name: 'argocd_agent_out_of_step_resources',
    help: 'Resources that the principal has not yet acknowledged in their present state',
    registers,
    collect() {
      this.set(outOfStep());
    },
  });
  return {
    connectionStatus: gauge('argocd_agent_connection_status', '1 while connected to the principal'),
    connectionStart: gauge('argocd_agent_connection_start_timestamp_seconds', 'When the connection began'),
    connections: counter('argocd_agent_connections_total', 'Connections made to the principal'),
    authFailures: counter('argocd_agent_auth_failures_total', 'Times that the principal refused to authenticate'),
    eventsReceived: counter('agent_events_received', 'Events received from the principal'),
    eventsSent: counter('agent_events_sent', 'Events sent to the principal'),
  };
}
