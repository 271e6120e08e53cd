import { type Application, applyMergePatch, isEqual } from '../../argocd/index.ts';
import type { MergePatch, ObjectRef, Store, StoreChange } from '../index.ts';
import type { Dice } from './dice.ts';
import type { VirtualTime } from './virtual-time.ts';

/** What an API server answers when it does not do what it is asked. */
export class Refused extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string) {
    super(`${status} ${reason}`);
    this.status = status;
    this.reason = reason;
  }
}

type Listener = (change: StoreChange<Application>) => void;

/** One cluster's Applications, with the rules of an API server that matter here. Changes by itself are at once. */
export class Cluster {
  readonly name: string;
  readonly #time: VirtualTime;
  readonly #objects = new Map<string, Application>();
  readonly #watchers = new Set<Listener>();
  #version = 100;
  #uids = 0;
  /** The API server does not answer. */
  down = false;
  /** Writes that changed something. */
  writes = 0;

  constructor(name: string, time: VirtualTime) {
    this.name = name;
    this.#time = time;
  }

  get(ref: ObjectRef): Application | undefined {
    return this.#objects.get(`${ref.namespace}/${ref.name}`);
  }

  list(): Application[] {
    return [...this.#objects.values()];
  }

  /** Calls back at once for every change from now on. */
  watch(listener: Listener): () => void {
    this.#watchers.add(listener);
    return () => this.#watchers.delete(listener);
  }

  create(object: Application): Application {
    const ref = { namespace: object.metadata.namespace ?? '', name: object.metadata.name };
    if (this.get(ref) !== undefined) {
      throw new Refused(409, 'AlreadyExists');
    }
    const { deletionTimestamp: _, ...metadata } = object.metadata;
    const uid = `${this.name}-${++this.#uids}`;
    return this.#store(undefined, { ...object, metadata: { ...metadata, uid, generation: 1 } });
  }

  patch(ref: ObjectRef, patch: MergePatch): Application {
    const before = this.#existing(ref, patch.metadata as Application['metadata'] | undefined);
    const after = applyMergePatch(before, patch) as Application;
    if (before.metadata.deletionTimestamp !== undefined) {
      const added = (after.metadata.finalizers ?? []).some((one) => !before.metadata.finalizers?.includes(one));
      if (added) {
        throw new Refused(422, 'Invalid');
      }
    }
    after.metadata.resourceVersion = before.metadata.resourceVersion as string;
    if (isEqual(before, after)) {
      return before;
    }
    if (!isEqual(before.spec, after.spec)) {
      after.metadata.generation = (before.metadata.generation ?? 0) + 1;
    }
    return this.#store(before, after);
  }

  delete(ref: ObjectRef, options: { uid?: string; propagation: 'Foreground' | 'Background' }): void {
    const before = this.#existing(ref, options.uid === undefined ? undefined : { uid: options.uid });
    const finalizers = [...(before.metadata.finalizers ?? [])];
    if (options.propagation === 'Foreground' && !finalizers.includes('foregroundDeletion')) {
      finalizers.push('foregroundDeletion');
      this.#time.after(50, () => this.#collect(ref, before.metadata.uid));
    }
    const deletionTimestamp = before.metadata.deletionTimestamp ?? `t${this.#time.now()}`;
    this.#store(before, { ...before, metadata: { ...before.metadata, finalizers, deletionTimestamp } });
  }

  /** The garbage collector is through with what depended on the object. */
  #collect(ref: ObjectRef, uid: string | undefined): void {
    const now = this.get(ref);
    if (now?.metadata.uid === uid && now !== undefined) {
      const finalizers = now.metadata.finalizers?.filter((one) => one !== 'foregroundDeletion') ?? [];
      this.#store(now, { ...now, metadata: { ...now.metadata, finalizers } });
    }
  }

  #existing(ref: ObjectRef, precondition: { uid?: string; resourceVersion?: string } | undefined): Application {
    const now = this.get(ref);
    if (now === undefined) {
      throw new Refused(404, 'NotFound');
    }
    const { uid = now.metadata.uid, resourceVersion = now.metadata.resourceVersion } = precondition ?? {};
    if (uid !== now.metadata.uid || resourceVersion !== now.metadata.resourceVersion) {
      throw new Refused(409, 'Conflict');
    }
    return now;
  }

  #store(old: Application | undefined, object: Application): Application {
    const now = { ...object, metadata: { ...object.metadata, resourceVersion: String(++this.#version) } };
    const id = `${now.metadata.namespace}/${now.metadata.name}`;
    const gone = now.metadata.deletionTimestamp !== undefined && (now.metadata.finalizers ?? []).length === 0;
    this.writes++;
    if (gone) {
      this.#objects.delete(id);
    } else {
      this.#objects.set(id, now);
    }
    for (const watcher of [...this.#watchers]) {
      watcher(gone ? { old: now, now: undefined } : { old, now });
    }
    return now;
  }
}

/** One program's access to a cluster: a cache that lags behind, calls that take time and fail. Dies with the program. */
export class ClusterStore implements Store<Application> {
  readonly #cluster: Cluster;
  readonly #time: VirtualTime;
  readonly #dice: Dice;
  readonly #cache = new Map<string, Application>();
  readonly #listeners = new Set<Listener>();
  readonly #signal: AbortSignal;
  #watching: () => void = () => undefined;
  #lastDelivery = 0;
  #epoch = 0;

  constructor(cluster: Cluster, time: VirtualTime, dice: Dice, signal: AbortSignal) {
    this.#cluster = cluster;
    this.#time = time;
    this.#dice = dice;
    this.#signal = signal;
    // A program does not go on before its first list succeeded.
    this.#list();
    signal.addEventListener('abort', () => this.#watching());
  }

  /** The watch breaks: what it had not delivered is lost, and a list some time later shows the difference. */
  breakWatch(): void {
    this.#watching();
    const epoch = ++this.#epoch;
    this.#time.after(this.#dice.delay(500), () => {
      if (this.#epoch === epoch) {
        this.#relist();
      }
    });
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    for (const now of this.#cache.values()) {
      listener({ old: undefined, now });
    }
    return () => this.#listeners.delete(listener);
  }

  read(ref: ObjectRef): Promise<Application | undefined> {
    return this.#call(() => this.#cluster.get(ref));
  }

  create(object: Application): Promise<Application> {
    return this.#call(() => this.#cluster.create(object));
  }

  patch(ref: ObjectRef, patch: MergePatch): Promise<Application> {
    return this.#call(() => this.#cluster.patch(ref, patch));
  }

  delete(ref: ObjectRef, options: { uid: string; propagation: 'Foreground' | 'Background' }): Promise<void> {
    return this.#call(() => {
      try {
        this.#cluster.delete(ref, options);
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 404) {
          throw error;
        }
      }
    });
  }

  #call<R>(work: () => R): Promise<R> {
    return new Promise((resolve, reject) => {
      const lost = () => reject(new Error('connection reset'));
      this.#time.after(this.#dice.delay(3), () => {
        if (this.#signal.aborted) {
          return;
        }
        if (this.#cluster.down || this.#dice.chance(0.01)) {
          this.#time.after(this.#dice.delay(20), lost);
          return;
        }
        let answer: () => void;
        try {
          const result = work();
          answer = () => resolve(result);
        } catch (error) {
          answer = () => reject(error);
        }
        // The write may be done and its answer lost.
        this.#time.after(this.#dice.delay(3), this.#dice.chance(0.01) ? lost : answer);
      });
    });
  }

  #relist(): void {
    if (this.#signal.aborted) {
      return;
    }
    if (this.#cluster.down) {
      this.#time.after(300, () => this.#relist());
      return;
    }
    this.#list();
  }

  #list(): void {
    const now = new Map(this.#cluster.list().map((object) => [idOf(object), object]));
    for (const [id, old] of [...this.#cache]) {
      if (now.get(id)?.metadata.uid !== old.metadata.uid) {
        this.#tell({ old, now: undefined });
      }
    }
    for (const object of now.values()) {
      this.#tell({ old: undefined, now: object });
    }
    const epoch = this.#epoch;
    this.#watching = this.#cluster.watch((change) => {
      this.#lastDelivery = Math.max(this.#lastDelivery, this.#time.now() + this.#dice.delay(4));
      this.#time.after(this.#lastDelivery - this.#time.now(), () => {
        if (this.#epoch === epoch && !this.#signal.aborted) {
          this.#tell(change);
        }
      });
    });
  }

  #tell(change: StoreChange<Application>): void {
    const object = change.now ?? change.old;
    if (object === undefined) {
      return;
    }
    const old = this.#cache.get(idOf(object));
    if (change.now === undefined) {
      this.#cache.delete(idOf(object));
    } else {
      this.#cache.set(idOf(object), change.now);
    }
    for (const listener of this.#listeners) {
      listener({ old: old ?? change.old, now: change.now });
    }
  }
}

function idOf(object: Application): string {
  return `${object.metadata.namespace}/${object.metadata.name}`;
}
