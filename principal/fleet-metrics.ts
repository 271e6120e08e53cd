import type { X509Certificate } from 'node:crypto';
import { Gauge, type Registry } from 'prom-client';
import { instruments } from '../lib/ops/index.ts';

/** Agents with series of their own: a fleet of any size costs a bounded number of series. */
export const mostAgentSeries = 2_000;

/** What is known about an agent of the fleet at a scrape. */
export interface ObservedAgent {
  readonly agent: string;
  readonly isConnected: boolean;
  /** Empty while it is not known. */
  readonly mode: string;
  /** As the agent reported it; empty while it is not known. */
  readonly version: string;
  /** Its client certificate, while it is connected with one. */
  readonly certificate?: X509Certificate | undefined;
  /** For how long the oldest change has waited for the agent's acknowledgement; undefined without a connection. */
  readonly oldestMs?: number | undefined;
}

/**
 * Registers the state of each agent of the fleet. `agents` is called at every scrape. Only the first {@link mostAgentSeries}
 * by name have series; `argocd_principal_agents` counts all of them.
 */
export function fleetMetrics(registry: Registry, agents: () => readonly ObservedAgent[]): void {
  instruments(registry).gauge(
    'argocd_principal_agents',
    'Agents of the fleet, connected or not: those with a cluster Secret',
    () => agents().length,
  );
  const perAgent = (
    name: string,
    help: string,
    labels: readonly string[],
    read: (agent: ObservedAgent) => readonly [value: number, labels?: Record<string, string>] | undefined,
  ) =>
    new Gauge({
      name,
      help,
      labelNames: ['agent_name', ...labels],
      registers: [registry],
      collect() {
        this.reset();
        for (const one of observed(agents())) {
          const [value, more] = read(one) ?? [];
          if (value !== undefined) {
            this.set({ agent_name: one.agent, ...more }, value);
          }
        }
      },
    });
  perAgent('argocd_principal_agent_connected', '1 if the agent is connected, else 0', [], ({ isConnected }) => [
    isConnected ? 1 : 0,
  ]);
  perAgent(
    'argocd_principal_agent_info',
    'Mode and version of each agent that has connected since the principal started; always 1',
    ['mode', 'version'],
    ({ mode, version }) => (version === '' && mode === '' ? undefined : [1, { mode, version: printable(version) }]),
  );
  perAgent(
    'argocd_principal_agent_certificate_expiration_timestamp_seconds',
    'Unix time at which the client certificate of each connected agent expires, in seconds',
    [],
    ({ certificate }) => certificate && [certificate.validToDate.getTime() / 1_000],
  );
  perAgent(
    'argocd_principal_oldest_unsent_change_age_seconds',
    'Seconds for which the oldest change of each connected agent has waited for its acknowledgement; 0 when all is in step',
    [],
    ({ oldestMs }) => (oldestMs === undefined ? undefined : [oldestMs / 1_000]),
  );
}

function observed(agents: readonly ObservedAgent[]): readonly ObservedAgent[] {
  if (agents.length <= mostAgentSeries) {
    return agents;
  }
  return agents.toSorted((a, b) => (a.agent < b.agent ? -1 : 1)).slice(0, mostAgentSeries);
}

/** An agent says itself which version it is. */
function printable(version: string): string {
  return /^[\w.+-]{0,64}$/.test(version) ? version : 'unreadable';
}
