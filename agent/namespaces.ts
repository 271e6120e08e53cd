import type { Logger } from '../lib/base/index.ts';
import { isAlreadyExists, type KubeClient, namespaces } from '../lib/kube/index.ts';

/** Creates a namespace if it does not exist, for `--create-namespace`; an existing one is left as it is. */
export function namespaceCreator(
  client: KubeClient,
  logger: Logger,
): (namespace: string, signal: AbortSignal) => Promise<void> {
  return async (name, signal) => {
    if ((await client.get(namespaces, { name }, signal)) !== undefined) {
      return;
    }
    try {
      await client.create(namespaces, { metadata: { name } }, { fieldManager: 'argocd-agent', signal });
      logger.info({ namespace: name }, 'namespace created for an Application');
    } catch (error) {
      if (!isAlreadyExists(error)) {
        throw error;
      }
    }
  };
}
