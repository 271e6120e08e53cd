import { type UntilOptions, until } from '../../lib/base/testing.ts';
import {
  Informer,
  type KubeClient,
  type KubeObject,
  keyOf,
  type ObjectKey,
  type ResourceType,
} from '../../lib/kube/index.ts';

/** Which objects are watched, and how long a wait for them may take. */
export interface WatchOptions extends UntilOptions {
  namespace?: string;
  /** Only this object. */
  key?: ObjectKey;
  /** Milliseconds; 240 s unless set: an Argo CD that missed its repo server looks again after 180. */
  timeoutMs?: number;
}

/** An open watch. */
export interface Watched<T extends KubeObject> {
  /** The objects as they are now. */
  list(): T[];
  /**
   * Resolves as soon as the objects satisfy a condition.
   * @throws Error that names the objects and shows them as they were last, when the time is over
   */
  until(accept: (objects: T[]) => boolean | undefined): Promise<T[]>;
  stop(): Promise<void>;
}

/** Opens a watch and returns when the first list is there. */
export async function watchObjects<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  options: WatchOptions = {},
): Promise<Watched<T>> {
  const { key, timeoutMs = 240_000 } = options;
  const ended = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, ended.signal]) : ended.signal;
  const namespace = key?.namespace ?? options.namespace;
  const informer = new Informer<T>({
    client,
    type,
    ...(namespace !== undefined && { namespace }),
    ...(key && { fieldSelector: `metadata.name=${key.name}` }),
  });
  const running = informer.run(signal).catch((error: unknown) => {
    if (!signal.aborted) {
      throw error;
    }
  });
  await informer.synced(signal);
  const described = `${type.kind} ${key ? keyOf(key) : (namespace ?? '')}`;
  const lastSeen = () => `last seen: ${JSON.stringify(informer.list().map(withoutNoise)).slice(0, 4_000)}`;
  return {
    list: () => informer.list(),
    until: (accept) =>
      until(
        described,
        () => {
          const objects = informer.list();
          return accept(objects) && objects;
        },
        { timeoutMs, signal, details: () => [lastSeen(), options.details?.()].join('\n') },
      ),
    async stop() {
      ended.abort();
      await running;
    },
  };
}

/** Waits until the objects satisfy a condition; see {@link Watched.until}. */
export async function waitForObjects<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  options: WatchOptions,
  accept: (objects: T[]) => boolean,
): Promise<T[]> {
  const watched = await watchObjects(client, type, options);
  try {
    return await watched.until(accept);
  } finally {
    await watched.stop();
  }
}

/** Waits until one object satisfies a condition; it is `undefined` as long as it does not exist. */
export async function waitForObject<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  key: ObjectKey,
  accept: (object: T | undefined) => boolean,
  options: Omit<WatchOptions, 'key' | 'namespace'> = {},
): Promise<T | undefined> {
  const [object] = await waitForObjects(client, type, { ...options, key }, (objects) => accept(objects[0]));
  return object;
}

/** What a reader of an error does not need to see. */
function withoutNoise<T extends KubeObject>({ metadata: { name, namespace, deletionTimestamp }, ...rest }: T): unknown {
  return { metadata: { namespace, name, deletionTimestamp }, ...rest };
}
