import { wellKnown } from '../../lib/base/index.ts';
import { keyOf, type Secret, secrets } from '../../lib/kube/index.ts';
import { secretText } from '../../lib/pki/index.ts';
import { ForeignObjectError } from '../hub/index.ts';
import type { BasicDeps } from './basic-deps.ts';
import { hasConfig } from './caches.ts';
import { basicManagedBy, basicSecretName, clusterServer } from './names.ts';

/**
 * Keeps an Argo CD cluster Secret for each ManagedCluster, so that the cluster decision generator of ApplicationSets finds
 * it by name. The Secret contains no credentials. A cluster that has another cluster Secret, for instance of argocd-agent
 * or of a user, gets none: two Secrets with one name would yield two Applications.
 */
export class SecretReconciler {
  readonly #deps: BasicDeps;

  constructor(deps: BasicDeps) {
    this.#deps = deps;
  }

  /**
   * Reconciles the Secret of a cluster. The cluster may not exist any more.
   * @throws errors of the API server; the work queue retries
   */
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
      metadata: {
        ...key,
        labels: { [wellKnown.secretTypeLabel]: 'cluster', [wellKnown.managedByLabel]: basicManagedBy },
      },
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
      // Somebody else's cluster Secret is sufficient when it names this cluster.
      if (secretText(cached?.data, 'name') === cluster) {
        return;
      }
      const problem = `Secret ${keyOf(key)} is somebody else's, so ApplicationSets do not find the cluster; rename or delete it`;
      this.#deps.events.warning({ ...managed, kind: 'ManagedCluster' }, 'NoClusterSecret', problem);
      logger.warn({ cluster, problem }, 'cannot write a cluster Secret');
    }
  }
}

/** Whether this controller made a cluster Secret, or argocd-pull-integration did and nobody changed it since. */
export function isOwnSecret(secret: Secret): boolean {
  const { name, labels = {} } = secret.metadata;
  const owner = labels[wellKnown.managedByLabel];
  if (owner !== undefined) {
    return owner === basicManagedBy;
  }
  const cluster = secretText(secret.data, 'name');
  return (
    cluster !== undefined &&
    labels[wellKnown.secretTypeLabel] === 'cluster' &&
    name === basicSecretName(cluster) &&
    secretText(secret.data, 'server') === clusterServer(cluster) &&
    !hasConfig(secret)
  );
}
