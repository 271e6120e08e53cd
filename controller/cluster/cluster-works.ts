import { isDeepStrictEqual } from 'node:util';
import { type CustomResourceDefinition, isConflict } from '../../lib/kube/index.ts';
import { kindsOf, operatorKinds } from '../hub/crds.ts';
import { addOnName, cleanUpWork, formerWork, keys, workName } from '../hub/names.ts';
import { type ManifestWork, manifestWorks } from '../hub/resources.ts';
import type { AddOnConfig } from '../render/addon-config.ts';
import type { OperatorInput } from '../render/operator.ts';
import type { RenderedWork } from '../render/pack.ts';
import { renderWorks } from '../render/works.ts';
import type { Turn } from '../rollout/rollouts.ts';
import { type DeliverySettings, defaultImages } from '../spec/delivery-settings.ts';
import type { Foundation } from '../spec/foundation.ts';
import { type Release, versionKeys, versionText } from '../spec/release.ts';
import type { AddOnSettings } from '../spec/spec.ts';
import { NotDeliverableError } from './cluster-config.ts';
import type { ClusterContext } from './cluster-context.ts';
import type { DeliveredSecrets } from './cluster-secrets.ts';
import { configHashAnnotation, configHashes } from './config-status.ts';

/** What the works of a cluster are made from, beside what was generated for it. */
export interface RenderTarget extends Pick<ClusterContext, 'cluster' | 'templates'> {
  readonly foundation: Pick<Foundation, 'key' | 'addOn' | 'endpoint' | 'authorities'>;
  readonly delivery: Pick<DeliverySettings, 'pullPolicy'>;
  readonly config: AddOnConfig;
  readonly release: Release;
}

/**
 * Renders the works of a cluster from what is known now.
 * @throws NotDeliverableError, OversizedManifestError
 */
export function renderCluster(target: RenderTarget, delivered: DeliveredSecrets): RenderedWork[] {
  const { foundation, delivery, cluster, templates, config, release } = target;
  const { version } = release;
  const { addOn, endpoint } = foundation;
  if (endpoint === undefined) {
    throw new NotDeliverableError('the server is not discovered');
  }
  if (addOn.payload?.problem !== undefined) {
    throw new NotDeliverableError(`Invalid ArgoCDCRManifestWork: ${addOn.payload.problem}`);
  }
  const shared = {
    namespace: addOn.agentNamespace ?? config.agentNamespace ?? 'argocd',
    mode: addOn.mode,
    serverAddress: endpoint.address,
    serverPort: endpoint.port,
    authorities: foundation.authorities,
    clientCertificate: delivered.clientCertificate,
    agentImage: version.agent,
    pullPolicy: delivery.pullPolicy,
    liveAccess: addOn.liveAccess,
    destinationBasedMapping: addOn.destinationBasedMapping,
    config,
  };
  if (addOn.argoCD === 'Operator') {
    return renderWorks(templates, {
      ...shared,
      argoCD: undefined,
      operator: operatorOf(addOn, config, release, cluster),
    });
  }
  if (addOn.argoCD === 'Existing') {
    return renderWorks(templates, { ...shared, argoCD: undefined });
  }
  return renderWorks(templates, {
    ...shared,
    argoCD: {
      image: version.argoCD ?? defaultImages.argoCd,
      redisImage: version.redis ?? defaultImages.redis,
      redisPassword: delivered.redisPassword,
      serverSecretKey: delivered.serverSecretKey,
      crds: requiredCrds(release, kindsOf(addOn.mode), cluster, "install Argo CD's CRDs on the hub"),
    },
  });
}

function operatorOf(addOn: AddOnSettings, config: AddOnConfig, release: Release, cluster: string): OperatorInput {
  const { version } = release;
  const { installsOperator } = config;
  const advice = `install argocd-operator's CRDs on the hub or, if the cluster has argocd-operator, set the variable ARGOCD_OPERATOR_INSTALL=false in its AddOnDeploymentConfig`;
  return {
    namespace: addOn.operatorNamespace ?? config.operatorNamespace ?? 'argocd-operator-system',
    image: installsOperator ? (version.operator ?? defaultImages.operator) : undefined,
    crds: installsOperator ? requiredCrds(release, operatorKinds, cluster, advice) : [],
    agentImage: addOn.syncsAgentImage ? version.agent : undefined,
    payload: addOn.payload?.value,
  };
}

/** The hub's CRDs of these names. */
function requiredCrds(
  release: Release,
  names: readonly string[],
  cluster: string,
  advice: string,
): CustomResourceDefinition[] {
  const crds = names.map((name) => ({ name, crd: release.crds.get(name) }));
  const missing = crds.filter(({ crd }) => crd === undefined).map(({ name }) => name);
  if (missing.length > 0) {
    throw new NotDeliverableError(
      `the hub has no CustomResourceDefinition ${missing.join(', ')} to copy to ${cluster}; ${advice}`,
    );
  }
  return crds.flatMap(({ crd }) => crd ?? []);
}

/**
 * Writes the works of a cluster and removes those that are no longer part of it.
 * @returns whether anything was written
 */
export async function ensureWorks(
  context: ClusterContext,
  rendered: readonly RenderedWork[],
  { version, updatedAt }: Pick<Turn, 'version' | 'updatedAt'>,
): Promise<boolean> {
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
  let isWritten = false;
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
        annotations: {
          ...base.annotations,
          [configHashAnnotation]: configs,
          [versionKeys.version]: versionText(version),
          ...(updatedAt === undefined ? {} : { [versionKeys.updatedAt]: updatedAt }),
        },
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
      const { changed } = await applier.ensure(manifestWorks, work, live, {
        exact: ['spec.workload'],
        alone: ownPlaces,
        signal,
      });
      isWritten ||= changed;
    } catch (error) {
      signal.throwIfAborted();
      if (isConflict(error)) {
        throw error;
      }
      errors.push(new Error(`ManifestWork ${cluster}/${name}: ${(error as Error).message}`, { cause: error }));
    }
  }
  if (errors[0]) {
    throw errors[0];
  }
  for (const work of caches.works.list(cluster)) {
    if (wanted.has(work.metadata.name) || work.metadata.labels?.[keys.part] === formerWork.part) {
      continue;
    }
    await applier.remove(manifestWorks, work, signal);
    isWritten = true;
  }
  return isWritten;
}

/** What a work of ours may have had and lose. */
const ownPlaces = [
  ['metadata', 'annotations', versionKeys.updatedAt],
  ['spec', 'workload'],
  ['spec', 'manifestConfigs'],
  ['spec', 'deleteOption'],
] as const;

/** Whether a cluster has applied this content, not only an earlier one of the same work. */
export function isApplied(work: ManifestWork | undefined, spec: ManifestWork['spec']): boolean {
  if (!work || !isDeepStrictEqual(work.spec.workload, spec.workload)) {
    return false;
  }
  const applied = work.status?.conditions?.find(({ type }) => type === 'Applied');
  return applied?.status === 'True' && (applied.observedGeneration ?? 0) >= (work.metadata.generation ?? 0);
}
