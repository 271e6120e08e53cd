import { setTimeout as sleep } from 'node:timers/promises';
import {
  isAlreadyExists,
  isRetryable,
  type KubeClient,
  type KubeObject,
  type ResourceType,
} from '../../lib/kube/index.ts';

/** Tries until the API server answers something that another try would not change. */
export async function persist<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isRetryable(error) || isAlreadyExists(error)) throw error;
      await sleep(100);
    }
  }
}

/**
 * Creates an object whose name nobody else uses, through outages: one that is there already, and is not the one of
 * `formerUid`, is our own, of an attempt whose answer was lost. Waits for the former one to be gone.
 */
export async function createOnce<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  object: T,
  formerUid?: string,
): Promise<T> {
  for (;;) {
    try {
      return await persist(() => client.create(type, object));
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const { name, namespace } = object.metadata;
      const found = await persist(() => client.get(type, { name, ...(namespace !== undefined && { namespace }) }));
      if (found && found.metadata.uid !== formerUid) return found;
      await sleep(100);
    }
  }
}
