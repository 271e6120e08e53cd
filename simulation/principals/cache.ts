import { cacheCaughtUp, type KubeObject } from '../../lib/kube/index.ts';
import type { ClusterStore, SimulatedObject } from '../index.ts';

/** What a program that runs on a simulated hub finds of an informer to be waited for. */
export function waitableCache<T extends SimulatedObject>(store: ClusterStore<T> | undefined) {
  return {
    caughtUp: async (signal: AbortSignal, namespace?: string): Promise<void> => {
      if (store === undefined) {
        return;
      }
      const isIn = ({ metadata }: SimulatedObject) => namespace === undefined || metadata.namespace === namespace;
      const objects = (all: readonly T[]) => all.filter(isIn) as unknown as KubeObject[];
      await cacheCaughtUp<KubeObject>(
        {
          get: ({ namespace: its = '', name }) => store.get({ namespace: its, name }) as unknown as KubeObject,
          list: () => objects(store.list()),
          follow: ({ added, updated, deleted }) => {
            let isInitial = true;
            const unfollow = store.subscribe((change) => {
              const { old, now } = change as unknown as { old: KubeObject | undefined; now: KubeObject | undefined };
              if (isInitial) {
                return;
              }
              if (now === undefined) {
                deleted(old as KubeObject);
              } else if (old === undefined) {
                added(now);
              } else {
                updated(old, now);
              }
            });
            isInitial = false;
            return unfollow;
          },
        },
        async () => {
          const { items, resourceVersion } = await store.readAll(signal);
          return { items: objects(items), resourceVersion, continue: undefined };
        },
        signal,
      );
    },
  };
}
