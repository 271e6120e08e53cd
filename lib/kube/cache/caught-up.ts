import { abortable, compareVersions } from '../../base/index.ts';
import type { ListPage } from '../client-options.ts';
import { type KubeObject, keyOf, type ObjectKey } from '../types.ts';

/** The part of an informer that is needed here. */
interface Cache<T extends KubeObject> {
  get(key: ObjectKey): T | undefined;
  list(): T[];
  /** Reports changes from now on. Returns the function that ends that. */
  follow(handler: { added(object: T): void; updated(old: T, now: T): void; deleted(last: T): void }): () => void;
}

/**
 * Resolves when the cache has what a list shows that is made now: each object in this version or a later one, and none that is
 * not in the list any more. An object that is deleted while the informer has no watch may never be seen: then it goes on
 * waiting. What was made and deleted before the list, and of which the cache has seen nothing when it has all else, can still
 * come and go afterwards.
 * @throws the signal's reason when aborted; what `list` throws
 */
export async function cacheCaughtUp<T extends KubeObject>(
  informer: Cache<T>,
  list: (next: string | undefined) => Promise<ListPage<T>>,
  signal: AbortSignal,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  /** The version that the cache must have; undefined: it must have none of the list's time. */
  const behind = new Map<string, string | undefined>();
  const listed = new Map<string, T>();
  const deleted = new Map<string, T>();
  let isListed = false;
  let listVersion = '';
  const isMissing = (object: T) => !listed.has(keyOf(object)) && isUpTo(object, listVersion);
  const look = (object: T) => {
    const key = keyOf(object);
    if (behind.has(key)) {
      const wanted = behind.get(key);
      const now = informer.get(object.metadata);
      const isReached =
        wanted === undefined
          ? now === undefined || !isUpTo(now, listVersion)
          : reaches(now, wanted) || reaches(deleted.get(key), wanted);
      if (isReached) {
        behind.delete(key);
      }
    }
    if (isListed && behind.size === 0) {
      resolve();
    }
  };
  const unfollow = informer.follow({
    added: (object) => {
      // It was made and deleted before the list.
      if (isListed && isMissing(object)) {
        behind.set(keyOf(object), undefined);
      }
      look(object);
    },
    updated: (_, now) => look(now),
    deleted: (last) => {
      deleted.set(keyOf(last), last);
      look(last);
    },
  });
  try {
    let next: string | undefined;
    do {
      const page = await list(next);
      for (const object of page.items) {
        listed.set(keyOf(object), object);
        behind.set(keyOf(object), object.metadata.resourceVersion);
      }
      listVersion = page.resourceVersion;
      next = page.continue;
    } while (next !== undefined);
    for (const object of informer.list()) {
      if (isMissing(object)) {
        behind.set(keyOf(object), undefined);
      }
    }
    isListed = true;
    for (const object of listed.values()) {
      look(object);
    }
    if (behind.size === 0) {
      return;
    }
    await abortable(promise, signal);
  } finally {
    unfollow();
  }
}

/** Versions that cannot be compared count as reached: what there is came later. */
function reaches(object: KubeObject | undefined, version: string): boolean {
  return object !== undefined && (compareVersions(object.metadata.resourceVersion, version) ?? 1) >= 0;
}

function isUpTo({ metadata }: KubeObject, version: string): boolean {
  return (compareVersions(metadata.resourceVersion, version) ?? 1) <= 0;
}
