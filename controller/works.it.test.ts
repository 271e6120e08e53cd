import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startCluster } from '../e2e/testbed/index.ts';
import { crds, findCondition, type KubeObject } from '../lib/kube/index.ts';
import { operatorKinds } from './render/crds.ts';
import { addOnDeploymentConfigs, gitOpsClusters, managedClusterAddOns, manifestWorks } from './resources.ts';
import { eventually } from './testing/fixture.ts';
import { hasShared, shared, useHub, workNames } from './testing/hub.ts';

const hub = useHub(startCluster);

const condition = async (cluster: string, type: string) =>
  findCondition((await hub.addOn(cluster))?.status?.conditions, type);

async function useConfig(cluster: string, spec: object): Promise<void> {
  await hub.fixture.put(addOnDeploymentConfigs, { metadata: { namespace: cluster, name: 'settings' }, spec });
  const reference = { group: 'addon.open-cluster-management.io', resource: 'addondeploymentconfigs' };
  await hub.client.mergePatch(
    managedClusterAddOns,
    { namespace: cluster, name: 'argocd-agent-addon' },
    { spec: { configs: [{ ...reference, namespace: cluster, name: 'settings' }] } },
  );
}

test('what was applied last of an AddOnDeploymentConfig follows what is wanted when the works have arrived', async () => {
  const { a } = hub;
  await hub.enroll();
  await useConfig(a, { nodePlacement: { nodeSelector: { role: 'one' } } });
  const reference = async () => (await hub.addOn(a))?.status?.configReferences?.[0];
  const wanted = await eventually('the hash', async () => (await reference())?.desiredConfig?.specHash);
  await eventually('the works', async () => JSON.stringify(await hub.work(a, 'agent')).includes('"role":"one"'));
  expect((await reference())?.lastAppliedConfig).toBeUndefined();
  const noted = (await hub.work(a, 'agent'))?.metadata.annotations?.['open-cluster-management.io/config-spec-hash'];
  expect(JSON.parse(noted ?? '')).toEqual({
    [`addondeploymentconfigs.addon.open-cluster-management.io/${a}/settings`]: wanted,
  });
  for (const name of workNames) await hub.fixture.reportWork(a, name);
  await eventually('what was applied', async () => (await reference())?.lastAppliedConfig?.specHash === wanted);
});

test('what makes no sense in an AddOnDeploymentConfig is said, and the works stay as they are', async () => {
  const { ns, a } = hub;
  await hub.enroll();
  const before = await hub.work(a, 'agent');
  await useConfig(a, { customizedVariables: [{ name: 'ARGOCD_NAMESPACE', value: 'Not a name' }] });
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'ManifestWorkCreated',
    'False',
    new RegExp(`AddOnDeploymentConfig ${a}/settings: spec.customizedVariables\\[ARGOCD_NAMESPACE\\] must be`),
  );
  expect(await condition(a, 'Configured')).toMatchObject({ status: 'False', reason: 'ConfigurationInvalid' });
  expect((await hub.work(a, 'agent'))?.spec).toEqual(before?.spec);
  const resources = { limits: { memory: '1Gi' } };
  await useConfig(a, {
    resourceRequirements: [{ containerID: 'deployments:argocd-sever:*', resources }],
  });
  await eventually('a note', async () =>
    (await condition(a, 'Configured'))?.message.includes('no container is deployments:argocd-sever:*'),
  );
  await hub.fixture.conditionIs([ns, 'fleet'], 'ManifestWorkCreated', 'True');
});

test('argocd-operator needs its CRDs on the hub; with them it is delivered with an ArgoCD for it', async () => {
  const { ns, a } = hub;
  await hub.fixture.placement(ns, 'placement', [a]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', { argoCD: 'Operator', agentNamespace: 'gitops' });
  hub.start();
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'ArgoCDCRDelivered',
    'False',
    /the hub has no CustomResourceDefinition argocds\.argoproj\.io, .* install argocd-operator's CRDs on the hub or,/,
  );
  if (hasShared) await hub.cluster.applyCrds(join(shared, 'argocd/argocds.yaml'));
  for (const name of operatorKinds) {
    if ((await hub.client.get(crds, { name })) === undefined) await hub.fixture.put(crds, smallCrd(name));
  }
  await hub.fixture.conditionIs([ns, 'fleet'], 'ArgoCDCRDelivered', 'True');
  const kinds = (await hub.work(a, 'argocd'))?.spec.workload.manifests.map(({ kind }) => kind);
  expect(kinds).toContain('Deployment');
  const agent = await hub.work(a, 'agent');
  const argoCd = agent?.spec.workload.manifests.find(({ kind }) => kind === 'ArgoCD');
  expect(argoCd?.metadata).toMatchObject({ name: 'argocd', namespace: 'gitops' });
  const delivered = (await hub.client.list(manifestWorks, { namespace: a }))
    .filter(({ metadata }) => metadata.name.startsWith('argocd-agent-addon-crds'))
    .flatMap(({ spec }) => spec.workload.manifests.map(({ metadata }) => metadata.name));
  expect(delivered).toEqual([...operatorKinds]);
  await hub.idle();
});

test("a user's ArgoCD that cannot work is said with the place of the mistake, and nothing else stops", async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  const payload = (manifests: readonly object[]) =>
    hub.client.mergePatch(
      gitOpsClusters,
      { namespace: ns, name: 'fleet' },
      { spec: { argoCDAgentAddon: { argoCDCRManifestWork: { manifests } } } },
    );
  await payload([{ apiVersion: 'argoproj.io/v1beta1', kind: 'ArgoCD', metadata: { name: 'x' } }]);
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'ArgoCDCRDelivered',
    'False',
    /^Invalid ArgoCDCRManifestWork: GitOpsCluster .*: spec\.argoCDAgentAddon\.argoCDCRManifestWork\.manifests\.0\.metadata\.namespace must say where the ArgoCD belongs$/,
  );
  await hub.unselect(b);
  await hub.fixture.endCleanUp(b);
  await eventually('the cluster that left', async () => (await hub.addOn(b)) === undefined);
  expect(await hub.work(a, 'agent')).toBeDefined();
});

function smallCrd(name: string) {
  const [plural = '', ...group] = name.split('.');
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const kind = plural.slice(0, -1).replace(/^./, (first) => first.toUpperCase());
  const object: KubeObject & { spec: object } = {
    metadata: { name },
    spec: {
      group: group.join('.'),
      scope: 'Namespaced',
      names: { kind, plural, singular: plural.slice(0, -1), listKind: `${kind}List` },
      versions: [{ name: 'v1alpha1', served: true, storage: true, schema }],
    },
  };
  return object as never;
}
