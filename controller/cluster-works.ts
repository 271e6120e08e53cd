import { type CustomResourceDefinition, isConflict } from '../lib/kube/index.ts';
import type { ClusterContext } from './cluster-context.ts';
import type { DeliveredSecrets } from './cluster-secrets.ts';
import { defaultImages } from './fleet-state.ts';
import { addOnName, cleanUpWork, keys, workName } from './names.ts';
import { type AddOnConfig, parseAddOnConfig } from './render/addon-config.ts';
import { argoCdKinds, autonomousKinds, operatorKinds } from './render/crds.ts';
import type { OperatorInput } from './render/operator.ts';
import type { RenderedWork } from './render/pack.ts';
import { renderWorks } from './render/works.ts';
import { type ConfigReference, type ManagedClusterAddOn, type ManifestWork, manifestWorks } from './resources.ts';

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
  const own = addOn?.spec?.configs?.find(isConfig);
  if (own) return own;
  const supported = context.caches.addOnRegistrations.list()[0]?.spec?.supportedConfigs ?? [];
  const found = supported.find(isConfig);
  return found?.defaultConfig
    ? { group: found.group ?? '', resource: found.resource, ...found.defaultConfig }
    : undefined;
}

const isConfig = ({ resource }: { resource: string }) => resource === 'addondeploymentconfigs';
const isOwn = (addOn: ManagedClusterAddOn | undefined) => addOn?.spec?.configs?.some(isConfig) ?? false;

/**
 * Renders the works of a cluster from what is known now.
 * @throws NotDeliverableError, OversizedManifestError
 */
export function renderCluster(context: ClusterContext, delivered: DeliveredSecrets): RenderedWork[] {
  const { foundation, caches, delivery } = context;
  const { addOn, endpoint, namespace } = foundation;
  if (endpoint === undefined) throw new NotDeliverableError('the server is not discovered');
  if (addOn.payload?.problem !== undefined) {
    throw new NotDeliverableError(`Invalid ArgoCDCRManifestWork: ${addOn.payload.problem}`);
  }
  if (addOn.clientCertificate === 'CSR') {
    throw new NotDeliverableError(
      `GitOpsCluster ${foundation.key}: spec.argoCDAgentAddon.clientCertificate: CSR is not supported by this version`,
    );
  }
  const config = configOf(context);
  const shared = {
    namespace: addOn.agentNamespace ?? config.agentNamespace ?? 'argocd',
    mode: addOn.mode,
    serverAddress: endpoint.address,
    serverPort: endpoint.port,
    authorities: foundation.authorities,
    clientCertificate: delivered.clientCertificate,
    agentImage: delivery.agentImage,
    pullPolicy: delivery.pullPolicy,
    config,
  };
  if (addOn.argoCD === 'Operator') {
    return renderWorks(context.templates, { ...shared, argoCD: undefined, operator: operatorOf(context, config) });
  }
  if (addOn.argoCD === 'Existing') return renderWorks(context.templates, { ...shared, argoCD: undefined });
  const kinds = [...argoCdKinds, ...(addOn.mode === 'autonomous' ? autonomousKinds : [])];
  return renderWorks(context.templates, {
    ...shared,
    argoCD: {
      image: delivery.argoCdImage ?? caches.hubImage(namespace, 'argocd-server') ?? defaultImages.argoCd,
      redisImage: delivery.redisImage ?? caches.hubImage(namespace, 'argocd-redis') ?? defaultImages.redis,
      redisPassword: delivered.redisPassword,
      serverSecretKey: delivered.serverSecretKey,
      crds: crdsOf(context, kinds, "install Argo CD's CRDs on the hub"),
    },
  });
}

function operatorOf(context: ClusterContext, config: AddOnConfig): OperatorInput {
  const { foundation, caches, delivery } = context;
  const { addOn, namespace } = foundation;
  const { installsOperator } = config;
  const advice = `install argocd-operator's CRDs on the hub or, if the cluster has argocd-operator, set the variable ARGOCD_OPERATOR_INSTALL=false in its AddOnDeploymentConfig`;
  return {
    namespace: addOn.operatorNamespace ?? config.operatorNamespace ?? 'argocd-operator-system',
    image: installsOperator ? (delivery.operatorImage ?? defaultImages.operator) : undefined,
    crds: installsOperator ? crdsOf(context, operatorKinds, advice) : [],
    agentImage: addOn.syncsAgentImage ? (caches.principalImage(namespace) ?? delivery.agentImage) : undefined,
    payload: addOn.payload?.value,
  };
}

/** The hub's CRDs of these names. */
function crdsOf(
  { caches, cluster }: ClusterContext,
  names: readonly string[],
  advice: string,
): CustomResourceDefinition[] {
  const crds = names.map((name) => ({ name, crd: caches.crd(name) }));
  const missing = crds.filter(({ crd }) => crd === undefined).map(({ name }) => name);
  if (missing.length > 0) {
    throw new NotDeliverableError(
      `the hub has no CustomResourceDefinition ${missing.join(', ')} to copy to ${cluster}; ${advice}`,
    );
  }
  return crds.flatMap(({ crd }) => crd ?? []);
}

/**
 * The settings for workloads that apply to a cluster.
 * @throws NotDeliverableError when they are not there or make no sense
 */
export function configOf(context: Pick<ClusterContext, 'caches' | 'cluster'>): AddOnConfig {
  const { caches, cluster } = context;
  const addOn = caches.addOns.get({ namespace: cluster, name: addOnName });
  const reference = configReferenceOf(context, addOn);
  const config = reference && caches.configs.get({ namespace: reference.namespace, name: reference.name });
  // The default may be named before it exists; what a user asked for must not be left out silently.
  if (reference && config === undefined && isOwn(addOn)) {
    throw new NotDeliverableError(
      `AddOnDeploymentConfig ${reference.namespace}/${reference.name}, named by ManagedClusterAddOn ${cluster}/${addOnName}, does not exist`,
    );
  }
  const { value, problem } = parseAddOnConfig(config, caches.managedClusters.get({ name: cluster }));
  if (problem !== undefined) throw new NotDeliverableError(problem);
  return value;
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
