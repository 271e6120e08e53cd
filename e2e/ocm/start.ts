import type { SharedCluster } from '../testbed/index.ts';
import { startHubComponents } from './hub.ts';
import { joinCluster } from './klusterlet.ts';
import type { Ocm, OcmOptions } from './ocm.ts';

/**
 * Starts OCM on a hub, each controller and agent as a process with the rights that OCM's installation gives
 * it. When one ends by itself, what waits here, such as the join of a cluster, fails at once with the end of its log. CRDs of
 * OCM that the hub has already are left alone.
 */
export async function startOcm(hub: SharedCluster, options: OcmOptions = {}): Promise<Ocm> {
  const { statusSyncIntervalMs = 10_000, evictionGraceMs = 3_600_000, leaseDurationSeconds = 60 } = options;
  const { crashed: told = failRun } = options;
  const ended = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, ended.signal]) : ended.signal;
  const crashed = (error: Error) => {
    ended.abort(error);
    told(error);
  };
  const components = await startHubComponents(hub, { signal, crashed });
  return {
    async join(cluster, labels = {}) {
      signal.throwIfAborted();
      const settings = { labels, leaseDurationSeconds, statusSyncIntervalMs, evictionGraceMs };
      const agents = await joinCluster(hub, cluster, { ...settings, signal, crashed });
      components.push(...agents);
      return {
        name: cluster.name,
        async disconnect() {
          await Promise.all(agents.map((agent) => agent.kill()));
        },
        async reconnect() {
          await Promise.all(agents.map((agent) => agent.restart(signal)));
        },
      };
    },
    async stop() {
      ended.abort();
      await Promise.all(components.map((component) => component.kill()));
    },
  };
}

/** Nobody awaits a process that should never end. */
function failRun(error: Error): never {
  throw error;
}
