import { setTimeout as sleep } from 'node:timers/promises';
import {
  isAlreadyExists,
  isRetryable,
  type KubeClient,
  type KubeObject,
  type ResourceType,
} from '../../lib/kube/index.ts';

/** No outage that the suites make is longer, on a machine that takes its time to start a control plane. */
const patienceMs = 400_000;

/**
 * Tries until the API server answers something that another try would not change.
 * @throws the last error, when that does not happen in time
 */
export async function persist<T>(attempt: () => Promise<T>): Promise<T> {
  const begin = Date.now();
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isRetryable(error) || isAlreadyExists(error) || Date.now() - begin > patienceMs) {
        throw error;
      }
      await sleep(100);
    }
  }
}

/**
 * Creates an object whose name nobody else uses, through outages: one that is there already, and is not the one of
 * `formerUid`, is our own, of an attempt whose answer was lost. Waits for the former one to be gone.
 * @throws Error that shows the former one, when it does not go in time
 */
export async function createOnce<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  object: T,
  formerUid?: string,
): Promise<T> {
  const begin = Date.now();
  for (;;) {
    try {
      return await persist(() => client.create(type, object));
    } catch (error) {
      if (!isAlreadyExists(error)) {
        throw error;
      }
      const { name, namespace } = object.metadata;
      const found = await persist(() => client.get(type, { name, ...(namespace !== undefined && { namespace }) }));
      if (found && found.metadata.uid !== formerUid) {
        return found;
      }
      if (Date.now() - begin > patienceMs) {
        throw new Error(`still there: ${JSON.stringify(found)}`, { cause: error });
      }
      await sleep(100);
    }
  }
}
