import type { Application, AppProject, GpgKeys, Metadata, RepositorySecret } from '../lib/argocd/index.ts';
import { isEqual, type JsonPatchOperation, type MergePatch } from '../lib/base/index.ts';
import type { ObjectRef, StoreChange } from '../lib/sync/index.ts';
import { canonical, merged, patched } from './json.ts';
import type { VirtualTime } from './virtual-time.ts';

/** The kinds of objects that simulated clusters hold: a kind that is added here can be used at once. */
export interface Kinds {
  readonly Application: Application;
  readonly AppProject: AppProject;
  readonly Secret: RepositorySecret;
  readonly ConfigMap: GpgKeys;
  /** Who holds what, among several principals. */
  readonly Lease: SimulatedObject;
}

/** What the simulated API server needs to know of an object, whatever its kind. */
export interface SimulatedObject {
  readonly metadata: Metadata;
  readonly spec?: unknown;
}

/** What an API server answers when it does not do what it is asked. */
export class Refused extends Error {
  readonly status: number;
  readonly reason: string;
  readonly details: { readonly causes: readonly { readonly field: string }[] };

  /** @param field the field of the object that is the cause */
  constructor(status: number, reason: string, field?: string) {
    super(`${status} ${reason}`);
    this.status = status;
    this.reason = reason;
    this.details = { causes: field === undefined ? [] : [{ field }] };
  }
}

/** How an object is deleted, and on which conditions. */
export interface DeleteRequest {
  readonly uid?: string;
  readonly resourceVersion?: string;
  /** Default: `Background`, unless it is being deleted in another way. */
  readonly propagation?: 'Foreground' | 'Background' | 'Orphan';
}

/** What somebody asks an API server to write. */
export interface WriteRequest {
  readonly action: 'create' | 'update' | 'delete';
  readonly kind: keyof Kinds;
  readonly ref: ObjectRef;
}

/** An admission policy, or what else stands between a request and the storage: what it answers to a write that it refuses. */
export type Refusal = (request: WriteRequest) => Refused | undefined;

/** Writes of the Applications of a name, which an API server answers so for good. */
export interface LastingAnswer {
  readonly cluster: SimulatedCluster;
  readonly name: string;
  readonly answer: readonly [status: number, reason: string];
}

/** All that an API server had at a moment. */
export interface ClusterBackup {
  readonly version: number;
  readonly objects: ReadonlyMap<keyof Kinds, ReadonlyMap<string, SimulatedObject>>;
}

/** Hears of every change of a kind of objects. */
export type Listener<T> = (change: StoreChange<T>) => void;

type Report = (object: SimulatedObject, isGone: boolean) => void;

/** One cluster's API server. */
export class SimulatedCluster {
  readonly name: string;
  readonly time: VirtualTime;
  readonly #watchers: Report[] = [];
  readonly #collections = new Map<keyof Kinds, Collection<SimulatedObject>>();
  #version = 100;
  #uids = 0;
  /** The API server does not answer. */
  down = false;
  /** The API server refuses to write, as one does that has not loaded its rules yet. */
  forbids = false;
  #isSilent = false;
  /** Namespaces that are not there. */
  readonly missing = new Set<string>();
  /** Namespaces that are being deleted: nothing new comes into them. */
  readonly terminating = new Set<string>();
  /** What refuses writes of programs. */
  readonly refusals = new Set<Refusal>();
  readonly #restored = new Set<() => void>();
  /** How often its storage was restored. */
  restores = 0;
  /** Writes that changed something. */
  writes = 0;

  constructor(name: string, time: VirtualTime) {
    this.name = name;
    this.time = time;
  }

  /** All objects of one kind. */
  of<K extends keyof Kinds>(kind: K): Collection<Kinds[K]> {
    let collection = this.#collections.get(kind);
    if (collection === undefined) {
      collection = new Collection<SimulatedObject>(this, kind);
      this.#collections.set(kind, collection);
      for (const listener of this.#watchers) {
        report(collection, listener);
      }
    }
    return collection as unknown as Collection<Kinds[K]>;
  }

  /** Calls back for every change of any kind. */
  watch(listener: Report): void {
    this.#watchers.push(listener);
    for (const collection of this.#collections.values()) {
      report(collection, listener);
    }
  }

  /** What the API server answers to a write instead of executing it; undefined: it executes it. */
  refusalOf(request: WriteRequest): Refused | undefined {
    for (const refusal of this.refusals) {
      const answer = refusal(request);
      if (answer !== undefined) {
        return answer;
      }
    }
    return undefined;
  }

  /** All that it has now. */
  snapshot(): ClusterBackup {
    const objects = Array.from(this.#collections, ([kind, collection]) => [kind, collection.snapshot()] as const);
    return { version: this.#version, objects: new Map(objects) };
  }

  /** Its watches say nothing any more, while writes are still answered. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /**
   * From now on its watches say nothing, until a restore breaks them. Nothing else ends that: no API server goes on with a watch
   * that has left something out.
   */
  silence(): void {
    this.#isSilent = true;
  }

  /** The storage has what it had then, at the versions of then. Watches break, and what is not answered yet never is. */
  restore({ version, objects }: ClusterBackup): void {
    this.#version = version;
    this.#isSilent = false;
    this.restores++;
    for (const [kind, collection] of this.#collections) {
      collection.restore(objects.get(kind) ?? new Map());
    }
    for (const listener of [...this.#restored]) {
      listener();
    }
  }

  /** Calls back when its storage was restored, until the returned function is called. */
  onRestored(listener: () => void): () => void {
    this.#restored.add(listener);
    return () => this.#restored.delete(listener);
  }

  /** A uid that no object had before. */
  newUid(): string {
    return `${this.name}-${++this.#uids}`;
  }

  /** The version that was written last. */
  get version(): number {
    return this.#version;
  }

  /** The version of an object that is being written. */
  newVersion(): string {
    this.writes++;
    return String(++this.#version);
  }
}

/** One cluster's objects of one kind, with the rules of an API server that matter here. Changes by themselves are at once. */
export class Collection<T extends SimulatedObject> {
  readonly cluster: SimulatedCluster;
  readonly kind: keyof Kinds;
  #objects = new Map<string, T>();
  readonly #watchers = new Set<Listener<T>>();
  readonly #goneAt = new Map<string, number>();

  constructor(cluster: SimulatedCluster, kind: keyof Kinds) {
    this.cluster = cluster;
    this.kind = kind;
  }

  /** The version at which an object of this name was deleted last; undefined: none was. */
  goneAt(ref: ObjectRef): number | undefined {
    return this.#goneAt.get(`${ref.namespace}/${ref.name}`);
  }

  get(ref: ObjectRef): T | undefined {
    return this.#objects.get(`${ref.namespace}/${ref.name}`);
  }

  list(): T[] {
    return [...this.#objects.values()];
  }

  /** Calls back at once for every change from now on. */
  watch(listener: Listener<T>): () => void {
    this.#watchers.add(listener);
    return () => this.#watchers.delete(listener);
  }

  create(object: T): T {
    const ref = { namespace: object.metadata.namespace ?? '', name: object.metadata.name };
    if (object.metadata.resourceVersion !== undefined) {
      throw new Refused(500, 'InternalError');
    }
    if (this.cluster.missing.has(ref.namespace)) {
      throw new Refused(404, 'NotFound');
    }
    validate(object);
    if (this.get(ref) !== undefined) {
      throw new Refused(409, 'AlreadyExists');
    }
    if (this.cluster.terminating.has(ref.namespace)) {
      throw new Refused(403, 'Forbidden');
    }
    const { deletionTimestamp: _, ...metadata } = object.metadata;
    const created = { uid: this.cluster.newUid(), generation: 1, creationTimestamp: this.cluster.time.timestamp() };
    return this.#store(undefined, { ...object, metadata: { ...metadata, ...created } });
  }

  /** Carries out a JSON Patch (RFC 6902). One that does not apply to what is there is invalid. */
  jsonPatch(ref: ObjectRef, operations: readonly JsonPatchOperation[]): T {
    const before = this.#existing(ref, undefined);
    const after = patched(before, operations) as T | undefined;
    if (after === undefined) {
      throw new Refused(422, 'Invalid');
    }
    this.#existing(ref, { resourceVersion: after.metadata.resourceVersion ?? '' });
    if (after.metadata.uid !== before.metadata.uid) {
      throw new Refused(422, 'Invalid', 'metadata.uid');
    }
    return this.#update(before, after);
  }

  patch(ref: ObjectRef, patch: MergePatch): T {
    const { uid, ...precondition } = (patch.metadata ?? {}) as Partial<Metadata>;
    const before = this.#existing(ref, precondition);
    if (uid !== undefined && uid !== before.metadata.uid) {
      // To an API server that is a change of an immutable field, and no precondition.
      throw new Refused(422, 'Invalid', 'metadata.uid');
    }
    return this.#update(before, merged(before, patch) as T);
  }

  /** What somebody makes of an object in an editor. */
  edit(ref: ObjectRef, change: (object: T) => T): T {
    const before = this.#existing(ref, undefined);
    return this.#update(before, change(before));
  }

  /** What is the API server's own stays as it is. */
  #update(before: T, wanted: T): T {
    const { namespace, name, uid, creationTimestamp, deletionTimestamp, generation } = before.metadata;
    if (wanted.metadata.name !== name || wanted.metadata.namespace !== namespace) {
      throw new Refused(400, 'BadRequest');
    }
    const { deletionTimestamp: _, ...metadata } = withoutEmpty(wanted.metadata);
    const own = { uid, creationTimestamp, generation, ...(deletionTimestamp !== undefined && { deletionTimestamp }) };
    const after = { ...wanted, metadata: { ...metadata, ...own } } as T;
    if (before.metadata.labels !== after.metadata.labels) {
      validate(after);
    }
    if (deletionTimestamp !== undefined) {
      const added = (after.metadata.finalizers ?? []).some((one) => !before.metadata.finalizers?.includes(one));
      if (added) {
        throw new Refused(422, 'Invalid');
      }
    }
    after.metadata.resourceVersion = before.metadata.resourceVersion as string;
    if (!differ(before, after)) {
      return before;
    }
    // Argo CD's kinds have no status of their own: whatever changes beside metadata counts.
    if (differ({ ...before, metadata: undefined }, { ...after, metadata: undefined })) {
      after.metadata.generation = (generation ?? 0) + 1;
    }
    return this.#store(before, after);
  }

  /** Writes the object as a whole, over the version that it carries. */
  replace(ref: ObjectRef, object: T): T {
    if (object.metadata.name !== ref.name) {
      throw new Refused(400, 'BadRequest');
    }
    const before = this.#existing(ref, object.metadata);
    if (object.metadata.resourceVersion === undefined) {
      throw new Refused(422, 'Invalid', 'metadata.resourceVersion');
    }
    return this.#update(before, object);
  }

  delete(ref: ObjectRef, options: DeleteRequest): void {
    const { uid, resourceVersion } = options;
    const before = this.#existing(ref, {
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    });
    const {
      finalizers: present = [],
      generation = 0,
      deletionTimestamp = this.cluster.time.timestamp(),
    } = before.metadata;
    const finalizers = finalizersFor(options.propagation, present);
    const isLeaving = before.metadata.deletionTimestamp !== undefined;
    if (finalizers.includes(foreground) && !(isLeaving && present.includes(foreground))) {
      this.#collectSoon(ref, before.metadata.uid);
    }
    if (isLeaving && isEqual(present, finalizers)) {
      return;
    }
    const leaving = { finalizers, deletionTimestamp, generation: isLeaving ? generation : generation + 1 };
    this.#store(before, { ...before, metadata: { ...before.metadata, ...leaving } });
  }

  /** All that it has now. */
  snapshot(): ReadonlyMap<string, SimulatedObject> {
    return new Map(this.#objects);
  }

  /** Has what it had then. Nobody who watches is told. */
  restore(objects: ReadonlyMap<string, SimulatedObject>): void {
    // What a list shows afterwards are other objects, however equal.
    this.#objects = new Map(Array.from(objects as ReadonlyMap<string, T>, ([id, object]) => [id, { ...object }]));
    for (const { metadata } of this.#objects.values()) {
      if (metadata.finalizers?.includes(foreground)) {
        this.#collectSoon({ namespace: metadata.namespace ?? '', name: metadata.name }, metadata.uid);
      }
    }
  }

  #collectSoon(ref: ObjectRef, uid: string | undefined): void {
    this.cluster.time.after(50, () => this.#collect(ref, uid));
  }

  /** The garbage collector is through with what depended on the object. */
  #collect(ref: ObjectRef, uid: string | undefined): void {
    const now = this.get(ref);
    if (now?.metadata.uid === uid && now !== undefined) {
      const finalizers = now.metadata.finalizers?.filter((one) => one !== foreground) ?? [];
      this.#store(now, { ...now, metadata: { ...now.metadata, finalizers } });
    }
  }

  #existing(ref: ObjectRef, precondition: { uid?: string; resourceVersion?: string } | undefined): T {
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

  #store(old: T | undefined, object: T): T {
    const now = { ...object, metadata: { ...object.metadata, resourceVersion: this.cluster.newVersion() } };
    const id = `${now.metadata.namespace}/${now.metadata.name}`;
    const gone = now.metadata.deletionTimestamp !== undefined && (now.metadata.finalizers ?? []).length === 0;
    if (gone) {
      this.#objects.delete(id);
      this.#goneAt.set(id, this.cluster.version);
    } else {
      this.#objects.set(id, now);
    }
    for (const watcher of [...this.#watchers]) {
      watcher(gone ? { old: now, now: undefined } : { old, now });
    }
    return now;
  }
}

const foreground = 'foregroundDeletion';
const orphan = 'orphan';
const labelValue = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** By its finalizers an object says how the garbage collector is to delete it. */
function finalizersFor(propagation: DeleteRequest['propagation'], present: readonly string[]): string[] {
  const others = present.filter((one) => one !== foreground && one !== orphan);
  switch (propagation) {
    case undefined:
      return [...present];
    case 'Background':
      return others;
    default:
      return [...others, propagation === 'Foreground' ? foreground : orphan];
  }
}

/** What is validated of every object, as far as users get it wrong. */
function validate({ metadata }: SimulatedObject): void {
  if (Object.values(metadata.labels ?? {}).some((value) => !labelValue.test(value))) {
    throw new Refused(422, 'Invalid', 'metadata.labels');
  }
}

/** Empty maps and lists of metadata are not stored. */
function withoutEmpty(metadata: Metadata): Metadata {
  const result = { ...metadata };
  for (const key of ['labels', 'annotations', 'finalizers'] as const) {
    if (Object.keys(result[key] ?? {}).length === 0) {
      delete result[key];
    }
  }
  return result;
}

/** The product's own comparison is quick, and may take for equal what is not. */
function differ(a: unknown, b: unknown): boolean {
  return a !== b && (!isEqual(a, b) || canonical(a) !== canonical(b));
}

function report(collection: Collection<SimulatedObject>, listener: Report): void {
  collection.watch(({ old, now }) => {
    const object = now ?? old;
    if (object !== undefined) {
      listener(object, now === undefined);
    }
  });
}
