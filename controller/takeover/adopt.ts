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
  keyOf,
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
  clusterClientName,
  clusterManagementAddOns,
  type GitOpsCluster,
  gitOpsClusters,
  hubNames,
  isOurs,
  keys,
  type ManagedClusterAddOn,
  managedBy,
  managedClusterAddOns,
  manifestWorks,
} from '../hub/index.ts';
import { changeRelease, releaseOfObject } from './helm.ts';
import { addOnTemplates, adoptedFrom, lifecycle, preDelete } from './kinds.ts';
import { Steps, type TakeoverScope } from './steps.ts';
import { stopController } from './stop-controller.ts';

/** Name of argocd-pull-integration's work with the authority. It has no mark, and would write an old authority back. */
const authorityWork = 'argocd-agent-ca-mw';
/** OCM's add-on manager numbers the works that it renders from an AddOnTemplate. */
const templateWork = /^addon-argocd-agent-addon-deploy-\d+$/;

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
  const fleets = (await client.list(gitOpsClusters, { signal })).filter((one) => one.metadata.namespace === namespace);
  const addOns = (await client.list(managedClusterAddOns, { signal })).filter(
    (one) => one.metadata.name === addOnName && isOurs(one),
  );
  const authority = await client.get(secrets, { namespace, name: hubNames.authority }, signal);
  await refuseOthers(scope, { controllers, fleets, addOns, authority });
  const registration = await client.get(clusterManagementAddOns, { name: addOnName }, signal);
  // Of its Deployment only: the other objects may be of another release, or of ours already.
  const former = controllers.map(releaseOfObject).find(Boolean);
  for (const controller of controllers) {
    await stopController(scope, steps, controller);
  }
  if (registration && registration.metadata.annotations?.[lifecycle] !== 'self') {
    await steps.take("ClusterManagementAddOn argocd-agent-addon: OCM's add-on manager leaves the clusters alone", () =>
      client.mergePatch(
        clusterManagementAddOns,
        { name: addOnName },
        {
          metadata: {
            annotations: {
              [lifecycle]: 'self',
              ...(former && { [adoptedFrom]: `${former.namespace}/${former.name}` }),
            },
          },
        },
        { signal },
      ),
    );
  }
  await markObjects(scope, steps);
  for (const addOn of addOns) {
    await adoptCluster(scope, steps, addOn);
  }
  for (const fleet of fleets) {
    await keepOperator(scope, steps, fleet);
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

async function refuseOthers(
  { client, namespace, signal }: TakeoverScope,
  found: {
    controllers: readonly Deployment[];
    fleets: readonly GitOpsCluster[];
    addOns: readonly ManagedClusterAddOn[];
    authority: Secret | undefined;
  },
): Promise<void> {
  const { controllers, fleets, addOns, authority } = found;
  if (authority === undefined || fleets.length === 0) {
    const others = new Set((await client.list(gitOpsClusters, { signal })).map(({ metadata }) => metadata.namespace));
    others.delete(namespace);
    const where = others.size > 0 ? `. There are GitOpsClusters in: ${[...others].sort().join(', ')}` : '';
    throw new FatalError(
      `namespace ${namespace} has no fleet of argocd-pull-integration (${authority === undefined ? `no Secret ${hubNames.authority}` : 'no GitOpsCluster'}): name its namespace with --namespace${where}`,
    );
  }
  const hasSign =
    controllers.length > 0 || isOurs(authority) || addOns.some(({ spec }) => spec?.configs?.some(isTemplate));
  if (!hasSign) {
    throw new FatalError(
      `nothing shows that argocd-pull-integration made Secret ${namespace}/${hubNames.authority}: to hand your own authority over, add the label ${wellKnown.managedByLabel}=${managedBy} yourself`,
    );
  }
}

const isTemplate = ({ resource }: { resource: string }) => resource === 'addontemplates';

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
  const unmarked: [ResourceType, KubeObject, string][] = [
    ...all
      .filter(({ metadata }) => names.has(metadata.name))
      .map((one): [ResourceType, KubeObject, string] => [secrets, one, 'Secret']),
    ...(bundle ? [[configMaps, bundle, 'ConfigMap'] as [ResourceType, KubeObject, string]] : []),
  ];
  for (const [type, object, kind] of unmarked.filter(([, one]) => !isOurs(one))) {
    await steps.take(`${kind} ${keyOf(object)}: taken over as it is`, () =>
      client.mergePatch(type, object.metadata, { metadata: mark }, { signal }),
    );
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
    await steps.take(`ManagedClusterAddOn ${keyOf(addOn)}: no longer made from the AddOnTemplate`, () =>
      client.mergePatch(managedClusterAddOns, addOn.metadata, { ...held, spec: { configs: kept } }, { signal }),
    );
  }
  for (const work of await client.list(manifestWorks, { namespace, signal })) {
    const { name } = work.metadata;
    if ((name === authorityWork || templateWork.test(name)) && !isOurs(work)) {
      await steps.take(
        `ManifestWork ${keyOf(work)}: the controller removes it when the cluster has applied what replaces it`,
        () => client.mergePatch(manifestWorks, work.metadata, { metadata: mark }, { signal }),
      );
    }
  }
}

/** The clusters keep Argo CD as argocd-operator has deployed it. */
async function keepOperator({ client, signal }: TakeoverScope, steps: Steps, fleet: GitOpsCluster): Promise<void> {
  const settings = (fleet.spec as { argoCDAgentAddon?: { argoCD?: string } } | undefined)?.argoCDAgentAddon;
  if (settings?.argoCD !== undefined) {
    return;
  }
  await steps.take(`GitOpsCluster ${keyOf(fleet)}: argoCD: Operator, so that its clusters keep their Argo CD`, () =>
    client.mergePatch(
      gitOpsClusters,
      fleet.metadata,
      { spec: { argoCDAgentAddon: { argoCD: 'Operator' } } },
      { signal },
    ),
  );
}

/** Deletes what only OCM's add-on manager used. */
async function removeRemains(
  { client, namespace, signal }: TakeoverScope,
  steps: Steps,
  fleets: readonly GitOpsCluster[],
): Promise<void> {
  const names = new Set(fleets.map(({ metadata }) => `${addOnName}-${namespace}-${metadata.name}`));
  const templates = (await client.list(addOnTemplates, { signal })).filter((one) => names.has(one.metadata.name));
  await removeAll({ client, signal }, steps, [
    ...templates.map((one): [ResourceType, KubeObject] => [addOnTemplates, one]),
    ...(await existing({ client, signal }, [
      [roles, { namespace, name: 'addon-manager-controller-role' }],
      [roleBindings, { namespace, name: 'addon-manager-controller-rolebinding' }],
    ])),
  ]);
}

async function removeController(
  { client, signal }: TakeoverScope,
  steps: Steps,
  controller: Deployment,
): Promise<void> {
  const { namespace } = controller.metadata;
  const prefix = 'argocd-pull-integration';
  await removeAll(
    { client, signal },
    steps,
    await existing({ client, signal }, [
      [clusterRoleBindings, { name: `${prefix}-manager-rolebinding` }],
      [clusterRoles, { name: `${prefix}-manager-role` }],
      [roleBindings, { namespace, name: `${prefix}-leader-election-rolebinding` }],
      [roles, { namespace, name: `${prefix}-leader-election-role` }],
      [serviceAccounts, { namespace, name: `${prefix}-controller-manager` }],
      // Last: as long as it is there, the command finds what it has not finished.
      [deployments, controller.metadata],
    ]),
  );
}

async function existing(
  { client, signal }: Pick<TakeoverScope, 'client' | 'signal'>,
  candidates: readonly [ResourceType, { namespace?: string | undefined; name: string }][],
): Promise<[ResourceType, KubeObject][]> {
  const found: [ResourceType, KubeObject][] = [];
  for (const [type, { namespace, name }] of candidates) {
    const object = await client.get(type, namespace === undefined ? { name } : { namespace, name }, signal);
    if (object) {
      found.push([type, object]);
    }
  }
  return found;
}

/** Deletes objects, each as a step. */
export async function removeAll(
  { client, signal }: Pick<TakeoverScope, 'client' | 'signal'>,
  steps: Steps,
  objects: readonly (readonly [ResourceType, KubeObject])[],
): Promise<void> {
  for (const [type, object] of objects) {
    await steps.take(`${type.kind} ${keyOf(object)}: deleted`, () =>
      client.delete(type, object.metadata, { uid: object.metadata.uid, signal }),
    );
  }
}
