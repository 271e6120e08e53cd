import { wellKnown } from '../../lib/base/index.ts';
import {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  deployments,
  finalizerPatch,
  type KubeObject,
  keyOf,
  type ResourceType,
  roleBindings,
  roles,
  secrets,
  serviceAccounts,
  services,
} from '../../lib/kube/index.ts';
import { FatalError } from '../../lib/ops/index.ts';
import { fingerprintsOf, secretText } from '../../lib/pki/index.ts';
import {
  addOnDeploymentConfigs,
  addOnName,
  cleanUpWork,
  clusterManagementAddOns,
  finalizer,
  formerWork,
  type GitOpsCluster,
  gitOpsClusters,
  hasLetGo,
  hubNames,
  isLettingGo,
  isOurs,
  keys,
  letGo,
  managedClusterAddOns,
  manifestWorks,
} from '../hub/index.ts';
import { changeRelease, isOfRelease, releaseOfObject } from './helm.ts';
import { addOnSpecOf, adoptedFrom, disruptionBudgets, isSelfManaged, lifecycle, networkPolicies } from './kinds.ts';
import { Steps, type TakeoverScope } from './steps.ts';
import { stopController } from './stop-controller.ts';

/**
 * Makes a hub one that argocd-pull-integration can be installed on again: it goes on with the same authority, Secrets and
 * ArgoCD resources. The clusters keep what they have.
 * @throws FatalError when that is not possible, or a cluster does not answer in time
 */
export async function release(scope: TakeoverScope): Promise<void> {
  const { client, namespace, signal, stdout } = scope;
  const steps = new Steps(scope);
  const fleets = await client.list(gitOpsClusters, { namespace, signal });
  const registration = await client.get(clusterManagementAddOns, { name: addOnName }, signal);
  if (fleets.length === 0) {
    throw new FatalError(`namespace ${namespace} has no GitOpsCluster: name its namespace with --namespace`);
  }
  await checkCanBeReleased(scope, fleets);
  const [former = '', original = ''] = registration?.metadata.annotations?.[adoptedFrom]?.split('/') ?? [];
  const target = original === '' ? scope.release : { namespace: former, name: original };
  const controllers = await client.list(deployments, {
    labelSelector: 'app.kubernetes.io/name=argocd-agent-addon-controller',
    signal,
  });
  const own = controllers.map(releaseOfObject).find(Boolean);
  for (const controller of controllers) {
    await stopController(scope, steps, controller);
  }
  await releaseWorks(scope, steps);
  await releaseAddOns(scope, steps);
  await releaseSecrets(scope, steps);
  for (const fleet of fleets) {
    const patch = finalizerPatch(fleet, { remove: finalizer });
    const isOperator = addOnSpecOf(fleet)?.argoCD === 'Operator';
    if (patch || isOperator) {
      const spec = isOperator && { spec: { argoCDAgentAddon: { argoCD: null } } };
      await steps.patch(gitOpsClusters, fleet, 'as it was before it was adopted', { ...patch, ...spec });
    }
  }
  if (registration && isSelfManaged(registration)) {
    await steps.patch(clusterManagementAddOns, registration, "OCM's add-on manager may work on it again", {
      metadata: { annotations: { [lifecycle]: null } },
    });
  }
  const remains = own ? await chartObjects(scope, controllers) : controllers.map((one) => [deployments, one] as const);
  if (own) {
    await changeRelease({ ...scope, release: target }, steps, own);
  }
  for (const [type, object] of remains) {
    await steps.delete(type, object);
  }
  if (steps.count === 0) {
    stdout('nothing is left to release\n');
  }
  stdout(
    `next: helm install ${target.name} CHART --namespace ${target.namespace} --values VALUES, with argocd-pull-integration's chart argocd-agent-addon\n`,
  );
}

/** Parts of the works that clean a cluster, or a former namespace of it, up. */
const cleanUps = [cleanUpWork.part, formerWork.part];

async function checkCanBeReleased(
  { client, namespace, signal }: TakeoverScope,
  fleets: readonly GitOpsCluster[],
): Promise<void> {
  const other = fleets.find((one) => {
    const { argoCD, argoCDCRManifestWork } = addOnSpecOf(one) ?? {};
    const flavour = argoCD ?? (argoCDCRManifestWork === undefined ? 'Install' : 'Operator');
    return flavour !== 'Operator' && one.metadata.finalizers?.includes(finalizer);
  });
  if (other) {
    throw new FatalError(
      `the clusters of GitOpsCluster ${keyOf(other)} have no argocd-operator, which argocd-pull-integration needs: set spec.argoCDAgentAddon.argoCD: Operator and wait until it is Ready; Argo CD on the clusters is deployed anew then`,
    );
  }
  const cleaned = await client.list(manifestWorks, {
    labelSelector: `${keys.part} in (${[...cleanUps].join(', ')})`,
    signal,
  });
  const clusters = cleaned.filter((work) => isOurs(work)).map(({ metadata }) => metadata.namespace ?? '');
  if (clusters.length > 0) {
    throw new FatalError(
      `clusters are being cleaned up: ${[...new Set(clusters)].sort().join(', ')}; wait until that is over, since it needs this controller`,
    );
  }
  const principal = await client.get(deployments, { namespace, name: 'argocd-agent-principal' }, signal);
  if (principal?.metadata.labels?.[wellKnown.managedByLabel] === 'Helm') {
    throw new FatalError(
      `the principal ${namespace}/argocd-agent-principal is of this project's chart, argocd-pull-integration's is argocd-operator's: this hub cannot be given back without another principal`,
    );
  }
  const trust = await client.get(secrets, { namespace, name: hubNames.authorityTrust }, signal);
  const authorities = secretText(trust?.data, 'ca.crt');
  if (authorities !== undefined && fingerprintsOf(authorities).length > 1) {
    throw new FatalError(
      `the authority of namespace ${namespace} is being replaced: wait until the condition CACertificateReady of the GitOpsCluster says nothing of a former one`,
    );
  }
}

/** Lets the clusters keep the objects of the works, waits until they have agreed, and deletes the works. */
async function releaseWorks(scope: TakeoverScope, steps: Steps): Promise<void> {
  const { client, signal } = scope;
  const ours = async () =>
    (await client.list(manifestWorks, { labelSelector: keys.part, signal })).filter((work) => isOurs(work));
  for (const work of await ours()) {
    if (!isLettingGo(work)) {
      await steps.patch(manifestWorks, work, 'the cluster keeps its objects', letGo);
    }
  }
  await steps.wait(async () => {
    const open = (await ours()).filter((work) => !hasLetGo(work)).map(({ metadata }) => metadata.namespace);
    const clusters = [...new Set(open)].sort();
    return clusters.length === 0
      ? undefined
      : `clusters have not confirmed that they keep their objects: ${clusters.join(', ')}`;
  });
  for (const work of await ours()) {
    await steps.delete(manifestWorks, work);
  }
}

async function releaseAddOns({ client, signal }: TakeoverScope, steps: Steps): Promise<void> {
  for (const addOn of await client.list(managedClusterAddOns, { signal })) {
    const owned = addOn.metadata.annotations?.[keys.owner];
    const patch = finalizerPatch(addOn, { remove: finalizer });
    if (addOn.metadata.name !== addOnName || !(owned || patch)) {
      continue;
    }
    const annotations = { [keys.owner]: null, [keys.issued]: null };
    await steps.patch(managedClusterAddOns, addOn, 'released', { metadata: { ...patch?.metadata, annotations } });
  }
}

/** Deletes what only this controller uses, and takes its marks off the rest. */
async function releaseSecrets({ client, namespace, signal }: TakeoverScope, steps: Steps): Promise<void> {
  const isOwn = (name: string) => name === hubNames.authorityTrust || name.startsWith(`${addOnName}-`);
  const marked: [ResourceType, KubeObject][] = [];
  for (const type of [secrets, configMaps] as ResourceType[]) {
    marked.push(
      ...(await client.list(type, { namespace, signal }))
        .filter(isOurs)
        .map((one): [ResourceType, KubeObject] => [type, one]),
    );
  }
  const labels = { [wellKnown.managedByLabel]: null, [keys.ownerName]: null, [keys.ownerNamespace]: null };
  const metadata = { labels, annotations: { [keys.owner]: null } };
  for (const [type, object] of marked) {
    if (isOwn(object.metadata.name)) {
      await steps.delete(type, object);
    } else {
      await steps.patch(type, object, 'handed over as it is', { metadata });
    }
  }
}

/** The objects of this project's chart that the other chart does not have. The controller is last. */
async function chartObjects(
  { client, signal }: TakeoverScope,
  controllers: readonly KubeObject[],
): Promise<[ResourceType, KubeObject][]> {
  const own = releaseOfObject(controllers[0]);
  const types = [
    clusterRoleBindings,
    clusterRoles,
    roleBindings,
    roles,
    serviceAccounts,
    services,
    networkPolicies,
    disruptionBudgets,
    addOnDeploymentConfigs,
  ] as ResourceType[];
  const labelSelector = `${wellKnown.partOfLabel}=argocd-agent-addon`;
  const found: [ResourceType, KubeObject][] = [];
  for (const type of types) {
    for (const object of await client.list(type, { labelSelector, signal })) {
      // Both charts have the Role of the same name for the application-set controller.
      if (isOfRelease(object, own) && object.metadata.name !== 'argocd-applicationset-placement') {
        found.push([type, object]);
      }
    }
  }
  return [...found, ...controllers.map((one): [ResourceType, KubeObject] => [deployments, one])];
}
