import type { Logger } from '../base/index.ts';
import { isAlreadyExists, type KubeClient, namespaces } from '../kube/index.ts';

/**
 * Creates the namespace of an Application if it does not exist; an existing one is left as it is.
 * @param options.check throws when a missing namespace of this name may not be created. Default: all may
 * @returns a function that throws what `check` throws, and Error when the API server refuses
 */
export function namespaceCreator(options: {
  client: Pick<KubeClient, 'get' | 'create'>;
  fieldManager: string;
  labels?: Readonly<Record<string, string>>;
  check?: (name: string) => void;
  logger: Pick<Logger, 'info'>;
}): (name: string, signal: AbortSignal) => Promise<void> {
  const { client, fieldManager, labels = {}, check, logger } = options;
  return async (name, signal) => {
    if ((await client.get(namespaces, { name }, signal)) !== undefined) {
      return;
    }
    check?.(name);
    const metadata = Object.keys(labels).length === 0 ? { name } : { name, labels: { ...labels } };
    try {
      await client.create(namespaces, { metadata }, { fieldManager, signal });
      logger.info({ namespace: name }, 'namespace created for Applications');
    } catch (error) {
      if (!isAlreadyExists(error)) {
        throw error;
      }
    }
  };
}
