import { ApiError, type Informer, type InformerHandler, type KubeClient, type Lease } from '../../../lib/kube/index.ts';
import { createLogger, createRegistry } from '../../../lib/ops/index.ts';
import { Replicas } from '../index.ts';
import type { ReplicaTiming } from '../replica-lease.ts';

const copy = (lease: Lease): Lease => structuredClone(lease);
const refused = (status: number, reason: string) => new ApiError({ status, reason, message: reason });

/** An API server that has nothing but Leases: versions, preconditions and a watch, all in memory. */
export class LeaseServer {
  readonly stored = new Map<string, Lease>();
  /** Every version of every Lease. */
  readonly history: Lease[] = [];
  #version = 0;
  readonly #watchers = new Set<(type: 'put' | 'delete', lease: Lease, old: Lease | undefined) => void>();

  /** A client and its cache. While `isCut()` or `isBlind()` says so, the watch brings nothing; in the first case, requests fail. */
  connect(
    isCut: () => boolean,
    isBlind: () => boolean = () => false,
  ): { client: KubeClient; informer: Informer<Lease>; heal(): void } {
    const cache = new Map<string, Lease>();
    const handlers = new Set<InformerHandler<Lease>>();
    const put = (lease: Lease) => {
      const old = cache.get(lease.metadata.name);
      cache.set(lease.metadata.name, lease);
      for (const handler of handlers) {
        if (old === undefined) {
          handler.added?.(lease, false);
        } else {
          handler.updated?.(old, lease);
        }
      }
    };
    const remove = (name: string) => {
      const last = cache.get(name);
      cache.delete(name);
      for (const handler of handlers) {
        if (last !== undefined) {
          handler.deleted?.(last);
        }
      }
    };
    this.#watchers.add((type, lease) => {
      setTimeout(() => {
        if (isCut() || isBlind()) {
          return;
        }
        if (type === 'put') {
          put(lease);
        } else {
          remove(lease.metadata.name);
        }
      }, 1);
    });
    const request = async <R>(act: () => R): Promise<R> => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      if (isCut()) {
        throw new Error('the API server is away');
      }
      const result = act();
      await new Promise((resolve) => setTimeout(resolve, 1));
      return result;
    };
    const client = {
      get: (_: unknown, { name }: { name: string }) =>
        request(() => {
          const found = this.stored.get(name);
          return found && copy(found);
        }),
      create: (_: unknown, lease: Lease) =>
        request(() => {
          if (this.stored.has(lease.metadata.name)) {
            throw refused(409, 'AlreadyExists');
          }
          return this.#put(lease, `uid-${this.#version}`);
        }),
      replace: (_: unknown, lease: Lease) =>
        request(() => {
          const now = this.stored.get(lease.metadata.name);
          if (now === undefined) {
            throw refused(404, 'NotFound');
          }
          if (now.metadata.resourceVersion !== lease.metadata.resourceVersion) {
            throw refused(409, 'Conflict');
          }
          return this.#put(lease, now.metadata.uid ?? '');
        }),
      delete: (_: unknown, { name }: { name: string }, options: { uid?: string; resourceVersion?: string }) =>
        request(() => {
          const { uid, resourceVersion } = this.stored.get(name)?.metadata ?? {};
          if (
            (options.uid !== undefined && options.uid !== uid) ||
            (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion)
          ) {
            throw refused(uid === undefined ? 404 : 409, uid === undefined ? 'NotFound' : 'Conflict');
          }
          this.remove(name);
        }),
    } as unknown as KubeClient;
    const informer = {
      subscribe: (handler: InformerHandler<Lease>) => {
        for (const lease of cache.values()) {
          handler.added?.(lease, true);
        }
        handlers.add(handler);
        return () => handlers.delete(handler);
      },
      get: ({ name }: { name: string }) => cache.get(name),
      list: () => [...cache.values()],
    } as unknown as Informer<Lease>;
    for (const lease of this.stored.values()) {
      put(lease);
    }
    return {
      client,
      informer,
      heal: () => {
        for (const name of [...cache.keys()].filter((known) => !this.stored.has(known))) {
          remove(name);
        }
        for (const lease of this.stored.values()) {
          if (cache.get(lease.metadata.name)?.metadata.resourceVersion !== lease.metadata.resourceVersion) {
            put(lease);
          }
        }
      },
    };
  }

  remove(name: string): void {
    const last = this.stored.get(name);
    this.stored.delete(name);
    this.#version++;
    for (const watcher of this.#watchers) {
      if (last !== undefined) {
        watcher('delete', last, last);
      }
    }
  }

  #put(lease: Lease, uid: string): Lease {
    const written = copy({
      ...lease,
      metadata: { ...lease.metadata, uid, resourceVersion: String(++this.#version) },
    });
    const old = this.stored.get(written.metadata.name);
    this.stored.set(written.metadata.name, written);
    this.history.push(written);
    for (const watcher of this.#watchers) {
      watcher('put', written, old);
    }
    return copy(written);
  }
}

/** How a {@link TestReplica} is made. */
export interface TestReplicaOptions {
  readonly pod?: string;
  readonly timing?: ReplicaTiming;
  readonly rebalancing?: { readonly lookMs: number; readonly patience: number };
  /** Called before it serves an agent. */
  readonly held?: (agent: string) => void;
  /** Default: its caches are never behind. */
  readonly caughtUp?: (agent: string, signal: AbortSignal) => Promise<void>;
  readonly catchUpMs?: number;
}

/** One principal of a test: a replica whose engine only remembers what it serves. */
export class TestReplica {
  readonly replicas: Replicas;
  /** Agents whose sessions are attached. */
  readonly attached = new Set<string>();
  readonly lost: string[] = [];
  readonly #stop = new AbortController();
  readonly #heal: () => void;
  readonly #ended: Promise<void>;
  #isCut = false;
  #isBlind = false;

  constructor(server: LeaseServer, options: TestReplicaOptions = {}) {
    const { client, informer, heal } = server.connect(
      () => this.#isCut,
      () => this.#isBlind,
    );
    this.#heal = heal;
    const {
      pod,
      rebalancing,
      held,
      catchUpMs,
      caughtUp = async () => undefined,
      timing = { renewMs: 100, deadlineMs: 500, durationMs: 1_000 },
    } = options;
    this.replicas = new Replicas({
      client,
      namespace: 'argocd',
      informer,
      timing,
      caughtUp,
      catchUpMs,
      address: '',
      fingerprint: '',
      version: '',
      env: pod === undefined ? {} : { POD_NAME: pod },
      registry: createRegistry(),
      rebalancing,
      logger: createLogger({ level: 'fatal' }),
    });
    this.replicas.follow({
      held: (agent) => {
        held?.(agent);
        this.attached.add(agent);
      },
      lost: (agent) => {
        this.lost.push(agent);
        this.leave(agent);
      },
      released: (agent) => void this.attached.delete(agent),
      changed: () => undefined,
      leadershipChanged: () => undefined,
    });
    this.#ended = this.replicas.run(this.#stop.signal);
  }

  /** Whether the API server is out of its reach. */
  get isAway(): boolean {
    return this.#isCut;
  }

  get identity(): string {
    return this.replicas.directory.identity;
  }

  /** The agent opens a stream to this replica. */
  come(agent: string, mode = 'managed'): void {
    if (this.replicas.holds.connected(agent, { mode, version: '1.0.0' })) {
      this.attached.add(agent);
    }
  }

  /** The agent's stream ends. */
  leave(agent: string): void {
    this.attached.delete(agent);
    this.replicas.holds.disconnected(agent);
  }

  /** From now on the API server is out of reach. */
  cut(): void {
    this.#isCut = true;
  }

  /** From now on its watch brings nothing, though requests are answered. */
  blind(): void {
    this.#isBlind = true;
  }

  heal(): void {
    this.#isCut = false;
    this.#isBlind = false;
    this.#heal();
  }

  /** As `kill -9`. */
  kill(): void {
    this.#isCut = true;
    this.#stop.abort();
  }

  /** A clean end. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
    await this.replicas.close();
  }
}
