import { randomUUID } from 'node:crypto';
import type { Logger } from '../lib/base/index.ts';
import {
  type ConfigMap,
  configMaps,
  isAlreadyExists,
  isConflict,
  isForbidden,
  type KubeClient,
  type ObjectKey,
} from '../lib/kube/index.ts';
import { FatalError } from '../lib/ops/index.ts';

const name = 'argocd-agent-principal-identity';
const uidField = 'principal-uid';
/** The UID of the ConfigMap itself. An API server gives a restored object a new UID, so the two then differ. */
const ownUidField = 'config-map-uid';

/** What {@link ensurePrincipalUid} needs. */
export interface PrincipalUidOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/**
 * The principal's stable UUID, kept in a ConfigMap that is made at the first start. Agents use it to detect that another
 * principal took over.
 *
 * A ConfigMap that was restored from a backup gets a new UUID. The restored Applications of the hub have new UIDs. Agents
 * update a copy in place when another principal takes over, but replace it when the same principal sends another UID.
 * @throws FatalError when the ConfigMap exists without a UID: making a new one would make agents think of a takeover
 */
export async function ensurePrincipalUid(options: PrincipalUidOptions): Promise<string> {
  const { client, namespace, signal } = options;
  for (;;) {
    try {
      const found = await client.get(configMaps, { namespace, name }, signal);
      const made = { metadata: { namespace, name }, data: { [uidField]: randomUUID() } };
      return await recordedUid(found ?? (await client.create(configMaps, made, { signal })), options);
    } catch (error) {
      // Another process of this principal was faster: its UUID counts.
      if (!isAlreadyExists(error) && !isConflict(error)) {
        throw error;
      }
    }
  }
}

async function recordedUid(configMap: ConfigMap, options: PrincipalUidOptions): Promise<string> {
  const { client, namespace, logger, signal } = options;
  const key: ObjectKey = { namespace, name };
  const { [uidField]: recorded, [ownUidField]: recordedOwn } = configMap.data ?? {};
  const { uid: own = '', resourceVersion } = configMap.metadata;
  if (!recorded) {
    throw new FatalError(
      `ConfigMap ${namespace}/${name} has no field ${uidField}: restore it, or delete the ConfigMap`,
    );
  }
  if (recordedOwn === own) {
    return recorded;
  }
  const isRestored = recordedOwn !== undefined;
  const uid = isRestored ? randomUUID() : recorded;
  try {
    const data = { [uidField]: uid, [ownUidField]: own };
    await client.mergePatch(configMaps, key, { metadata: { resourceVersion }, data }, { signal });
  } catch (error) {
    if (!isForbidden(error) || isRestored) {
      throw error;
    }
    logger.warn(
      { configMap: `${namespace}/${name}` },
      'the principal may not patch its identity: it cannot detect that the hub was restored from a backup',
    );
    return uid;
  }
  if (isRestored) {
    logger.warn(
      { configMap: `${namespace}/${name}`, formerUid: recorded, principalUid: uid },
      'the hub was restored from a backup: agents keep their Applications and take over the restored ones in place',
    );
  }
  return uid;
}
