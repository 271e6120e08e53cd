import { applyMergePatch } from '../../lib/base/index.ts';
import { ApiError, type KubeObject, type Secret } from '../../lib/kube/index.ts';

interface Handler {
  added?(secret: Secret, isInitial: boolean): void;
  updated?(old: Secret, now: Secret): void;
  deleted?(last: Secret): void;
}

/** Secrets of one namespace in memory: a client and a cache in one, with the API server's conflicts. */
export class MemorySecrets {
  /** Called before each write; throw to make it fail. */
  beforeWrite: () => void = () => undefined;
  /** Number of writes that succeeded. */
  writes = 0;
  readonly #stored = new Map<string, Secret>();
  readonly #handlers = new Set<Handler>();
  #version = 0;

  /** Writes a Secret as somebody else does. */
  put(secret: Secret): Secret {
    const { name } = secret.metadata;
    const old = this.#stored.get(name);
    const now = {
      ...secret,
      metadata: { ...secret.metadata, uid: old?.metadata.uid ?? `uid-${name}`, resourceVersion: `${++this.#version}` },
    };
    this.#stored.set(name, now);
    for (const handler of this.#handlers) {
      if (old === undefined) {
        handler.added?.(now, false);
      } else {
        handler.updated?.(old, now);
      }
    }
    return now;
  }

  named(name: string): Secret | undefined {
    return this.#stored.get(name);
  }

  /** As clients and caches have them. */
  readonly api = {
    get: ((typeOrKey: { name?: string }, key?: { name: string }) => this.named((key ?? typeOrKey).name ?? '')) as never,
    list: (async (type: { plural?: string }, { labelSelector = '' }: { labelSelector?: string } = {}) => {
      const wanted = labelSelector.split(',').filter((one) => one.includes('='));
      return type.plural !== 'secrets'
        ? []
        : [...this.#stored.values()].filter(({ metadata: { labels = {} } }) =>
            wanted.every((one) => labels[one.split('=')[0] ?? ''] === one.split('=')[1]),
          );
    }) as never,
    create: (async (_type: unknown, secret: Secret) => {
      this.beforeWrite();
      if (this.#stored.has(secret.metadata.name)) {
        throw new ApiError({ status: 409, reason: 'AlreadyExists', message: 'exists' });
      }
      this.writes++;
      return this.put(secret);
    }) as never,
    mergePatch: (async (_type: unknown, { name }: { name: string }, patch: Partial<KubeObject>) => {
      this.beforeWrite();
      const old = this.#stored.get(name);
      if (old === undefined) {
        throw new ApiError({ status: 404, message: `secrets "${name}" not found` });
      }
      const { uid, resourceVersion } = patch.metadata ?? {};
      const isStale =
        (uid !== undefined && uid !== old.metadata.uid) ||
        (resourceVersion !== undefined && resourceVersion !== old.metadata.resourceVersion);
      if (isStale) {
        throw new ApiError({ status: 409, reason: 'Conflict', message: 'changed' });
      }
      this.writes++;
      return this.put(applyMergePatch(old, patch as never) as Secret);
    }) as never,
    subscribe: ((handler: Handler) => {
      this.#handlers.add(handler);
      return () => this.#handlers.delete(handler);
    }) as never,
  };
}
