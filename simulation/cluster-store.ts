import { isSkipped } from '../lib/argocd/index.ts';
import { jsonPatchOf, type MergePatch, needsJsonPatch, onAbort } from '../lib/base/index.ts';
import { Answers } from '../lib/kube/index.ts';
import { type ObjectRef, refOf, type Store, type StoreChange } from '../lib/sync/index.ts';
import { type Collection, type DeleteRequest, type Listener, Refused, type SimulatedObject } from './cluster.ts';
import type { SeededDice } from './dice.ts';
import type { Machine } from './machine.ts';
import type { VirtualTime } from './virtual-time.ts';

/** A write as the API server executed it. */
export interface ExecutedWrite<T> {
  readonly action: 'create' | 'update' | 'delete';
  /** As it was before; a creation: as it is now. */
  readonly object: T;
  readonly before: T | undefined;
  /** It would have been refused had the object changed since the program last saw it. */
  readonly hasVersion: boolean;
  /** The program had given it up before it was executed. */
  readonly wasCalledOff: boolean;
}

/** Called when a program sends a write; what it returns is called when the write has changed something. */
export type Audit<T> = () => (write: ExecutedWrite<T>) => void;

/** One program's access to a cluster: a cache that lags behind, calls that take time and fail. Dies with its machine. */
export class ClusterStore<T extends SimulatedObject> implements Store<T> {
  readonly #collection: Collection<T>;
  readonly #time: VirtualTime;
  readonly #dice: SeededDice;
  readonly #cache = new Map<string, T>();
  readonly #listeners = new Set<Listener<T>>();
  /** Called when a list shows that the cluster was restored, as an informer's handlers are. */
  restored: () => void = () => undefined;
  readonly #machine: Machine;
  readonly #audit: Audit<T> | undefined;
  readonly #latencyMs: number;
  readonly #hasSelector: boolean;
  #watching: () => void = () => undefined;
  #lastDelivery = 0;
  readonly #answers = new Answers();
  /** The last version that it had. */
  #reached = 0;
  #epoch = 0;

  /** @param latencyMs about how long a request takes to the API server, and as long back */
  constructor(collection: Collection<T>, dice: SeededDice, machine: Machine, audit?: Audit<T>, latencyMs = 3) {
    this.#collection = collection;
    this.#time = collection.cluster.time;
    this.#dice = dice;
    this.#machine = machine;
    this.#audit = audit;
    this.#latencyMs = latencyMs;
    this.#hasSelector = (collection as object) === collection.cluster.of('Application');
    // A program does not go on before its first list succeeded.
    this.#list();
    // A list after so many writes that the version is as high as before the restore would show nobody that there was one.
    const unlisten = collection.cluster.onRestored(() => this.breakWatch(0));
    machine.died.addEventListener('abort', () => {
      unlisten();
      this.#watching();
    });
  }

  /** The watch breaks: what it had not delivered is lost, and a list some time later shows the difference. */
  breakWatch(afterMs = this.#dice.delay(500)): void {
    this.#watching();
    const epoch = ++this.#epoch;
    this.#machine.after(afterMs, () => {
      if (this.#epoch === epoch) {
        this.#relist();
      }
    });
  }

  subscribe(listener: Listener<T>): () => void {
    this.#listeners.add(listener);
    for (const now of this.#cache.values()) {
      listener({ old: undefined, now });
    }
    return () => this.#listeners.delete(listener);
  }

  /** The object as the cache has it. */
  get(ref: ObjectRef): T | undefined {
    return this.#cache.get(`${ref.namespace}/${ref.name}`);
  }

  /** All objects of the cache. */
  list(): T[] {
    return [...this.#cache.values()];
  }

  /** The first object of the cache that is older than it was at this version of the cluster; undefined: there is none. */
  lacks(version: number, concerns: (object: T) => boolean): T | undefined {
    const isOld = (object: T) => Number(object.metadata.resourceVersion) <= version;
    const isMissing = (object: T) =>
      isOld(object) && this.#isSelected(object) && this.get(refOf(object))?.metadata.uid !== object.metadata.uid;
    const isBehind = (object: T) => {
      const now = this.#collection.get(refOf(object));
      return now === undefined
        ? (this.#collection.goneAt(refOf(object)) ?? version + 1) <= version
        : isOld(now) && now.metadata.resourceVersion !== object.metadata.resourceVersion;
    };
    return (
      this.#collection.list().find((object) => concerns(object) && isMissing(object)) ??
      this.list().find((object) => concerns(object) && isBehind(object))
    );
  }

  /** All objects as the API server has them, and the version of that. */
  readAll(signal: AbortSignal): Promise<{ readonly items: T[]; readonly resourceVersion: string }> {
    return this.#call(
      () => ({
        items: this.#collection.list().filter((object) => this.#isSelected(object)),
        resourceVersion: String(this.#collection.cluster.version),
      }),
      signal,
    );
  }

  async read(ref: ObjectRef, signal?: AbortSignal): Promise<T | undefined> {
    return this.#answered(ref, await this.#call(() => this.#collection.get(ref), signal));
  }

  create(object: T, signal?: AbortSignal): Promise<T> {
    return this.#write('create', refOf(object), false, () => this.#collection.create(object), signal);
  }

  /** As `KubeClient.patch`. */
  async patch(ref: ObjectRef, patch: MergePatch, signal?: AbortSignal, planned?: T): Promise<T> {
    if (!needsJsonPatch(patch)) {
      return this.#mergePatch(ref, patch, signal);
    }
    const known = planned ?? (await this.read(ref, signal));
    const operations = jsonPatchOf(known ?? {}, patch);
    try {
      const work = () => this.#collection.jsonPatch(ref, operations);
      return await this.#write('update', ref, namesVersion(patch), work, signal);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 422) {
        throw error;
      }
      const now = await this.read(ref, signal);
      throw now?.metadata.resourceVersion === known?.metadata.resourceVersion ? error : new Refused(409, 'Conflict');
    }
  }

  #mergePatch(ref: ObjectRef, patch: MergePatch, signal: AbortSignal | undefined): Promise<T> {
    return this.#write('update', ref, namesVersion(patch), () => this.#collection.patch(ref, patch), signal);
  }

  /** Writes the object as a whole, over the version that it carries. */
  replace(object: T, signal?: AbortSignal): Promise<T> {
    const ref = refOf(object);
    return this.#write('update', ref, true, () => this.#collection.replace(ref, object), signal);
  }

  async delete(ref: ObjectRef, options: DeleteRequest, signal?: AbortSignal): Promise<void> {
    const work = () => {
      try {
        this.#collection.delete(ref, options);
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 404) {
          throw error;
        }
      }
      return this.#collection.get(ref);
    };
    await this.#write('delete', ref, options.resourceVersion !== undefined, work, signal);
  }

  /** As a real client tells its informers. */
  #answered<R extends T | undefined>(ref: ObjectRef, object: R): R {
    const known = this.get(ref);
    if (object === undefined) {
      this.#answers.lacks(ref, known);
    } else if (object.metadata.resourceVersion !== known?.metadata.resourceVersion) {
      this.#answers.has(object);
    }
    return object;
  }

  async #write<R extends T | undefined>(
    action: ExecutedWrite<T>['action'],
    ref: ObjectRef,
    hasVersion: boolean,
    work: () => R,
    signal: AbortSignal | undefined,
  ): Promise<R> {
    const executed = this.#audit?.();
    const answer = await this.#call(() => {
      const { cluster, kind } = this.#collection;
      if (cluster.forbids) {
        throw new Refused(403, 'Forbidden');
      }
      const refusal = cluster.refusalOf({ action, kind, ref });
      if (refusal !== undefined) {
        throw refusal;
      }
      const before = action === 'create' ? undefined : this.#collection.get(ref);
      const after = work();
      const object = before ?? (after as T | undefined);
      if (object !== undefined && before !== after) {
        executed?.({ action, object, before, hasVersion, wasCalledOff: signal?.aborted === true });
      }
      return after;
    }, signal);
    return this.#answered(ref, answer);
  }

  /** An answer that nobody waits for any more is dropped; the request is executed nevertheless. */
  #call<R>(work: () => R, signal: AbortSignal | undefined): Promise<R> {
    return new Promise((resolve, reject) => {
      const machine = this.#machine;
      const lost = () => reject(new Error('connection reset'));
      const unlisten = onAbort(signal, () => machine.isDead || reject(signal?.reason));
      const answered = (ms: number, settle: () => void) =>
        machine.after(ms, () => {
          unlisten();
          settle();
        });
      const arrive = () => {
        if (machine.isDead && !machine.leavesRequests) {
          return;
        }
        if (machine.isCutOff) {
          this.#stick(arrive, lost, signal);
          return;
        }
        if (this.#collection.cluster.down || this.#dice.chance(0.01)) {
          answered(this.#dice.delay(20), lost);
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
        const { restores } = this.#collection.cluster;
        const arrives = () => !machine.isCutOff && this.#collection.cluster.restores === restores;
        answered(
          this.#dice.delay(this.#latencyMs),
          this.#dice.chance(0.01) ? lost : () => (arrives() ? answer() : lost()),
        );
      };
      this.#time.after(this.#dice.delay(this.#latencyMs), arrive);
    });
  }

  /** A request on a connection that carries nothing: it fails, or it waits there for better times, unless it is called off. */
  #stick(arrive: () => void, lost: () => void, signal: AbortSignal | undefined): void {
    if (this.#dice.chance(0.5)) {
      this.#machine.after(this.#dice.delay(300), lost);
      return;
    }
    const callOff = this.#machine.onReconnect(() => {
      unlisten();
      this.#time.after(this.#dice.delay(20), arrive);
    });
    const unlisten = onAbort(signal, callOff);
  }

  #relist(): void {
    if (this.#machine.isDead) {
      return;
    }
    if (this.#collection.cluster.down || this.#machine.isCutOff) {
      this.#machine.after(300, () => this.#relist());
      return;
    }
    this.#list();
  }

  #list(): void {
    this.#answers.listBegins();
    const shown = this.#collection
      .list()
      .filter((object) => this.#isSelected(object))
      .sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
    const now = new Map(shown.map((object) => [idOf(object), object]));
    const gone = [...this.#cache].filter(([id, old]) => now.get(id)?.metadata.uid !== old.metadata.uid);
    for (const [id] of gone) {
      this.#cache.delete(id);
    }
    const listed = shown.map((object) => ({ old: this.#cache.get(idOf(object)), now: object }));
    const isNews = ({ old, now }: StoreChange<T>) => old?.metadata.resourceVersion !== now?.metadata.resourceVersion;
    // As a real informer: after a restore each object is reported, whether it differs or not.
    const { version } = this.#collection.cluster;
    const isRestored =
      version < Number(this.#answers.latest(String(this.#reached))) ||
      listed.some(({ now }) => this.#answers.contradict(now)) ||
      listed.some((change) => isNews(change) && Number(change.now.metadata.resourceVersion) <= this.#reached);
    const gap = isRestored ? 'restore' : 'list';
    const changes = isRestored ? listed : listed.filter(isNews);
    this.#reached = version;
    this.#answers.listed();
    for (const { now: object } of changes) {
      this.#cache.set(idOf(object), object);
    }
    // As a real informer: the cache is complete before anybody hears of it, and what is new comes before what has changed.
    const isNew = ({ old }: StoreChange<T>) => old === undefined;
    for (const change of [
      ...gone.map(([, old]) => ({ old, now: undefined })),
      ...changes.filter(isNew),
      ...changes.filter((change) => !isNew(change)),
    ]) {
      this.#tell({ ...change, gap });
    }
    if (isRestored) {
      this.restored();
    }
    const epoch = this.#epoch;
    this.#watching = this.#collection.watch((change) => {
      if (this.#collection.cluster.isSilent) {
        return;
      }
      this.#lastDelivery = Math.max(this.#lastDelivery, this.#time.now() + this.#dice.delay(4));
      this.#machine.after(this.#lastDelivery - this.#time.now(), () => {
        if (this.#epoch === epoch && !this.#machine.isDead) {
          this.#notify(this.#selected(change));
        }
      });
    });
  }

  /** What a watch with a selector makes of a change: what leaves the selection is gone, at the version at which it left. */
  #selected({ old, now }: StoreChange<T>): StoreChange<T> {
    const before = old !== undefined && this.#isSelected(old) ? old : undefined;
    const after = now !== undefined && this.#isSelected(now) ? now : undefined;
    const resourceVersion = now?.metadata.resourceVersion;
    return before === undefined || after !== undefined || resourceVersion === undefined
      ? { old: before, now: after }
      : { old: { ...before, metadata: { ...before.metadata, resourceVersion } }, now: undefined };
  }

  /** Programs list and watch Applications without those that are labelled out of synchronisation. */
  #isSelected(object: T): boolean {
    return !this.#hasSelector || !isSkipped(object);
  }

  #notify(change: StoreChange<T>): void {
    const object = change.now ?? change.old;
    if (object === undefined) {
      return;
    }
    this.#reached = Number(object.metadata.resourceVersion);
    this.#answers.shown(String(this.#reached), change.now === undefined ? object : undefined);
    const old = this.#cache.get(idOf(object));
    if (change.now === undefined) {
      this.#cache.delete(idOf(object));
    } else {
      this.#cache.set(idOf(object), change.now);
    }
    this.#tell({ old: change.now === undefined ? (change.old ?? old) : (old ?? change.old), now: change.now });
  }

  #tell(change: StoreChange<T>): void {
    for (const listener of this.#listeners) {
      listener(change);
    }
  }
}

function idOf(object: SimulatedObject): string {
  return `${object.metadata.namespace}/${object.metadata.name}`;
}

/** Whether a patch applies to one version of the object only. */
function namesVersion({ metadata }: MergePatch): boolean {
  return (metadata as { readonly resourceVersion?: string } | undefined)?.resourceVersion !== undefined;
}
