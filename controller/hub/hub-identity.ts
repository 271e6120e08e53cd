import type { Logger } from '../../lib/base/index.ts';
import { isForbidden, type KubeClient, namespaces } from '../../lib/kube/index.ts';

/**
 * What tells the hub apart from every other cluster: the UID of its namespace kube-system, which a managed cluster reports too.
 * Undefined without the right to read it: the hub is recognised as a managed cluster by name and label only then.
 */
export async function identifyHub(
  client: Pick<KubeClient, 'get'>,
  logger: Logger,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    return (await client.get(namespaces, { name: 'kube-system' }, signal))?.metadata.uid;
  } catch (error) {
    if (!isForbidden(error)) {
      throw error;
    }
    logger.warn({ err: error }, 'the identity of the hub cannot be read');
    return undefined;
  }
}
