import { wellKnown } from '../../lib/base/index.ts';
import {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  crds,
  type Deployment,
  deployments,
  finalizerPatch,
  type KubeObject,
  type ObjectKey,
  type ResourceType,
  roleBindings,
  roles,
  type Secret,
  secrets,
  serviceAccounts,
} from '../../lib/kube/index.ts';
import { FatalError } from '../../lib/ops/index.ts';
import {
  addOnName,
  agentSecretName,
  type ClusterManagementAddOn,
  clusterClientName,
  clusterManagementAddOns,
  type GitOpsCluster,
  gitOpsClusters,
  hubNames,
  isOurs,
  isTemplateWork,
  keys,
  type ManagedClusterAddOn,
  managedBy,
  managedClusterAddOns,
  manifestWorks,
  originalAuthorityWork,
} from '../hub/index.ts';
import { changeRelease, releaseOfObject } from './helm.ts';
import { addOnSpecOf, addOnTemplates, adoptedFrom, isSelfManaged, lifecycle, preDelete } from './kinds.ts';
import { Steps, type TakeoverScope } from './steps.ts';
import { stopController } from './stop-controller.ts';

const mark = { labels: { [wellKnown.managedByLabel]: managedBy } };

/**
 * Makes a hub of argocd-pull-integration one that this project's controller and chart go on with. Objects are taken over by
 * their names. Nothing on a cluster changes before the controller runs.
 * @throws FatalError when there is nothing to take over, or a right or a decision is missing
 */
export async function adopt(scope: TakeoverScope): Promise<void> {
  const { client, namespace, release, signal, stdout } = scope;
  await checkCrd(scope);
  const steps = new Steps(scope);
  const controllers = await client.list(deployments, {
    labelSelector: 'app.kubernetes.io/name=argocd-pull-integration-controller',
    signal,
  });
  const fleets = await client.list(gitOpsClusters, { namespace, signal });
  const addOns = (await client.list(managedClusterAddOns, { signal })).filter(
    (one) => one.metadata.name === addOnName && isOurs(one),
  );
  const authority = await client.get(secrets, { namespace, name: hubNames.authority }, signal);
  const registration = await client.get(clusterManagementAddOns, { name: addOnName }, signal);
  await checkIsOriginals(scope, { controllers, fleets, addOns, authority, registration });
  // Of its Deployment only: the other objects may be of another release, or of ours already.
  const former = controllers.map(releaseOfObject).find(Boolean);
  for (const controller of controllers) {
    await stopController(scope, steps, controller);
  }
  if (registration) {
    await releaseFromAddOnManager(steps, registration, former);
  }
  await markObjects(scope, steps);
  for (const addOn of addOns) {
    await adoptCluster(scope, steps, addOn);
  }
  for (const fleet of fleets) {
    await keepOperator(steps, fleet);
  }
  await removeRemains(scope, steps, fleets);
  if (former) {
    await changeRelease(scope, steps, former);
  }
  for (const controller of controllers) {
    await removeController(scope, steps, controller);
  }
  if (steps.count === 0) {
    stdout('nothing is left to take over\n');
  }
  stdout(
    `next: helm install ${release.name} ./charts/argocd-agent-addon --namespace ${release.namespace} --create-namespace --values VALUES\n`,
  );
}

/** The original's CRD drops the field that keeps argocd-operator on the clusters. */
async function checkCrd({ client, signal }: TakeoverScope): Promise<void> {
  const name = 'gitopsclusters.apps.open-cluster-management.io';
  const crd = await client.get(crds, { name }, signal);
  if (crd === undefined) {
    throw new FatalError(`the hub has no CustomResourceDefinition ${name}: argocd-pull-integration is not installed`);
  }
  if (!JSON.stringify(crd.spec).includes('"argoCD":')) {
    throw new FatalError(
      `CustomResourceDefinition ${name} is argocd-pull-integration's: first run kubectl apply --server-side --force-conflicts -f charts/argocd-agent-addon/crds`,
    );
  }
}

/** A hub on which nothing is of argocd-pull-integration is left alone. */
async function checkIsOriginals(
  { client, namespace, signal }: TakeoverScope,
  found: {
    controllers: readonly Deployment[];
    fleets: readonly GitOpsCluster[];
    addOns: readonly ManagedClusterAddOn[];
    authority: Secret | undefined;
    registration: ClusterManagementAddOn | undefined;
  },
): Promise<void> {
  const { controllers, fleets, addOns, authority, registration } = found;
  if (authority === undefined || fleets.length === 0) {
    const others = new Set((await client.list(gitOpsClusters, { signal })).map(({ metadata }) => metadata.namespace));
    others.delete(namespace);
    const where = others.size > 0 ? `. There are GitOpsClusters in: ${[...others].sort().join(', ')}` : '';
    throw new FatalError(
      `namespace ${namespace} has no fleet of argocd-pull-integration (${authority === undefined ? `no Secret ${hubNames.authority}` : 'no GitOpsCluster'}): name its namespace with --namespace${where}`,
    );
  }
  const hasSign =
    controllers.length > 0 ||
    isOurs(authority) ||
    addOns.some(({ spec }) => spec?.configs?.some(isTemplate)) ||
    // The hub has been adopted before, for another namespace.
    registration?.metadata.annotations?.[adoptedFrom] !== undefined;
  if (!hasSign) {
    throw new FatalError(
      `nothing shows that argocd-pull-integration made Secret ${namespace}/${hubNames.authority}: to hand your own authority over, add the label ${wellKnown.managedByLabel}=${managedBy} yourself`,
    );
  }
}

const isTemplate = ({ resource }: { resource: string }) => resource === 'addontemplates';

/** Its manager of the AddOnTemplates of an add-on goes on with `self`, and ends when the add-on supports no AddOnTemplates. */
async function releaseFromAddOnManager(
  steps: Steps,
  registration: ClusterManagementAddOn,
  former: { readonly namespace: string; readonly name: string } | undefined,
): Promise<void> {
  const { supportedConfigs = [] } = registration.spec ?? {};
  const kept = supportedConfigs.filter((one) => !isTemplate(one));
  if (!isSelfManaged(registration) || kept.length < supportedConfigs.length) {
    const from = former && { [adoptedFrom]: `${former.namespace}/${former.name}` };
    await steps.patch(clusterManagementAddOns, registration, "OCM's add-on manager leaves the clusters alone", {
      metadata: { annotations: { [lifecycle]: 'self', ...from } },
      ...(kept.length < supportedConfigs.length && { spec: { supportedConfigs: kept } }),
    });
  }
}

/** Marks Secrets and the ConfigMap as the controller's. Certificates and keys stay; the controller renews them. */
async function markObjects({ client, namespace, signal }: TakeoverScope, steps: Steps): Promise<void> {
  const all = await client.list(secrets, { namespace, signal });
  const clusters = all.flatMap(({ metadata }) => {
    const cluster = metadata.labels?.[keys.clusterName];
    return cluster !== undefined && metadata.name === agentSecretName(cluster) ? [cluster] : [];
  });
  const { authorityTrust: _, authorityBundle, ...shared } = hubNames;
  const names = new Set<string>([
    ...Object.values(shared),
    ...clusters.flatMap((cluster) => [agentSecretName(cluster), clusterClientName(cluster)]),
  ]);
  const bundle = await client.get(configMaps, { namespace, name: authorityBundle }, signal);
  const found: [ResourceType, KubeObject][] = [
    ...all.filter(({ metadata }) => names.has(metadata.name)).map((one): [ResourceType, KubeObject] => [secrets, one]),
    ...(bundle ? [[configMaps, bundle] as [ResourceType, KubeObject]] : []),
  ];
  for (const [type, object] of found.filter(([, one]) => !isOurs(one))) {
    await steps.patch(type, object, 'taken over as it is', { metadata: mark });
  }
}

/** Releases a cluster's add-on from OCM's add-on manager, and shows the original's works to the controller. */
async function adoptCluster(
  { client, signal }: TakeoverScope,
  steps: Steps,
  addOn: ManagedClusterAddOn,
): Promise<void> {
  const { namespace = '' } = addOn.metadata;
  const { configs = [] } = addOn.spec ?? {};
  const kept = configs.filter((one) => !isTemplate(one));
  const held = finalizerPatch(addOn, { remove: preDelete });
  if (held || kept.length < configs.length) {
    const patch = { ...held, spec: { configs: kept } };
    await steps.patch(managedClusterAddOns, addOn, 'no longer made from the AddOnTemplate', patch);
  }
  for (const work of await client.list(manifestWorks, { namespace, signal })) {
    const { name } = work.metadata;
    if ((name === originalAuthorityWork || isTemplateWork(name)) && !isOurs(work)) {
      const what = 'the controller replaces it when the cluster agrees';
      await steps.patch(manifestWorks, work, what, { metadata: mark });
    }
  }
}

/** The clusters keep Argo CD as argocd-operator has deployed it. */
async function keepOperator(steps: Steps, fleet: GitOpsCluster): Promise<void> {
  if (addOnSpecOf(fleet)?.argoCD === undefined) {
    await steps.patch(gitOpsClusters, fleet, 'argoCD: Operator, so that its clusters keep their Argo CD', {
      spec: { argoCDAgentAddon: { argoCD: 'Operator' } },
    });
  }
}

/** Deletes what only OCM's add-on manager used. */
async function removeRemains(scope: TakeoverScope, steps: Steps, fleets: readonly GitOpsCluster[]): Promise<void> {
  const { client, namespace, signal } = scope;
  const names = new Set(fleets.map(({ metadata }) => `${addOnName}-${namespace}-${metadata.name}`));
  for (const template of await client.list(addOnTemplates, { signal })) {
    if (names.has(template.metadata.name)) {
      await steps.delete(addOnTemplates, template);
    }
  }
  await deleteExisting(scope, steps, [
    [roles, { namespace, name: 'addon-manager-controller-role' }],
    [roleBindings, { namespace, name: 'addon-manager-controller-rolebinding' }],
  ]);
}

async function removeController(scope: TakeoverScope, steps: Steps, { metadata }: Deployment): Promise<void> {
  const { namespace = '', name } = metadata;
  const prefix = 'argocd-pull-integration';
  await deleteExisting(scope, steps, [
    [clusterRoleBindings, { name: `${prefix}-manager-rolebinding` }],
    [clusterRoles, { name: `${prefix}-manager-role` }],
    [roleBindings, { namespace, name: `${prefix}-leader-election-rolebinding` }],
    [roles, { namespace, name: `${prefix}-leader-election-role` }],
    [serviceAccounts, { namespace, name: `${prefix}-controller-manager` }],
    // Last: as long as it is there, the command finds what it has not finished.
    [deployments, { namespace, name }],
  ]);
}

async function deleteExisting(
  { client, signal }: TakeoverScope,
  steps: Steps,
  candidates: readonly (readonly [ResourceType, ObjectKey])[],
): Promise<void> {
  for (const [type, key] of candidates) {
    const object = await client.get(type, key, signal);
    if (object) {
      await steps.delete(type, object);
    }
  }
}
