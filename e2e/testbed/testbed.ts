import { join } from 'node:path';
import { type Cluster, startCluster } from './cluster.ts';
import { removeFolder, workFolder } from './folders.ts';

/** What a testbed starts with. */
export interface TestbedOptions {
  /** How many managed clusters. Default 1. They are called cluster1, cluster2 … */
  clusters?: number;
  /** Where everything goes. Default: a new temporary folder, removed by `stop`. */
  dir?: string;
  /** Record who asks the API servers for what: {@link Cluster.auditLog}. Default: no. */
  audit?: boolean;
  signal?: AbortSignal;
  /** Gets a line for each cluster that is up. */
  log?: (line: string) => void;
}

/** A hub and managed clusters, bare. */
export interface Testbed {
  readonly hub: Cluster;
  /** Those of the start and those added since. */
  readonly managed: Cluster[];
  /** A folder for what belongs to this testbed; `stop` removes it. */
  readonly dir: string;
  /** One more managed cluster. */
  addCluster(name?: string): Promise<Cluster>;
  /** Ends everything. */
  stop(): Promise<void>;
}

/** Starts a hub and managed clusters side by side. If one fails, all are ended and its error is thrown. */
export async function startTestbed(options: TestbedOptions = {}): Promise<Testbed> {
  const dir = options.dir ?? (await workFolder('testbed'));
  const { signal, log = () => undefined } = options;
  const running: Cluster[] = [];
  const start = async (name: string) => {
    const begin = performance.now();
    const cluster = await startCluster({
      name,
      dir: join(dir, name),
      audit: options.audit ?? false,
      ...(signal && { signal }),
    });
    log(`${name} is up at ${cluster.server} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
    running.push(cluster);
    return cluster;
  };
  const stop = async () => {
    await Promise.all(running.map((cluster) => cluster.stop()));
    if (options.dir === undefined) {
      await removeFolder(dir);
    }
  };

  const names = ['hub', ...Array.from({ length: options.clusters ?? 1 }, (_, i) => `cluster${i + 1}`)];
  const results = await Promise.allSettled(names.map(start));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed) {
    await stop();
    throw failed.reason;
  }
  const [hub, ...managed] = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  return {
    hub: hub as Cluster,
    managed,
    dir,
    async addCluster(name = `cluster${managed.length + 1}`) {
      const cluster = await start(name);
      managed.push(cluster);
      return cluster;
    },
    stop,
  };
}
