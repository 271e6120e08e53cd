import { Counter, Gauge, type Registry } from 'prom-client';

/** The principal's metrics, under the original's names. */
export interface PrincipalMetrics {
  readonly connectedAgents: Gauge;
  readonly connections: Counter<'agent_name'>;
  readonly eventsReceived: Counter;
  readonly eventsSent: Counter;
  /** Changes of kinds seen on the hub, by `kind` and `change`. */
  changed(kind: 'applications' | 'app_projects', change: 'created' | 'updated' | 'deleted'): void;
}

/** Registers the metrics; `outOfStep` is asked at every scrape for the resources not yet acknowledged by each agent. */
export function principalMetrics(
  registry: Registry,
  outOfStep: () => Iterable<readonly [agent: string, resources: number]>,
): PrincipalMetrics {
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name, help, registers });
  const changes = new Map<string, Counter>();
  for (const kind of ['applications', 'app_projects']) {
    for (const change of ['created', 'updated', 'deleted']) {
      changes.set(`${kind}_${change}`, counter(`principal_${kind}_${change}`, `${kind} seen ${change} on the hub`));
    }
  }
  new Gauge({
    name: 'argocd_principal_out_of_step_resources',
    help: 'Resources that an agent has not yet acknowledged in their present state',
    labelNames: ['agent_name'],
    registers,
    collect() {
      this.reset();
      for (const [agent, resources] of outOfStep()) this.set({ agent_name: agent }, resources);
    },
  });
  return {
    connectedAgents: new Gauge({
      name: 'argocd_principal_connected_agents',
      help: 'Agents that are connected',
      registers,
    }),
    connections: new Counter({
      name: 'argocd_principal_agent_connections_total',
      help: 'Connections that agents have made',
      labelNames: ['agent_name'],
      registers,
    }),
    eventsReceived: counter('principal_events_received', 'Events received from agents'),
    eventsSent: counter('principal_events_sent', 'Events sent to agents'),
    changed: (kind, change) => changes.get(`${kind}_${change}`)?.inc(),
  };
}
