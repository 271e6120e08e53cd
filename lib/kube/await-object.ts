import { after } from '../base/index.ts';
import { Informer } from './cache/informer.ts';
import type { KubeClient } from './client.ts';
import type { KubeObject, ObjectKey, ResourceType } from './types.ts';

/**
 * Follows one object until it is as wanted, and returns it; it is undefined as long as it does not exist. Connections that
 * break are made again.
 * @throws DOMException `TimeoutError` after `timeoutMs`, which `describe` explains; the signal's reason when aborted; what
 * `accept` throws
 */
export async function awaitObject<T extends KubeObject>(
  client: Pick<KubeClient, 'listPage' | 'watch'>,
  type: ResourceType<T>,
  key: ObjectKey,
  accept: (object: T | undefined) => boolean,
  options: { timeoutMs: number; signal: AbortSignal; describe: (last: T | undefined) => string },
): Promise<T | undefined> {
  const { timeoutMs, signal, describe } = options;
  const ended = new AbortController();
  const { namespace, name } = key;
  const informer = new Informer<T>({ client, type, namespace, fieldSelector: `metadata.name=${name}` });
  const { promise, resolve, reject } = Promise.withResolvers<T | undefined>();
  const look = () => {
    try {
      const object = informer.get(key);
      if (accept(object)) {
        resolve(object);
      }
    } catch (error) {
      reject(error);
    }
  };
  const cancel = after(timeoutMs, () => reject(new DOMException(describe(informer.get(key)), 'TimeoutError')));
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort);
  if (signal.aborted) {
    abort();
  }
  const running = informer.run(ended.signal);
  running.catch(reject);
  informer.synced(ended.signal).then(() => {
    informer.subscribe({ added: look, updated: look, deleted: look });
    look();
  }, reject);
  try {
    return await promise;
  } finally {
    cancel();
    signal.removeEventListener('abort', abort);
    ended.abort();
    await running.catch(() => undefined);
  }
}
