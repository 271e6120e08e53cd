import { randomUUID } from 'node:crypto';
import { configMaps, isAlreadyExists, type KubeClient } from '../lib/kube/index.ts';
import { FatalError } from '../lib/ops/index.ts';

const name = 'argocd-agent-principal-identity';
const field = 'principal-uid';

/**
 * The principal's stable UUID, kept in a ConfigMap that is made at the first start. Agents use it to detect that another
 * principal took over.
 * @throws FatalError when the ConfigMap exists without a UID: making a new one would make agents think of a takeover
 */
export async function ensurePrincipalUid(client: KubeClient, namespace: string, signal: AbortSignal): Promise<string> {
  for (;;) {
    const existing = await client.get(configMaps, { namespace, name }, signal);
    if (existing !== undefined) {
      const uid = existing.data?.[field];
      if (uid) {
        return uid;
      }
      throw new FatalError(`ConfigMap ${namespace}/${name} has no field ${field}: restore it, or delete the ConfigMap`);
    }
    const uid = randomUUID();
    try {
      await client.create(configMaps, { metadata: { namespace, name }, data: { [field]: uid } }, { signal });
      return uid;
    } catch (error) {
      if (!isAlreadyExists(error)) {
        throw error;
      }
    }
  }
}
