import { expect, describe as suite, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  type ConfigMap,
  crds,
  type Deployment,
  deployments,
  events,
  findCondition,
  type KubeObject,
} from '../../lib/kube/index.ts';
import type { FleetReporter } from '../../lib/ops/index.ts';
import {
  addOnDeploymentConfigs,
  gitOpsClusters,
  managedClusterAddOns,
  managedClusters,
  manifestWorks,
  operatorKinds,
} from '../hub/index.ts';
import { useHub, workNames } from '../testing/hub.ts';

const hub = useHub(borrowCluster);

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

test('lastAppliedConfig becomes desiredConfig when the works with it are applied', async () => {
  const { a } = hub;
  await hub.enroll();
  await useConfig(a, { nodePlacement: { nodeSelector: { role: 'one' } } });
  const reference = async () => (await hub.addOn(a))?.status?.configReferences?.[0];
  const desired = await until('the hash', async () => (await reference())?.desiredConfig?.specHash);
  await until('the works', async () => JSON.stringify(await hub.work(a, 'agent')).includes('"role":"one"'));
  expect((await reference())?.lastAppliedConfig).toBeUndefined();
  const noted = (await hub.work(a, 'agent'))?.metadata.annotations?.['open-cluster-management.io/config-spec-hash'];
  expect(JSON.parse(noted ?? '')).toEqual({
    [`addondeploymentconfigs.addon.open-cluster-management.io/${a}/settings`]: desired,
  });
  for (const name of workNames) {
    await hub.fixture.reportWork(a, name);
  }
  await until('what was applied', async () => (await reference())?.lastAppliedConfig?.specHash === desired);
});

test('an invalid AddOnDeploymentConfig is reported, and the works stay as they are', async () => {
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
  await until('a note', async () =>
    (await condition(a, 'Configured'))?.message.includes('no container is deployments:argocd-sever:*'),
  );
  await hub.fixture.conditionIs([ns, 'fleet'], 'ManifestWorkCreated', 'True');
});

test('ocm defect M12: argocd-operator needs its CRDs on the hub; with them it is delivered with an ArgoCD', async () => {
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
  for (const name of operatorKinds) {
    if ((await hub.client.get(crds, { name })) === undefined) {
      await hub.fixture.put(crds, smallCrd(name));
    }
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

test('ocm defect M5: an invalid ArgoCD of a user is reported with the field, and does not stop anything else', async () => {
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
  await until('the cluster that left', async () => (await hub.addOn(b)) === undefined);
  expect(await hub.work(a, 'agent')).toBeDefined();
});

suite('a new version of Argo CD on the hub', () => {
  const image = (version: string) => `quay.io/argoproj/argocd:v${version}`;
  const hubRuns = (version: string) => {
    const labels = { app: 'argocd-server' };
    const containers = [{ name: 'server', image: image(version) }];
    const spec = { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } };
    return hub.fixture.put(deployments, { metadata: { namespace: hub.ns, name: 'argocd-server' }, spec });
  };
  const imageOf = async (cluster: string) => {
    const work = await hub.work(cluster, 'argocd');
    const server = work?.spec.workload.manifests.find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'argocd-repo-server',
    );
    return (server as Deployment | undefined)?.spec?.template?.spec?.containers[0]?.image;
  };
  const has = (cluster: string, version: string) =>
    until(`${version} on ${cluster}`, async () => (await imageOf(cluster)) === image(version));
  const isWell = async (cluster: string, ready = 1) => {
    for (const name of workNames) {
      await hub.fixture.reportWork(cluster, name, ready);
    }
  };
  const allAreWell = async () => {
    for (const cluster of [hub.a, hub.b]) {
      await isWell(cluster);
    }
  };
  /** The fleet runs a version, and its controller says the time of `clock`. */
  const settledFleet = async (version: string, clock?: () => Date, fleetEvents?: FleetReporter) => {
    await hubRuns(version);
    await hub.enroll({ ...(clock && { clock }), ...(fleetEvents && { fleetEvents }) });
    await allAreWell();
  };
  const rollout = (status: string, message: RegExp) =>
    hub.fixture.conditionIs([hub.ns, 'fleet'], 'ClustersUpToDate', status, message);

  test('is delivered to one cluster after the other, each when the previous one is healthy', async () => {
    const { a, b } = hub;
    await settledFleet('3.2.6');
    await rollout('True', /^2 of 2 clusters have Argo CD quay\.io\/argoproj\/argocd:v3\.2\.6, agent /);
    await hub.idle();
    await hubRuns('3.3.0');
    await has(a, '3.3.0');
    await rollout(
      'False',
      new RegExp(`^Rolling out Argo CD .*v3\\.3\\.0.*: 0 of 2 .*under way: \\[${a}\\], 1 to follow$`),
    );
    await until('the other to wait', async () => {
      const found = await condition(b, 'Progressing');
      return found?.status === 'True' && found.reason === 'WaitingForRollout';
    });
    await hub.idle();
    expect(await imageOf(b)).toBe(image('3.2.6'));
    // Another controller has only the works as its state.
    await hub.restart();
    await hub.idle();
    expect([await imageOf(a), await imageOf(b)]).toEqual([image('3.3.0'), image('3.2.6')]);
    expect(hub.controller.writes).toBe(0);
    await isWell(a);
    await has(b, '3.3.0');
    await isWell(b);
    await rollout('True', /^2 of 2 clusters have .*v3\.3\.0/);
    await until('rest', async () => (await condition(b, 'Progressing'))?.reason === 'Completed');
  });

  test('stops at a cluster that fails, continues when it is healthy, and does not wait for an unreachable one', async () => {
    const { ns, a, b } = hub;
    let now = Date.now();
    const stops: unknown[] = [];
    const report: FleetReporter['report'] = (type, subject, data) =>
      void (type === 'rollout-stopped' && stops.push({ subject, ...data }));
    await settledFleet('3.2.6', () => new Date(now), { report });
    await hub.idle();
    await hubRuns('3.3.0');
    await has(a, '3.3.0');
    await isWell(a, 0);
    now += 11 * 60_000;
    await hub.client.mergePatch(managedClusters, { name: a }, { metadata: { labels: { looked: 'at' } } });
    await rollout(
      'False',
      new RegExp(`^The rollout of .* is stopped: 0 of 2 clusters done, failed: \\[${a}\\], 1 to follow;`),
    );
    await until('its failure', async () => {
      const found = await condition(a, 'Progressing');
      return found?.status === 'False' && found.reason === 'Failed';
    });
    await until('an Event', async () =>
      (await hub.client.list(events, { namespace: ns })).some(({ reason }) => reason === 'ClustersUpToDateFailed'),
    );
    expect(stops).toEqual([
      {
        subject: `gitopsclusters/${ns}/fleet`,
        gitOpsCluster: `${ns}/fleet`,
        message: expect.stringMatching(/^The rollout of .* is stopped: /),
      },
    ]);
    expect(await imageOf(b)).toBe(image('3.2.6'));
    await hub.fixture.clusterAvailable(a, 'Unknown');
    await has(b, '3.3.0');
  });

  test('a wrong port of the principal reaches one cluster; the status names the address that its agent dials', async () => {
    const { ns, a, b } = hub;
    let now = Date.now();
    await hub.enroll({ clock: () => new Date(now) });
    for (const cluster of [a, b]) {
      await isWell(cluster);
      await hub.fixture.agentConnected(ns, cluster);
    }
    await hub.fixture.conditionIs([ns, 'fleet'], 'ClustersReady', 'True');
    const portOf = async (cluster: string) => {
      const params = (await hub.work(cluster, 'agent'))?.spec.workload.manifests.find(
        ({ metadata }) => metadata.name === 'argocd-agent-params',
      );
      return (params as ConfigMap | undefined)?.data?.['agent.server.port'];
    };
    const setPort = (principalServerPort: string) =>
      hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', { principalServerPort });
    await setPort('8444');
    await until('the port on the first cluster', async () => (await portOf(a)) === '8444');
    await hub.fixture.agentConnected(ns, a, false);
    await isWell(a);
    await hub.fixture.reportWork(a, 'argocd-agent-addon-agent', 0);
    await until('what is not ready', async () => (await condition(a, 'Available'))?.message.includes('; not ready: '));
    now += 11 * 60_000;
    await hub.client.mergePatch(managedClusters, { name: a }, { metadata: { labels: { looked: 'at' } } });
    await rollout('False', new RegExp(`is stopped: 0 of 2 clusters done, failed: \\[${a}\\], 1 to follow;`));
    const ready = await hub.fixture.conditionIs([ns, 'fleet'], 'ClustersReady', 'False', /failing: /);
    expect(ready).toMatchObject({ reason: 'Failed' });
    expect(ready.message).toContain(
      `failing: [${a}]: the agent has not been connected to principal.example.com:8444; not ready: argocd-agent-agent`,
    );
    await until('an Event', async () =>
      (await hub.client.list(events, { namespace: ns })).some(({ reason }) => reason === 'AgentDisconnected'),
    );
    await hub.idle();
    expect(await portOf(b)).toBe('443');
    await setPort('443');
    await until('the former port on the first cluster', async () => (await portOf(a)) === '443');
    await rollout('False', /under way: /);
    await isWell(a);
    await hub.fixture.agentConnected(ns, a);
    await rollout('True', /^2 of 2 clusters have .*principal at principal\.example\.com:443$/);
  });

  test('a cluster that fails long after the rollout does not stop it again', async () => {
    const { ns, a, b } = hub;
    let now = Date.now();
    await settledFleet('3.2.6', () => new Date(now));
    await hubRuns('3.3.0');
    for (const cluster of [a, b]) {
      await has(cluster, '3.3.0');
      await isWell(cluster);
    }
    await rollout('True', /^2 of 2 clusters have .*v3\.3\.0/);
    await until('the record of the end', async () => {
      const all = await Promise.all([a, b].map((cluster) => hub.work(cluster, 'argocd')));
      return all.every(
        (work) => work?.metadata.annotations?.['apps.open-cluster-management.io/rollout-over'] === 'true',
      );
    });
    await hub.idle();
    now += 30 * 60_000;
    for (const cluster of [a, b]) {
      await isWell(cluster, 0);
      await hub.fixture.agentConnected(ns, cluster, false);
    }
    await hub.fixture.conditionIs([ns, 'fleet'], 'ClustersReady', 'False', /^0 of 2 clusters available/);
    await hub.restart();
    await hub.idle();
    expect(await hub.fixture.condition(ns, 'fleet', 'ClustersUpToDate')).toMatchObject({ status: 'True' });
    expect((await condition(a, 'Progressing'))?.reason).not.toBe('Failed');
    const reasons = (await hub.client.list(events, { namespace: ns })).map(({ reason }) => reason);
    expect(reasons).not.toContain('ClustersUpToDateFailed');
  });

  test('reaches a new cluster at once, and all clusters when other settings change', async () => {
    const { ns, a, b } = hub;
    await hubRuns('3.2.6');
    await hub.fixture.placement(ns, 'placement', [a], 1);
    await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
    hub.start();
    await hub.enrolled(a);
    await hub.fixture.clusterAvailable(a, 'Unknown');
    await until('the news', async () => (await condition(a, 'Available'))?.status === 'Unknown');
    await hubRuns('3.3.0');
    await rollout('True', new RegExp(`^0 of 1 clusters have .*v3\\.3\\.0.*; not reporting: \\[${a}\\]$`));
    await hub.fixture.placement(ns, 'placement', [a, b], 1);
    await has(b, '3.3.0');
    expect(await imageOf(a)).toBe(image('3.2.6'));
    await hub.fixture.clusterAvailable(a, 'True');
    await has(a, '3.3.0');
    await hubRuns('3.3.1');
    await has(a, '3.3.1');
    await hub.idle();
    expect(await imageOf(b)).toBe(image('3.3.0'));
    await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', { rolloutStrategy: { type: 'All' } });
    await has(b, '3.3.1');
  });
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
      names: { kind, plural },
      versions: [{ name: 'v1alpha1', served: true, storage: true, schema }],
    },
  };
  return object as never;
}
