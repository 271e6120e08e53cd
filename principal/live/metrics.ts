import { type Counter, Gauge, type Registry } from 'prom-client';
import { instruments } from '../../lib/ops/index.ts';

const failures = ['agent_disconnected', 'timeout', 'agent_error', 'queue_missing'] as const;
const commands = ['get', 'subscribe'] as const;

/** Why a request through the resource proxy failed; the original's label values. */
export type ProxyFailure = (typeof failures)[number];
/** Whether a text is one of the reasons. */
export function isProxyFailure(text: unknown): text is ProxyFailure {
  return (failures as readonly unknown[]).includes(text);
}

/** A command of Argo CD that an agent has to answer. */
export type CacheCommand = (typeof commands)[number];

/** Requests through the resource proxy, and those that failed. */
export interface ResourceProxyMetrics {
  request(agent: string): void;
  failed(agent: string, reason: ProxyFailure): void;
}

/** Commands of Argo CD that agents had to answer, and those that failed. */
export interface RedisProxyMetrics {
  request(agent: string, command: CacheCommand): void;
  failed(agent: string, command: CacheCommand): void;
}

/** The metrics of live access, under the original's names. */
export interface LiveMetrics {
  readonly resourceProxy: ResourceProxyMetrics;
  readonly redisProxy: RedisProxyMetrics;
  /** The agent has left the fleet. */
  forgetAgent(agent: string): void;
}

/**
 * Registers the metrics. Only agents of the fleet become labels (`isMapped`): a certificate may have any name, and a label costs memory
 * until it is forgotten. `terminals` is read at every scrape: the open terminals of each agent.
 */
export function liveMetrics(
  registry: Registry,
  isMapped: (agent: string) => boolean,
  terminals: () => ReadonlyMap<string, number>,
): LiveMetrics {
  const register = instruments(registry);
  const counter = <L extends string>(name: string, help: string, second?: L) =>
    register.counter(`argocd_principal_${name}`, help, second === undefined ? ['agent_name'] : ['agent_name', second]);
  const proxied = counter(
    'resource_proxy_requests_total',
    "Requests through the resource proxy to the APIs of agents' clusters",
  );
  const notProxied = counter(
    'resource_proxy_errors_total',
    'Failed requests through the resource proxy, by reason',
    'reason',
  );
  const cached = counter(
    'redis_proxy_requests_total',
    "Commands of Argo CD to agents' Redis through the Redis proxy",
    'command',
  );
  const notCached = counter('redis_proxy_errors_total', 'Failed commands through the Redis proxy', 'command');
  new Gauge({
    name: 'argocd_principal_terminals',
    help: "Open web terminals in agents' clusters",
    labelNames: ['agent_name'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [agent, open] of terminals()) {
        if (isMapped(agent)) {
          this.set({ agent_name: agent }, open);
        }
      }
    },
  });
  const count = (metric: Counter, agent: string, rest: Record<string, string> = {}) => {
    if (isMapped(agent)) {
      metric.inc({ agent_name: agent, ...rest });
    }
  };
  return {
    resourceProxy: {
      request: (agent) => count(proxied, agent),
      failed: (agent, reason) => count(notProxied, agent, { reason }),
    },
    redisProxy: {
      request: (agent, command) => count(cached, agent, { command }),
      failed: (agent, command) => count(notCached, agent, { command }),
    },
    forgetAgent: (agent) => {
      proxied.remove({ agent_name: agent });
      for (const reason of failures) {
        notProxied.remove({ agent_name: agent, reason });
      }
      for (const command of commands) {
        cached.remove({ agent_name: agent, command });
        notCached.remove({ agent_name: agent, command });
      }
    },
  };
}
