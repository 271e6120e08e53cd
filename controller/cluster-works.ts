import { isConflict } from '../lib/kube/index.ts';
import type { ClusterContext } from './cluster-context.ts';
import type { DeliveredSecrets } from './cluster-secrets.ts';
import { defaultImages } from './fleet-state.ts';
import { addOnName, cleanUpWork, keys, workName } from './names.ts';
import { argoCdKinds, autonomousKinds } from './render/crds.ts';
import { type RenderedWork, renderWorks } from './render/works.ts';
import {
  type AddOnDeploymentConfig,
  type ConfigReference,
  type ManagedClusterAddOn,
  type ManifestWork,
  manifestWorks,
} from './resources.ts';

/** What the works of a cluster need is not there. */
export class NotDeliverableError extends Error {
  override readonly name = 'NotDeliverableError';
  readonly code = 'NOT_DELIVERABLE';
}

/** The AddOnDeploymentConfig that applies to a cluster: named by its add-on, else the add-on's default. */
export function configReferenceOf(
  context: Pick<ClusterContext, 'caches'>,
  addOn: ManagedClusterAddOn | undefined,
): ConfigReference | undefined {
  const own = addOn?.spec?.configs?.find(({ resource }) => resource === 'addondeploymentconfigs');
  if (own) return own;
  const supported = context.caches.addOnRegistrations.list()[0]?.spec?.supportedConfigs ?? [];
  const found = supported.find(({ resource }) => resource === 'addondeploymentconfigs');
  return found?.defaultConfig
    ? { group: found.group ?? '', resource: found.resource, ...found.defaultConfig }
    : undefined;
}

/** Renders the works of a cluster from what is known now. */
export function renderCluster(context: ClusterContext, delivered: DeliveredSecrets): RenderedWork[] {
  const { foundation, caches, delivery, cluster } = context;
  const { addOn, endpoint, namespace } = foundation;
  if (endpoint === undefined) throw new NotDeliverableError('the server is not discovered');
  if (addOn.argoCD === 'Operator' || addOn.clientCertificate === 'CSR') {
    const field = addOn.argoCD === 'Operator' ? 'argoCD: Operator (or argoCDCRManifestWork)' : 'clientCertificate: CSR';
    throw new NotDeliverableError(
      `GitOpsCluster ${foundation.key}: spec.argoCDAgentAddon.${field} is not supported by this version`,
    );
  }
  const config = configOf(context);
  const variable = config?.customizedVariables?.find(({ name }) => name === 'ARGOCD_NAMESPACE')?.value;
  const names = [...argoCdKinds, ...(addOn.mode === 'autonomous' ? autonomousKinds : [])];
  const crds = addOn.argoCD === 'Existing' ? [] : names.map((name) => ({ name, crd: caches.crd(name) }));
  const missing = crds.filter(({ crd }) => crd === undefined).map(({ name }) => name);
  if (missing.length > 0) {
    throw new NotDeliverableError(
      `the hub has no CustomResourceDefinition ${missing.join(', ')} to copy to ${cluster}; install Argo CD's CRDs on the hub`,
    );
  }
  return renderWorks(context.templates, {
    namespace: addOn.agentNamespace ?? (variable || 'argocd'),
    mode: addOn.mode,
    serverAddress: endpoint.address,
    serverPort: endpoint.port,
    authorities: foundation.authorities,
    clientCertificate: delivered.clientCertificate,
    agentImage: delivery.agentImage,
    pullPolicy: delivery.pullPolicy,
    argoCD:
      addOn.argoCD === 'Existing'
        ? undefined
        : {
            image: delivery.argoCdImage ?? caches.hubImage(namespace, 'argocd-server') ?? defaultImages.argoCd,
            redisImage: delivery.redisImage ?? caches.hubImage(namespace, 'argocd-redis') ?? defaultImages.redis,
            redisPassword: delivered.redisPassword,
            serverSecretKey: delivered.serverSecretKey,
            crds: crds.flatMap(({ crd }) => crd ?? []),
          },
    config,
  });
}

/** The settings for workloads that apply to a cluster. */
export function configOf(
  context: Pick<ClusterContext, 'caches' | 'cluster'>,
): AddOnDeploymentConfig['spec'] | undefined {
  const addOn = context.caches.addOns.get({ namespace: context.cluster, name: addOnName });
  const reference = configReferenceOf(context, addOn);
  if (reference === undefined) return undefined;
  const { namespace, name } = reference;
  const config = context.caches.configs.get({ namespace, name });
  if (config === undefined) {
    const isDefault = addOn?.spec?.configs === undefined;
    // The default may be named before it exists; what a user asked for must not be left out silently.
    if (isDefault) return undefined;
    throw new NotDeliverableError(
      `AddOnDeploymentConfig ${namespace}/${name}, named by ManagedClusterAddOn ${context.cluster}/${addOnName}, does not exist`,
    );
  }
  return config.spec;
}

/** Writes the works of a cluster and removes those that are no longer part of it. */
export async function ensureWorks(context: ClusterContext, rendered: readonly RenderedWork[]): Promise<void> {
  const { cluster, applier, caches, signal } = context;
  const cleanUp = caches.works.get({ namespace: cluster, name: cleanUpWork.name });
  if (cleanUp) {
    // The cluster comes back while it is being left: the Job must not clean up what is delivered now.
    await applier.remove(manifestWorks, cleanUp, signal);
    throw new NotDeliverableError(
      `cluster ${cluster} must first remove ManifestWork ${cleanUpWork.name}, with which it was cleaned up`,
    );
  }
  const wanted = new Set<string>();
  const errors: Error[] = [];
  for (const { part, index, spec } of rendered) {
    const name = workName(part, index);
    wanted.add(name);
    const base = context.ownerMetadata('manifestwork');
    const work: ManifestWork = {
      metadata: {
        namespace: cluster,
        name,
        ...base,
        labels: { ...base.labels, [keys.gitOpsCluster]: 'true', [keys.addOnName]: addOnName, [keys.part]: part },
      },
      spec,
    };
    try {
      await applier.ensure(manifestWorks, work, caches.works.get({ namespace: cluster, name }), {
        exact: ['spec.workload'],
        signal,
      });
    } catch (error) {
      signal.throwIfAborted();
      if (isConflict(error)) throw error;
      errors.push(new Error(`ManifestWork ${cluster}/${name}: ${(error as Error).message}`, { cause: error }));
    }
  }
  if (errors[0]) throw errors[0];
  for (const work of caches.works.list(cluster)) {
    if (!wanted.has(work.metadata.name)) await applier.remove(manifestWorks, work, signal);
  }
}
