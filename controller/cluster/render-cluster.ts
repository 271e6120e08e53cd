import type { CustomResourceDefinition } from '../../lib/kube/index.ts';
import type { Templates } from '../../lib/manifests/index.ts';
import { kindsOf, operatorKinds } from '../hub/index.ts';
import { type AddOnConfig, type OperatorInput, type RenderedWork, renderWorks } from '../render/index.ts';
import {
  type AddOnSettings,
  type DeliverySettings,
  defaultImages,
  type Foundation,
  type Release,
} from '../spec/index.ts';
import { NotDeliverableError } from './cluster-config.ts';
import type { DeliveredSecrets } from './cluster-secrets.ts';

/** The input for the works of a cluster, besides its generated values. */
export interface RenderTarget {
  readonly cluster: string;
  readonly templates: Templates;
  readonly foundation: Pick<Foundation, 'key' | 'addOn' | 'endpoint' | 'authorities'>;
  readonly delivery: Pick<DeliverySettings, 'pullPolicy'>;
  readonly config: AddOnConfig;
  readonly release: Release;
  /** Whether the cluster has a StatefulSet of an earlier version. */
  readonly orderedPods?: boolean;
}

/**
 * Renders the works of a cluster from the current state of the hub.
 * @throws NotDeliverableError, OversizedManifestError
 */
export function renderCluster(target: RenderTarget, delivered: DeliveredSecrets): RenderedWork[] {
  const { foundation, delivery, cluster, templates, config, release } = target;
  const { version } = release;
  const { addOn } = foundation;
  // A cluster that a rollout has not reached keeps the endpoint that it has.
  const endpoint = foundation.endpoint && (version.endpoint ?? foundation.endpoint);
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
    settings: version.settings,
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
      orderedPods: target.orderedPods,
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

/** The hub's CRDs with these names. */
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
