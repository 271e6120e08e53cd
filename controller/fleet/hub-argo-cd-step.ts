import { versionOfImage } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import type { Deployment, StatefulSet } from '../../lib/kube/index.ts';
import {
  configureArgoCd,
  keyPrefixRequirement,
  namespacesRequirement,
  type ParameterRequirement,
  readParameter,
  redisRequirement,
  sentinelRequirement,
} from '../argocd/index.ts';
import { hasReadyEndpoint } from '../endpoint/index.ts';
import {
  type FleetReasons,
  type GitOpsCluster,
  isRetaining,
  type StepReport,
  type StepResult,
  succeeded,
} from '../hub/index.ts';
import { type HubState, parseGitOpsCluster, releaseOf } from '../spec/index.ts';
import type { Fleet, FleetDeps } from './fleet-deps.ts';

type HubArgoCdResult = StepResult<FleetReasons['HubArgoCDCompatible']>;

/** Reports whether the hub's own Argo CD fits the fleet, and configures it with its owner's consent. */
export async function ensureHubArgoCd(
  deps: FleetDeps,
  fleet: Pick<Fleet, 'namespace' | 'gitOpsCluster' | 'signal'>,
): Promise<StepReport<undefined, FleetReasons['HubArgoCDCompatible']>> {
  const parameters = await configureHubArgoCd(deps, fleet);
  return { result: worstOf([checkHubArgoCd(deps, fleet).result, checkDeliveredVersion(deps, fleet), parameters]) };
}

/**
 * Configures the hub's own Argo CD for the GitOpsClusters of a principal. What none of them needs any more is given back;
 * GitOpsClusters that are deleted, or are about to be left without a controller, need nothing.
 */
export function configureHubArgoCd(
  deps: FleetDeps,
  { namespace, gitOpsCluster, signal }: Pick<Fleet, 'namespace' | 'gitOpsCluster' | 'signal'>,
): Promise<HubArgoCdResult> {
  const { caches, configuredNamespaces } = deps;
  const self = gitOpsCluster.metadata;
  const others = caches.sharing(namespace).filter(({ metadata }) => metadata.uid !== self.uid);
  const served = [gitOpsCluster, ...others].filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const isConsented = configuredNamespaces.includes(namespace) && !served.every(isRetaining);
  const isReady = hasReadyEndpoint(caches.serviceExposure(namespace)) !== false;
  const requirements = requirementsOf(deps, namespace, served);
  return configureArgoCd(deps, { namespace, gitOpsCluster, signal, isConsented, isReady, requirements });
}

/** What live access to the clusters needs: the Redis proxy with the keys that it knows, and Applications in the clusters' namespaces if there are any. */
function requirementsOf(
  { caches, ownership }: Pick<FleetDeps, 'caches' | 'ownership'>,
  namespace: string,
  gitOpsClusters: readonly GitOpsCluster[],
): ParameterRequirement[] {
  const forwardsTo = caches.redisBehindProxy(namespace);
  if (forwardsTo === undefined || gitOpsClusters.length === 0) {
    return [];
  }
  const namespaced = gitOpsClusters.flatMap((one) => {
    const spec = parseGitOpsCluster(one);
    const isNamespaced = spec.addOn.value?.mode === 'autonomous' || spec.addOn.value?.destinationBasedMapping === false;
    return isNamespaced ? [ownership.selectionOf(one, spec)] : [];
  });
  // As long as there is such a GitOpsCluster: what was set for its clusters stays while none is selected.
  const clusters = namespaced.flatMap((selection) => (selection.known ? [...selection.clusters] : []));
  const principal = caches.principalDeployment(namespace);
  const prefix = principal && readParameter(principal, 'redis.key.prefix', caches.argoCdParams(namespace)).value;
  return [
    redisRequirement(namespace, forwardsTo),
    sentinelRequirement(),
    ...(prefix === undefined ? [] : [keyPrefixRequirement(prefix)]),
    ...(namespaced.length > 0 ? [namespacesRequirement(clusters)] : []),
  ];
}

/** The worst result, with the messages of all that are as bad or worse than unknown. */
function worstOf(results: readonly HubArgoCdResult[]): HubArgoCdResult {
  const known = results.filter((one) => one !== undefined);
  const bad = ['False', 'Unknown'].flatMap((status) => known.filter((one) => one.status === status));
  const [first] = [...bad, ...known];
  const told = bad.length > 0 ? bad : known;
  return first && { ...first, message: told.map(({ message }) => message).join('; ') };
}

/**
 * Reports whether the application controller of the hub's own Argo CD leaves the fleet's Applications to the clusters.
 * Argo CD honours `argocd.argoproj.io/skip-reconcile` on cluster Secrets from 3.4 on. An older application controller
 * reconciles the Applications through the resource proxy, beside the cluster's own.
 */
export function checkHubArgoCd(
  { caches }: Pick<FleetDeps, 'caches'>,
  { namespace }: Pick<Fleet, 'namespace'>,
): StepReport<undefined, FleetReasons['HubArgoCDCompatible']> {
  const running = caches.applicationControllers(namespace).filter(({ spec }) => (spec?.replicas ?? 1) > 0);
  const results = running.map(resultFor);
  const worst = results.find((one) => one?.status === 'False') ?? results.find((one) => one?.status === 'Unknown');
  const isThere = caches.argoCdWorkloads(namespace).length > 0;
  const none = `Namespace ${namespace} of the hub has no Argo CD: set the chart's value global.argoCDNamespace to the namespace that has one, or hubArgoCD.install to true`;
  const without = isThere ? 'The hub runs no application controller of its own' : none;
  return { result: worst ?? results[0] ?? succeeded(without) };
}

function resultFor({ metadata: { namespace, name }, spec }: StatefulSet | Deployment): HubArgoCdResult {
  const image = spec?.template?.spec?.containers[0]?.image ?? '';
  const version = versionOfImage(image);
  const subject = `the hub's application controller ${namespace}/${name}`;
  const advice = `scale it to 0 replicas if the hub deploys nothing itself, or update the hub's Argo CD to 3.4 or later; until then Applications with the annotation ${wellKnown.skipReconcileAnnotation}=true are left to the clusters`;
  if (version === undefined) {
    const message = `${subject} runs image ${JSON.stringify(image)}, whose version is not known; before 3.4 it reconciles the fleet's Applications as well: ${advice}`;
    return { status: 'Unknown', reason: 'VersionUnknown', message };
  }
  const [major, minor] = version;
  if (major > 3 || (major === 3 && minor >= 4)) {
    return succeeded(`${subject} is of version ${major}.${minor} and skips the clusters of the fleet`);
  }
  const message = `${subject} is of version ${major}.${minor} and reconciles the fleet's Applications beside the clusters: ${advice}`;
  return { status: 'False', reason: 'HubReconcilesApplications', message };
}

/** Minor versions of Argo CD 3 whose manifests, CRDs and protocols this version of the project knows. */
const supported = { oldest: 3, newest: 6 };

/** Reports clusters that get an Argo CD which this version of the project does not know. They follow the hub. */
export function checkDeliveredVersion(
  { caches, delivery }: Pick<FleetDeps, 'delivery'> & { caches: HubState },
  { namespace, gitOpsCluster }: Pick<Fleet, 'namespace' | 'gitOpsCluster'>,
): HubArgoCdResult {
  const addOn = parseGitOpsCluster(gitOpsCluster).addOn.value;
  const image = addOn && releaseOf({ caches, delivery }, namespace, addOn).version.argoCD;
  const [major, minor] = (image && versionOfImage(image)) || [];
  if (image === undefined || major === undefined || minor === undefined) {
    return undefined;
  }
  const range = `3.${supported.oldest} to 3.${supported.newest} are supported`;
  const subject = `the clusters get Argo CD ${major}.${minor} (image ${JSON.stringify(image)})`;
  if (major < 3 || (major === 3 && minor < supported.oldest)) {
    const advice = "update the hub's Argo CD, or set the chart's value managedArgoCD.image";
    return {
      status: 'False',
      reason: 'VersionNotSupported',
      message: `${subject}, which is too old; ${range}: ${advice}`,
    };
  }
  if (major > 3 || minor > supported.newest) {
    const advice = 'update this add-on';
    return {
      status: 'Unknown',
      reason: 'VersionUnknown',
      message: `${subject}, which is newer than any known; ${range}: ${advice}`,
    };
  }
  return succeeded(`${subject}`);
}
