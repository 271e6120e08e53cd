import { abortable, applyMergePatch } from '../../../lib/base/index.ts';
import {
  ApiError,
  type Informer,
  type InformerHandler,
  type KubeObject,
  type ObjectKey,
} from '../../../lib/kube/index.ts';

/** An API server with objects of one kind in one namespace. Its watches show what happens when the test lets them. */
export class ImitatedApiServer {
  readonly #name: string;
  readonly #objects = new Map<string, KubeObject>();
  readonly #watches = new Set<ImitatedWatch>();
  #versions = 0;

  constructor(name: string) {
    this.#name = name;
  }

  readonly client = {
    get: async (_type: unknown, { name }: ObjectKey) => this.get(name),
    create: async (_type: unknown, object: KubeObject) => this.create(object),
    replace: async (_type: unknown, object: KubeObject) => {
      const old = this.#there(object.metadata.name);
      const { uid = old.metadata.uid ?? '', resourceVersion = old.metadata.resourceVersion } = object.metadata;
      this.#demand(uid === old.metadata.uid && resourceVersion === old.metadata.resourceVersion, 409, 'Conflict');
      const { deletionTimestamp } = old.metadata;
      return this.#store({
        ...object,
        metadata: { ...object.metadata, uid, ...(deletionTimestamp && { deletionTimestamp }) },
      });
    },
    mergePatch: async (
      _type: unknown,
      { name }: ObjectKey,
      patch: { readonly metadata?: { readonly uid?: string } },
    ) => {
      const old = this.#there(name);
      this.#demand((patch.metadata?.uid ?? old.metadata.uid) === old.metadata.uid, 422, 'Invalid');
      return this.#store(applyMergePatch(old, patch) as KubeObject);
    },
    delete: async (_type: unknown, { name }: ObjectKey, { uid }: { readonly uid?: string } = {}) => {
      const old = this.#there(name);
      this.#demand((uid ?? old.metadata.uid) === old.metadata.uid, 409, 'Conflict');
      this.#store({ ...old, metadata: { ...old.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
    },
  };

  get(name: string): KubeObject | undefined {
    return structuredClone(this.#objects.get(name));
  }

  create(object: KubeObject): KubeObject {
    const { name } = object.metadata;
    this.#demand(!this.#objects.has(name), 409, 'AlreadyExists');
    return this.#store({ ...object, metadata: { ...object.metadata, uid: `${this.#name}-${name}-${this.#versions}` } });
  }

  list(): KubeObject[] {
    return [...this.#objects.values()];
  }

  /** Follows the objects that it selects. It has listed them when this returns. */
  watch(selects: (object: KubeObject) => boolean): ImitatedWatch {
    const watch = new ImitatedWatch(selects, () => this.list());
    this.#watches.add(watch);
    return watch;
  }

  #there(name: string): KubeObject {
    const found = this.get(name);
    this.#demand(found !== undefined, 404, 'NotFound');
    return found as KubeObject;
  }

  #demand(isSo: boolean, status: number, reason: string): void {
    if (!isSo) {
      throw new ApiError({ status, reason, message: reason });
    }
  }

  /** An object whose deletion has begun goes when nothing holds it. */
  #store(object: KubeObject): KubeObject {
    const resourceVersion = String(++this.#versions);
    const now: KubeObject = structuredClone({ ...object, metadata: { ...object.metadata, resourceVersion } });
    const { name, deletionTimestamp, finalizers = [] } = now.metadata;
    const isThere = deletionTimestamp === undefined || finalizers.length > 0;
    if (isThere) {
      this.#objects.set(name, now);
    } else {
      this.#objects.delete(name);
    }
    for (const watch of this.#watches) {
      watch.happened(now, isThere);
    }
    return structuredClone(now);
  }
}

/** What an informer is to its users. */
export class ImitatedWatch {
  readonly #selects: (object: KubeObject) => boolean;
  readonly #list: () => readonly KubeObject[];
  readonly #cache = new Map<string, KubeObject>();
  readonly #handlers = new Set<InformerHandler<KubeObject>>();
  #waiting: (() => void)[] = [];
  #whenReached: (() => void)[] = [];

  constructor(selects: (object: KubeObject) => boolean, list: () => readonly KubeObject[]) {
    this.#selects = selects;
    this.#list = list;
    this.relist();
  }

  readonly informer = {
    hasSynced: true,
    get: ({ name }: ObjectKey) => this.#cache.get(name),
    list: () => [...this.#cache.values()],
    subscribe: (handler: InformerHandler<KubeObject>) => {
      for (const object of this.#cache.values()) {
        handler.added?.(object, true);
      }
      this.#handlers.add(handler);
      return () => this.#handlers.delete(handler);
    },
    caughtUp: async (signal: AbortSignal) => {
      if (this.#waiting.length > 0) {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#waiting.push(resolve);
        this.#whenReached.push(resolve);
        await abortable(promise, signal);
      }
    },
  } as unknown as Informer<KubeObject>;

  /** Events, and who waits for them, that were not delivered yet. */
  get behind(): number {
    return this.#waiting.length;
  }

  /** For the API server: the object is so now, or is gone. */
  happened(now: KubeObject, isThere: boolean): void {
    this.#waiting.push(() => this.#show(now.metadata.name, isThere && this.#selects(now) ? now : undefined, now));
  }

  /** Shows the next event. */
  deliver(): void {
    this.#waiting.shift()?.();
  }

  /** The watch has ended, and the history with it: what was not delivered is found by a list. */
  relist(): void {
    const reached = this.#whenReached;
    this.#waiting = [];
    this.#whenReached = [];
    const there = new Map(
      this.#list()
        .filter(this.#selects)
        .map((object) => [object.metadata.name, object]),
    );
    for (const name of new Set([...this.#cache.keys(), ...there.keys()])) {
      this.#show(name, there.get(name), undefined);
    }
    for (const reach of reached) {
      reach();
    }
  }

  /** @param last what the API server says of one that goes; undefined when a list does not have it */
  #show(name: string, now: KubeObject | undefined, last: KubeObject | undefined): void {
    const old = this.#cache.get(name);
    const isSame = old?.metadata.uid === now?.metadata.uid;
    if (old !== undefined && isSame && old.metadata.resourceVersion === now?.metadata.resourceVersion) {
      return;
    }
    if (now === undefined) {
      this.#cache.delete(name);
    } else {
      this.#cache.set(name, now);
    }
    const isLast = last !== undefined && last.metadata.uid === old?.metadata.uid && this.#selects(last);
    for (const handler of this.#handlers) {
      if (old !== undefined && now !== undefined && isSame) {
        handler.updated?.(old, now);
        continue;
      }
      if (old !== undefined) {
        handler.deleted?.(isLast ? last : old);
      }
      if (now !== undefined) {
        handler.added?.(now, false);
      }
    }
  }
}
