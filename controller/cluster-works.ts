import { type CustomResourceDefinition, isConflict } from '../lib/kube/index.ts';
import { configOf, NotDeliverableError } from './cluster-config.ts';
import type { ClusterContext } from './cluster-context.ts';
import type { DeliveredSecrets } from './cluster-secrets.ts';
import { configHashAnnotation, configHashes } from './config-status.ts';
import { defaultImages } from './fleet-state.ts';
import { addOnName, cleanUpWork, keys, workName } from './names.ts';
import type { AddOnConfig } from './render/addon-config.ts';
import { kindsOf, operatorKinds } from './render/crds.ts';
import type { OperatorInput } from './render/operator.ts';
import type { RenderedWork } from './render/pack.ts';
import { renderWorks } from './render/works.ts';
import { type ManifestWork, manifestWorks } from './resources.ts';

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
  return renderWorks(context.templates, {
    ...shared,
    argoCD: {
      image: delivery.argoCdImage ?? caches.hubImage(namespace, 'argocd-server') ?? defaultImages.argoCd,
      redisImage: delivery.redisImage ?? caches.hubImage(namespace, 'argocd-redis') ?? defaultImages.redis,
      redisPassword: delivered.redisPassword,
      serverSecretKey: delivered.serverSecretKey,
      crds: crdsOf(context, kindsOf(addOn.mode), "install Argo CD's CRDs on the hub"),
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
  const configs = configHashes(context, caches.addOns.get({ namespace: cluster, name: addOnName }));
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
        annotations: { ...base.annotations, [configHashAnnotation]: configs },
      },
      spec,
    };
    const live = caches.works.get({ namespace: cluster, name });
    if (live?.metadata.deletionTimestamp) {
      // Of an earlier departure. What is on its way out cannot be brought back; its end leads here again.
      const problem = `cluster ${cluster} must first remove ManifestWork ${name}, which is being deleted`;
      errors.push(new NotDeliverableError(problem));
      continue;
    }
    try {
      await applier.ensure(manifestWorks, work, live, {
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
