import type { Informer, KubeClient, KubeObject, ResourceType } from '../kube/index.ts';
import type { Store, StoredObject } from '../sync/index.ts';

/**
 * One kind of object of an API server as the delivery engine sees it: the informer is the cache, the client writes. Errors
 * are the client's own; a write that reached no server is the engine's to repeat.
 */
export function kubeStore<T extends StoredObject>(options: {
  client: KubeClient;
  type: ResourceType;
  informer: Informer<KubeObject>;
  fieldManager: string;
}): Store<T> {
  const { client, type, informer, fieldManager } = options;
  const outside = (object: KubeObject) => object as unknown as T;
  return {
    subscribe: (listener) =>
      informer.subscribe({
        added: (now, _, gap) => listener({ old: undefined, now: outside(now), gap }),
        updated: (old, now, gap) => listener({ old: outside(old), now: outside(now), gap }),
        deleted: (old) => listener({ old: outside(old), now: undefined }),
      }),
    read: async (ref, signal) => (await client.get(type, ref, signal)) as unknown as T | undefined,
    create: async (object, signal) =>
      outside(await client.create(type, object as unknown as KubeObject, { fieldManager, signal })),
    patch: async (ref, patch, signal, known) => {
      const planned = known as unknown as KubeObject | undefined;
      return outside(await client.patch(type, ref, patch, { fieldManager, signal, planned }));
    },
    delete: (ref, { uid, propagation, resourceVersion }, signal) =>
      client.delete(type, ref, { uid, resourceVersion, propagationPolicy: propagation, signal }),
  };
}
