import { keyOf, type Secret, secrets } from '../../lib/kube/index.ts';
import { secretText } from '../../lib/pki/index.ts';
import { ForeignObjectError } from '../hub/index.ts';
import type { BasicDeps } from './basic-deps.ts';
import { hasConfig } from './caches.ts';
import { basicManagedBy, basicSecretName, clusterServer, pullKeys } from './names.ts';

/**
 * Keeps an Argo CD cluster Secret for each ManagedCluster, by whose name ApplicationSets find the clusters of a Placement.
 * Nobody logs in with it. A cluster that has another cluster Secret, for instance that of argocd-agent or of a user, needs
 * none: two of one name would give two Applications.
 */
export class SecretReconciler {
  readonly #deps: BasicDeps;

  constructor(deps: BasicDeps) {
    this.#deps = deps;
  }

  /** One look at the Secret of a cluster, which may be gone. */
  async reconcile(cluster: string, signal: AbortSignal): Promise<void> {
    const { caches, logger, argoCdNamespace: namespace, secrets: applier } = this.#deps;
    const key = { namespace, name: basicSecretName(cluster) };
    const cached = caches.clusterSecrets.get(key);
    const managed = caches.managedClusters.get({ name: cluster });
    const others = caches.clusterSecrets.byIndex('name', cluster).filter((one) => keyOf(one) !== keyOf(key));
    if (!managed || managed.metadata.deletionTimestamp || others.length > 0) {
      if (!cached || !isOwnSecret(cached)) {
        return;
      }
      await applier.remove(secrets, cached, signal);
      logger.info({ cluster, secret: keyOf(key) }, 'removed a cluster Secret');
      return;
    }
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    const desired: Secret = {
      metadata: { ...key, labels: { [pullKeys.secretType]: 'cluster', [pullKeys.managedBy]: basicManagedBy } },
      type: 'Opaque',
      data: { name: base64(cluster), server: base64(clusterServer(cluster)) },
    };
    try {
      const { changed } = await applier.ensure(secrets, desired, cached, { guarded: true, signal });
      if (changed) {
        logger.info({ cluster, secret: keyOf(key) }, 'wrote a cluster Secret');
      }
    } catch (error) {
      if (!(error instanceof ForeignObjectError)) {
        throw error;
      }
      // A cluster Secret of somebody else is as good, when it is this cluster's.
      if (secretText(cached?.data, 'name') === cluster) {
        return;
      }
      const problem = `Secret ${keyOf(key)} is somebody else's, so ApplicationSets do not find the cluster; rename or delete it`;
      this.#deps.events.warning({ ...managed, kind: 'ManagedCluster' }, 'NoClusterSecret', problem);
      logger.warn({ cluster, problem }, 'no cluster Secret');
    }
  }
}

/** Whether a cluster Secret is this controller's, or one that argocd-pull-integration made and nobody changed since. */
export function isOwnSecret(secret: Secret): boolean {
  const { name, labels = {} } = secret.metadata;
  const owner = labels[pullKeys.managedBy];
  if (owner !== undefined) {
    return owner === basicManagedBy;
  }
  const cluster = secretText(secret.data, 'name');
  return (
    cluster !== undefined &&
    labels[pullKeys.secretType] === 'cluster' &&
    name === basicSecretName(cluster) &&
    secretText(secret.data, 'server') === clusterServer(cluster) &&
    !hasConfig(secret)
  );
}
