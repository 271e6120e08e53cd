import { setTimeout as sleep } from 'node:timers/promises';
import { clusterRoles, configMaps, type KubeClient, namespaces, serviceAccounts } from '../../lib/kube/index.ts';
import { type AggregatedRole, areAggregated } from './aggregated-roles.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { type EtcdImage, imageOf, restoreImage } from './etcd-image.ts';

/** A cluster of a pool, in use. */
export interface Loan {
  readonly cluster: Cluster;
  /** Resolves when the cluster is as it was, and free, or gone because it could not be restored. */
  giveBack(): Promise<void>;
}

/** How a pool makes clusters, and how long it keeps them. */
export interface ClusterPoolOptions {
  /** Brings a new cluster to the state that each of its users finds. */
  prepare: (cluster: Cluster) => Promise<void>;
  /** A cluster that nobody used for so long is ended. Milliseconds. */
  idleMs: number;
  /** Reports a cluster that could not be restored, and was ended. */
  failed: (error: unknown) => void;
  /** How long a restoration may take. Milliseconds; default 30,000. */
  restoreMs?: number;
}

interface Member {
  readonly cluster: Cluster;
  readonly image: EtcdImage;
  timer?: NodeJS.Timeout;
}

/**
 * Clusters that are used one after the other. Each user finds one as it was when it was new: after each use, etcd is brought
 * back to what it held.
 */
export class ClusterPool {
  readonly #options: ClusterPoolOptions;
  readonly #all = new Set<Member>();
  readonly #free: Member[] = [];
  readonly #waiting: ((member: Member | undefined) => void)[] = [];
  /** How many are being restored, and are not promised to somebody who waits. */
  #returning = 0;
  #stopped = false;

  constructor(options: ClusterPoolOptions) {
    this.#options = options;
  }

  /** A free cluster, or one that is being restored, or a new one. */
  async lend(): Promise<Loan> {
    const member = this.#free.pop() ?? (await this.#returned()) ?? (await this.#start());
    clearTimeout(member.timer);
    return { cluster: member.cluster, giveBack: () => this.#takeBack(member) };
  }

  /** Ends all clusters. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#all].map((member) => this.#end(member)));
  }

  async #start(): Promise<Member> {
    const cluster = await startCluster({ name: 'pool' });
    try {
      await this.#options.prepare(cluster);
      while (!(await isComplete(cluster.client))) {
        await sleep(100);
      }
      const member = { cluster, image: await imageOf(cluster) };
      this.#all.add(member);
      return member;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** The next cluster that comes back, if there is one for everybody who waits. */
  async #returned(): Promise<Member | undefined> {
    if (this.#returning <= this.#waiting.length) {
      return undefined;
    }
    return await new Promise((resolve) => this.#waiting.push(resolve));
  }

  async #takeBack(member: Member): Promise<void> {
    const { failed, idleMs, restoreMs = 30_000 } = this.#options;
    this.#returning += 1;
    let isRestored = false;
    try {
      await restoreImage(member.cluster, member.image, AbortSignal.timeout(restoreMs));
      isRestored = true;
    } catch (error) {
      if (!this.#stopped) {
        failed(error);
      }
    }
    this.#returning -= 1;
    const next = this.#waiting.shift();
    if (!isRestored) {
      await this.#end(member);
      next?.(undefined);
    } else if (next) {
      next(member);
    } else if (!this.#stopped) {
      this.#free.push(member);
      member.timer = setTimeout(() => void this.#end(member), idleMs);
    }
  }

  async #end(member: Member): Promise<void> {
    clearTimeout(member.timer);
    this.#all.delete(member);
    const index = this.#free.indexOf(member);
    if (index >= 0) {
      this.#free.splice(index, 1);
    }
    await member.cluster.stop();
  }
}

/** Whether the controllers have made what every cluster has. What an image lacks they would make again after each restoration. */
async function isComplete(client: KubeClient): Promise<boolean> {
  const [spaces, accounts, bundles, roles] = await Promise.all([
    client.list(namespaces),
    client.list(serviceAccounts),
    client.list(configMaps),
    client.list(clusterRoles),
  ]);
  const has = (objects: typeof accounts, name: string) =>
    spaces.every((space) =>
      objects.some(({ metadata }) => metadata.namespace === space.metadata.name && metadata.name === name),
    );
  return has(accounts, 'default') && has(bundles, 'kube-root-ca.crt') && areAggregated(roles as AggregatedRole[]);
}
