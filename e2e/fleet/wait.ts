import { Informer, type KubeClient, type KubeObject, keyOf, type ObjectKey, type ResourceType } from '../../lib/kube/index.ts';

/** How long a wait may take, and what ends it. */
export interface WaitOptions {
  /** Milliseconds; 60 s unless set. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

/**
 * Waits, by a watch, until an object satisfies a condition (`undefined`: until it is gone for `accept` to say so) and
 * returns it.
 *
 * @throws Error that names the object and shows it as it was last, when the time is over
 */
export async function waitForObject<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  key: ObjectKey,
  accept: (object: T | undefined) => boolean,
  options: WaitOptions = {},
): Promise<T | undefined> {
  const found = await waitForObjects(client, type, { ...options, key }, (objects) => accept(objects[0]));
  return found[0];
}

/** As {@link waitForObject}, for all objects of a kind in a namespace (or everywhere). */
export async function waitForObjects<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  options: WaitOptions & { key?: ObjectKey; namespace?: string },
  accept: (objects: T[]) => boolean,
): Promise<T[]> {
  const { key, timeoutMs = 60_000 } = options;
  const ended = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, ended.signal]) : ended.signal;
  const namespace = key?.namespace ?? options.namespace;
  const informer = new Informer<T>({
    client,
    type,
    ...(namespace !== undefined && { namespace }),
    ...(key && { fieldSelector: `metadata.name=${key.name}` }),
  });
  const running = informer.run(signal);
  const described = `${type.kind} ${key ? keyOf(key) : (namespace ?? '')}`;
  try {
    return await new Promise<T[]>((resolve, reject) => {
      const look = () => {
        const objects = informer.list();
        if (accept(objects)) resolve(objects);
      };
      const timer = setTimeout(() => {
        const last = JSON.stringify(informer.list().map(({ metadata: { managedFields: _, ...metadata }, ...rest }) => ({ metadata, ...rest })));
        reject(new Error(`${described} was not as expected within ${timeoutMs} ms; last seen: ${last.slice(0, 4_000)}`));
      }, timeoutMs);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
      informer.synced(signal).then(() => {
        look();
        informer.subscribe({ added: look, updated: look, deleted: look });
      }, reject);
    });
  } finally {
    ended.abort();
    await running.catch((error: unknown) => {
      if (!ended.signal.aborted) throw error;
    });
  }
}
