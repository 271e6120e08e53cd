import { setTimeout as sleep } from 'node:timers/promises';
import { isNotFound, type ObjectKey } from '../../lib/kube/index.ts';
import { type FleetApplication, fleetApplications, type RunningFleet } from '../fleet/index.ts';
import type { Random } from '../random/index.ts';
import { createOnce, persist } from '../testbed/index.ts';

/** What the users of the hub want of one Application, as the API server confirmed it. */
export interface Wanted {
  readonly cluster: string;
  readonly uid: string;
  /** Deleting it deletes what it deployed first. */
  readonly isCascading: boolean;
  readonly spec: NonNullable<FleetApplication['spec']>;
}

const mostPerCluster = 6;
const finalizer = 'resources-finalizer.argocd.argoproj.io';

/** The folders of the repository that {@link Traffic}'s Applications deploy: each holds one ConfigMap. */
export const variants = ['red', 'green', 'blue'] as const;

/** The repository's files. */
export const variantFiles = Object.fromEntries(
  variants.map((variant) => [
    `${variant}/variant.yaml`,
    `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: variant }\ndata: { text: ${variant} }\n`,
  ]),
);

/** Users of a fleet, who create, edit and delete Applications on the hub, and meddle on the managed clusters. */
export class Traffic {
  readonly #fleet: RunningFleet;
  readonly #random: Random;
  readonly #repoURL: string;
  readonly #wanted = new Map<string, Wanted>();
  readonly #disturbed = new Set<string>();
  readonly #done = new Map<string, number>();
  #number = 0;

  constructor(fleet: RunningFleet, random: Random, repoURL: string) {
    this.#fleet = fleet;
    this.#random = random;
    this.#repoURL = repoURL;
  }

  /** By name: what must be there when nobody writes any more. */
  get wanted(): ReadonlyMap<string, Wanted> {
    return this.#wanted;
  }

  /** How often each kind of write was made. */
  get done(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#done);
  }

  /** The Applications whose copies were deleted, by a user or with their originals, since the last call. */
  takeDisturbed(): Set<string> {
    const taken = new Set(this.#disturbed);
    this.#disturbed.clear();
    return taken;
  }

  /** Writes on until the signal is aborted; resolves when every write was answered. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#fleet.members.keys()].map((cluster) => this.#write(cluster, signal)));
  }

  async #write(cluster: string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const names = [...this.#wanted].filter(([, { cluster: of }]) => of === cluster).map(([name]) => name);
      const [what, act] = this.#choose(cluster, names);
      await act();
      this.#done.set(what, (this.#done.get(what) ?? 0) + 1);
      await sleep(this.#random.integer(20, 150));
    }
  }

  #choose(cluster: string, names: readonly string[]): [string, () => Promise<void>] {
    const random = this.#random;
    if (names.length === 0) {
      return ['create', () => this.#create(cluster)];
    }
    const name = random.pick(names);
    const dice = random.next();
    if (dice < 0.2 && names.length < mostPerCluster) {
      return ['create', () => this.#create(cluster)];
    }
    if (dice < 0.28) {
      return ['delete', () => this.#delete(name)];
    }
    if (dice < 0.36) {
      return ['replace', () => this.#replace(name)];
    }
    if (dice < 0.7) {
      return ['edit', () => this.#edit(name)];
    }
    if (dice < 0.92) {
      return ['edit the copy', () => this.#meddle(cluster, name)];
    }
    return ['delete the copy', () => this.#deleteCopy(cluster, name)];
  }

  async #create(cluster: string, name = `app-${++this.#number}-${cluster}`, formerUid?: string): Promise<void> {
    const random = this.#random;
    const isAutomatic = random.chance(0.6);
    const retry = { limit: -1, backoff: { duration: '1s', factor: 1, maxDuration: '2s' } };
    const made = await createOnce(
      this.#fleet.hub.client,
      fleetApplications,
      {
        metadata: { ...key(name), ...(random.chance(0.3) && { finalizers: [finalizer] }) },
        spec: {
          project: 'default',
          source: { repoURL: this.#repoURL, path: random.pick(variants), targetRevision: 'main' },
          destination: { name: cluster, namespace: name },
          ...(isAutomatic && {
            syncPolicy: { automated: { prune: true, selfHeal: true }, syncOptions: ['CreateNamespace=true'], retry },
          }),
        },
      },
      formerUid,
    );
    this.#want(name, cluster, made);
  }

  async #edit(name: string): Promise<void> {
    const random = this.#random;
    const { cluster } = this.#get(name);
    const spec = random.chance(0.7)
      ? { source: { path: random.pick(variants) } }
      : { info: [{ name: 'edit', value: String(random.integer(0, 999)) }] };
    // An Application that is lost on the hub shows here as "not found".
    this.#want(
      name,
      cluster,
      await persist(() => this.#fleet.hub.client.mergePatch(fleetApplications, key(name), { spec })),
    );
  }

  async #delete(name: string): Promise<void> {
    const { uid } = this.#get(name);
    this.#wanted.delete(name);
    this.#disturbed.add(name);
    await persist(() => this.#fleet.hub.client.delete(fleetApplications, key(name), { uid }));
  }

  /** Deletes an Application and makes another of its name at once, unless it takes its time to go. */
  async #replace(name: string): Promise<void> {
    const { cluster, uid, isCascading } = this.#get(name);
    await this.#delete(name);
    if (!isCascading) {
      await this.#create(cluster, name, uid);
    }
  }

  async #meddle(cluster: string, name: string): Promise<void> {
    const random = this.#random;
    const path = random.pick(variants);
    const patch = random.pick([
      { spec: { source: { path } } },
      { spec: { info: [{ name: 'meddled', value: 'here' }], syncPolicy: null } },
      { spec: { destination: { namespace: 'elsewhere' }, source: { path, targetRevision: 'nowhere' } } },
    ]);
    await this.#onCopy(() => this.#client(cluster).mergePatch(fleetApplications, key(name), patch));
  }

  async #deleteCopy(cluster: string, name: string): Promise<void> {
    this.#disturbed.add(name);
    await this.#onCopy(() => this.#client(cluster).delete(fleetApplications, key(name)));
  }

  /** The copy may not be there yet. */
  async #onCopy(attempt: () => Promise<unknown>): Promise<void> {
    await persist(attempt).catch((error: unknown) => {
      if (!isNotFound(error)) {
        throw error;
      }
    });
  }

  #client(cluster: string) {
    const member = this.#fleet.members.get(cluster);
    if (!member) {
      throw new Error(`no cluster ${cluster}`);
    }
    return member.cluster.client;
  }

  #get(name: string): Wanted {
    const wanted = this.#wanted.get(name);
    if (!wanted) {
      throw new Error(`nobody wants ${name}`);
    }
    return wanted;
  }

  #want(name: string, cluster: string, { metadata, spec }: FleetApplication): void {
    const isCascading = metadata.finalizers?.includes(finalizer) ?? false;
    this.#wanted.set(name, { cluster, uid: metadata.uid ?? '', isCascading, spec: spec ?? {} });
  }
}

const key = (name: string): ObjectKey & { namespace: string } => ({ namespace: 'argocd', name });
