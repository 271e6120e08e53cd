import { hasGoneBack, isNewerVersion } from '../../lib/base/index.ts';
import { type Informer, type KubeClient, type Lease, leases } from '../../lib/kube/index.ts';
import { agentLeaseName } from '../sessions/connection-records.ts';
import { agentOfHold } from './hold-record.ts';

const writeTimeoutMs = 5_000;

/** What a {@link HoldStore} works with. */
export interface HoldStoreOptions {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'replace'>;
  readonly namespace: string;
  readonly informer: Informer<Lease>;
  /** The cache has an agent's Lease, in a new version, or has it no more: then as it was last. */
  readonly seen: (agent: string, lease: Lease) => void;
  /** This replica has written or read it. */
  readonly wrote: (agent: string) => void;
}

/** The agents' Leases as this replica saw or wrote them, whichever is newer: its cache may be behind its own writes. */
export class HoldStore {
  readonly #options: HoldStoreOptions;
  readonly #written = new Map<string, Lease>();

  constructor(options: HoldStoreOptions) {
    this.#options = options;
  }

  /** Reports what there is, and then every change. */
  follow(): void {
    const seen = (lease: Lease) => {
      const agent = agentOfHold(lease);
      if (agent !== undefined) {
        const written = this.#written.get(agent);
        if (written !== undefined && this.newest(agent) !== written) {
          this.#written.delete(agent);
        }
        this.#options.seen(agent, lease);
      }
    };
    this.#options.informer.subscribe({
      added: (now, _, gap) => {
        if (gap === 'restore') {
          this.#written.delete(agentOfHold(now) ?? '');
        }
        seen(now);
      },
      updated: (old, now, gap) => {
        if (gap === 'restore' || hasGoneBack(old.metadata, now.metadata)) {
          this.#written.delete(agentOfHold(now) ?? '');
        }
        seen(now);
      },
      deleted: (last) => {
        const agent = agentOfHold(last);
        if (agent !== undefined && this.#written.get(agent)?.metadata.uid === last.metadata.uid) {
          this.#written.delete(agent);
        }
        seen(last);
      },
    });
  }

  /** The agents with a Lease, and that Lease as the cache has it. */
  *entries(): Generator<readonly [agent: string, lease: Lease]> {
    for (const lease of this.#options.informer.list()) {
      const agent = agentOfHold(lease);
      if (agent !== undefined) {
        yield [agent, lease];
      }
    }
  }

  /** Undefined: the agent has none. */
  newest(agent: string): Lease | undefined {
    const { informer, namespace } = this.#options;
    const cached = informer.get({ namespace, name: agentLeaseName(agent) });
    const seen = cached !== undefined && agentOfHold(cached) === agent ? cached : undefined;
    const written = this.#written.get(agent);
    return written !== undefined &&
      (seen === undefined || isNewerVersion(written.metadata.resourceVersion, seen.metadata.resourceVersion))
      ? written
      : seen;
  }

  /**
   * Creates the Lease, or replaces the version that it carries.
   * @throws ApiError Conflict, NotFound or AlreadyExists when somebody was faster
   */
  async write(agent: string, lease: Lease, signal = AbortSignal.timeout(writeTimeoutMs)): Promise<void> {
    const { client } = this.#options;
    const isNew = lease.metadata.resourceVersion === undefined;
    const written = isNew
      ? await client.create(leases, lease, { signal })
      : await client.replace(leases, lease, { signal });
    this.#keep(agent, written);
  }

  /** Asks the API server what the cache may not have yet. */
  async refresh(agent: string): Promise<void> {
    const { client, namespace } = this.#options;
    const signal = AbortSignal.timeout(writeTimeoutMs);
    const found = await client.get(leases, { namespace, name: agentLeaseName(agent) }, signal);
    if (found === undefined) {
      this.#written.delete(agent);
    } else {
      this.#keep(agent, found);
    }
  }

  #keep(agent: string, lease: Lease): void {
    this.#written.set(agent, lease);
    if (this.newest(agent) !== lease) {
      this.#written.delete(agent);
    }
    this.#options.wrote(agent);
  }
}
