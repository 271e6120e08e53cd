import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../e2e/testbed/index.ts';
import { configMaps, crds, events, findCondition, keyOf, leases, type Secret, secrets } from '../lib/kube/index.ts';
import { inspectCertificate, isIssuedBy, textOf } from '../lib/pki/index.ts';
import {
  addOnDeploymentConfigs,
  gitOpsClusters,
  managedClusterAddOns,
  managedClusters,
  manifestWorks,
  placementDecisions,
  placements,
} from './resources.ts';
import { eventually, HubFixture, type RunningController, startController } from './testing.ts';

const root = join(import.meta.dirname, '..');
const shared = join(root, '..', 'shared', 'crds');
const crdPaths = existsSync(shared)
  ? [
      join(shared, 'ocm'),
      ...['application', 'appproject', 'applicationset'].map((n) => join(shared, 'argocd', `${n}-crd.yaml`)),
    ]
  : [join(root, 'e2e', 'hub', 'crds')];

let hub: Cluster;
let fixture: HubFixture;
let running: RunningController | undefined;
let sequence = 0;
let ns = '';
let a = '';
let b = '';
const names = ['agent', 'argocd', 'crds'].map((part) => `argocd-agent-addon-${part}`);

beforeAll(async () => {
  hub = await startCluster({ name: 'hub' });
  await hub.applyCrds([...crdPaths, join(root, 'charts/argocd-agent-addon/crds')]);
  fixture = new HubFixture(hub.client);
});
afterAll(async () => {
  await hub?.stop();
});
beforeEach(async () => {
  sequence += 1;
  ns = `argocd-${sequence}`;
  [a, b] = [`c${sequence}a`, `c${sequence}b`];
  await fixture.namespace(ns);
  await Promise.all([fixture.managedCluster(a), fixture.managedCluster(b)]);
});
afterEach(async () => {
  await running?.stop();
  running = undefined;
  // The next test's controller must find a quiet hub.
  for (const one of await hub.client.list(gitOpsClusters)) {
    await hub.client.mergePatch(gitOpsClusters, one.metadata, { metadata: { finalizers: null } });
    await hub.client.delete(gitOpsClusters, one.metadata);
  }
  for (const one of await hub.client.list(manifestWorks)) await hub.client.delete(manifestWorks, one.metadata);
  for (const one of await hub.client.list(managedClusterAddOns)) {
    await hub.client.delete(managedClusterAddOns, one.metadata);
  }
  for (const one of await hub.client.list(secrets, { labelSelector: 'app.kubernetes.io/managed-by' })) {
    await hub.client.delete(secrets, one.metadata);
  }
});

const secret = (name: string, namespace = ns) => hub.client.get(secrets, { namespace, name });
const work = (cluster: string, part: string) =>
  hub.client.get(manifestWorks, { namespace: cluster, name: `argocd-agent-addon-${part}` });
const addOn = (cluster: string) =>
  hub.client.get(managedClusterAddOns, { namespace: cluster, name: 'argocd-agent-addon' });
const enrolled = (cluster: string) =>
  eventually(`works of ${cluster}`, async () =>
    (await Promise.all(['crds', 'argocd', 'agent'].map((p) => work(cluster, p)))).every(Boolean),
  );

async function enroll(): Promise<void> {
  await fixture.placement(ns, 'placement', [a, b], 1);
  await fixture.gitOpsCluster(ns, 'fleet', 'placement');
  running = startController(hub.client);
  await fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
}

/** What the API server holds of everything that the controller writes, by resourceVersion. */
async function versions(): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const type of [gitOpsClusters, managedClusterAddOns, manifestWorks, placements, secrets, configMaps]) {
    for (const object of await hub.client.list(type as typeof secrets)) {
      found[`${type.plural}/${keyOf(object)}`] = object.metadata.resourceVersion ?? '';
    }
  }
  return found;
}

async function idle(): Promise<void> {
  let quiet = 0;
  await eventually('the controller to be idle', async () => {
    quiet = running?.controller.isIdle ? quiet + 1 : 0;
    return quiet > 8;
  });
}

test('a GitOpsCluster enrolls the clusters of all decision pages', async () => {
  await enroll();
  const authority = textOf((await secret('argocd-agent-ca'))?.data, 'tls.crt') ?? '';
  expect(inspectCertificate(authority)).toMatchObject({
    isAuthority: true,
    commonName: expect.stringMatching(/^argocd-agent-ca@\d+$/),
  });
  for (const [name, host] of [
    ['argocd-agent-principal-tls', 'principal.example.com'],
    ['argocd-agent-resource-proxy-tls', `argocd-agent-resource-proxy.${ns}.svc`],
  ] as const) {
    const found = await secret(name);
    expect(found).toMatchObject({ type: 'kubernetes.io/tls' });
    const certificate = textOf(found?.data, 'tls.crt') ?? '';
    expect(inspectCertificate(certificate).dnsNames).toContain(host);
    expect(isIssuedBy(certificate, authority)).toBe(true);
  }
  expect(textOf((await secret('argocd-agent-jwt'))?.data, 'jwt.key')).toContain('BEGIN PRIVATE KEY');
  const bundle = await hub.client.get(configMaps, { namespace: ns, name: 'argocd-agent-ca-bundle' });
  expect(bundle?.data?.['ca-bundle.crt']?.trim()).toBe(authority.trim());
  for (const cluster of [a, b]) {
    const found = await secret(`cluster-${cluster}`);
    expect(found?.metadata.labels).toMatchObject({
      'argocd.argoproj.io/secret-type': 'cluster',
      'apps.open-cluster-management.io/cluster-name': cluster,
      'argocd-agent.argoproj-labs.io/agent-name': cluster,
      'placement-name': 'placement',
    });
    expect(textOf(found?.data, 'name')).toBe(cluster);
    expect(textOf(found?.data, 'server')).toBe(`https://argocd-agent-resource-proxy:9090?agentName=${cluster}`);
    const { tlsClientConfig } = JSON.parse(textOf(found?.data, 'config') ?? '{}');
    const certificate = Buffer.from(tlsClientConfig.certData, 'base64').toString();
    expect(inspectCertificate(certificate)).toMatchObject({ commonName: cluster, usages: ['client'] });
    expect((await addOn(cluster))?.status?.healthCheck?.mode).toBe('Customized');
    const agent = await work(cluster, 'agent');
    const client = agent?.spec.workload.manifests.find(({ metadata }) =>
      metadata.name.endsWith('client-cert'),
    ) as Secret;
    expect(inspectCertificate(textOf(client.data, 'tls.crt') ?? '').commonName).toBe(
      `system:open-cluster-management:cluster:${cluster}:addon:argocd-agent-addon:agent:argocd-agent-addon-agent`,
    );
    const kinds = (await work(cluster, 'crds'))?.spec.workload.manifests.map(({ metadata }) => metadata.name);
    expect(kinds).toEqual(['applications.argoproj.io', 'appprojects.argoproj.io']);
  }
  const status = (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'fleet' }))?.status;
  expect(status).toMatchObject({ clusters: 2, availableClusters: 0, connectedClusters: 0 });
  for (const type of [
    'RBACReady',
    'ServerDiscovered',
    'JWTSecretReady',
    'CACertificateReady',
    'PrincipalCertificateReady',
    'ResourceProxyCertificateReady',
    'AddOnTemplateReady',
    'PlacementTolerationConfigured',
    'PlacementEvaluated',
    'ClustersImported',
    'ManifestWorkCreated',
    'ArgoCDCRDelivered',
    'AddonConfigured',
  ]) {
    expect(findCondition(status?.conditions, type), type).toMatchObject({ status: 'True', reason: 'Success' });
  }
  const tolerations = (await hub.client.get(placements, { namespace: ns, name: 'placement' }))?.spec?.tolerations;
  expect(tolerations?.map(({ key }) => key)).toEqual([
    'cluster.open-cluster-management.io/unreachable',
    'cluster.open-cluster-management.io/unavailable',
  ]);
});

test('a second look writes nothing, nor does a restart', async () => {
  await enroll();
  await idle();
  const before = await versions();
  await hub.client.mergePatch(managedClusters, { name: a }, { metadata: { labels: { touched: 'yes' } } });
  await idle();
  expect(await versions()).toEqual(before);
  await running?.stop();
  running = startController(hub.client);
  await eventually('caches', async () => running?.controller.missing().length === 0);
  await idle();
  expect(await versions()).toEqual(before);
  expect(running.controller.writes).toBe(0);
});

test('what someone deletes or changes is repaired', async () => {
  await enroll();
  const original = await work(a, 'agent');
  await hub.client.delete(manifestWorks, { namespace: a, name: 'argocd-agent-addon-agent' });
  await eventually(
    'the work again',
    async () => (await work(a, 'agent'))?.spec.workload.manifests.length === original?.spec.workload.manifests.length,
  );
  await hub.client.mergePatch(
    manifestWorks,
    { namespace: a, name: 'argocd-agent-addon-crds' },
    { spec: { deleteOption: { propagationPolicy: 'Foreground' } } },
  );
  await eventually(
    'the delete option',
    async () => (await work(a, 'crds'))?.spec.deleteOption?.propagationPolicy === 'Orphan',
  );
  await hub.client.mergePatch(secrets, { namespace: ns, name: `cluster-${a}` }, { data: { server: 'eA==' } });
  await eventually('the server', async () =>
    textOf((await secret(`cluster-${a}`))?.data, 'server')?.includes('agentName'),
  );
  const before = textOf((await secret('argocd-agent-principal-tls'))?.data, 'tls.crt');
  await hub.client.delete(secrets, { namespace: ns, name: 'argocd-agent-principal-tls' });
  await eventually('a new certificate', async () => {
    const now = textOf((await secret('argocd-agent-principal-tls'))?.data, 'tls.crt');
    return now !== undefined && now !== before;
  });
  await hub.client.delete(managedClusterAddOns, { namespace: b, name: 'argocd-agent-addon' });
  await eventually('the add-on', () => addOn(b));
});

test('the health of a cluster comes from its works and its connection', async () => {
  await enroll();
  const verdict = async (type: string) => findCondition((await addOn(a))?.status?.conditions, type);
  expect(await verdict('AgentConnected')).toMatchObject({ status: 'False', reason: 'NeverConnected' });
  for (const name of names) await fixture.reportWork(a, name);
  await eventually('Available', async () => (await verdict('Available'))?.status === 'True');
  expect(await verdict('Progressing')).toMatchObject({ status: 'False', reason: 'Completed' });
  const lease = { namespace: ns, name: `argocd-agent-${a}` };
  const connected = (value: string) =>
    fixture.put(leases, {
      metadata: {
        ...lease,
        labels: {
          'app.kubernetes.io/part-of': 'argocd-agent',
          'app.kubernetes.io/component': 'connection',
          'argocd-agent.argoproj-labs.io/agent-name': a,
        },
        annotations: { 'argocd-agent.argoproj-labs.io/connected': value },
      },
      spec: { holderIdentity: 'principal' },
    });
  await connected('true');
  await eventually('connected', async () => (await verdict('AgentConnected'))?.status === 'True');
  await fixture.conditionIs(
    [ns, 'fleet'],
    'ClustersReady',
    'False',
    /^1 of 2 clusters available, 1 of 2 agents connected; waiting for \[c\d+b\]$/,
  );
  await connected('false');
  await eventually('disconnected', async () => (await verdict('AgentConnected'))?.reason === 'Disconnected');
  await fixture.reportWork(a, 'argocd-agent-addon-agent', 0);
  await eventually(
    'unavailable',
    async () => (await verdict('Available'))?.message === 'not ready: argocd-agent-agent',
  );
  await fixture.clusterAvailable(a, 'Unknown');
  await eventually('unknown', async () => (await verdict('Available'))?.status === 'Unknown');
});

test('wrong input is answered with a message that names object and field, and an Event', async () => {
  const goc = [ns, 'fleet'] as const;
  running = startController(hub.client);
  await fixture.gitOpsCluster(ns, 'fleet', 'nowhere');
  await fixture.conditionIs(
    goc,
    'PlacementEvaluated',
    'False',
    new RegExp(`^Failed to evaluate placement: Placement ${ns}/nowhere does not exist$`),
  );
  await fixture.conditionIs(goc, 'Ready', 'False', /Placement .*nowhere does not exist/);
  await eventually('an Event', async () =>
    (await hub.client.list(events, { namespace: ns })).some(
      ({ reason, note, regarding }) =>
        reason === 'PlacementEvaluatedFailed' && note?.includes('nowhere') && regarding?.name === 'fleet',
    ),
  );
});

test('what the CRD refuses, the API server says at once', async () => {
  const make = (addOn: object, reference: object = {}) =>
    fixture.gitOpsCluster(ns, 'bad', 'placement', addOn, reference);
  await expect(make({ mode: 'fancy' })).rejects.toThrow(/spec\.argoCDAgentAddon\.mode.*"fancy"/);
  await expect(make({ principalServerPort: '70000' })).rejects.toThrow(/principalServerPort/);
  await expect(make({ principalServerPort: 'https' })).rejects.toThrow(/principalServerPort/);
  await expect(make({}, { kind: 'PlacementDecision' })).rejects.toThrow(/placementRef/);
});

test.runIf(existsSync(shared))(
  'with the CRD of the original, which refuses little, the status says what is wrong',
  async () => {
    await hub.applyCrds(join(shared, 'gitopscluster'));
    try {
      await fixture.placement(ns, 'placement', [a]);
      running = startController(hub.client);
      const who = `GitOpsCluster ${ns}/fleet: spec`;
      const expectCondition = async (addOn: object, reference: object, type: string, message: string) => {
        await fixture.gitOpsCluster(ns, 'fleet', 'placement', addOn, reference);
        const found = await fixture.conditionIs([ns, 'fleet'], type, 'False', new RegExp(`${who}.*${message}`));
        await fixture.conditionIs([ns, 'fleet'], 'Ready', 'False', new RegExp(`^${type}: .*${message}`));
        return found;
      };
      const kind = await expectCondition(
        {},
        { kind: 'Gateway' },
        'PlacementEvaluated',
        'placementRef.kind must be "Placement", not "Gateway"',
      );
      expect(kind.reason).toBe('Failed');
      const port = await expectCondition(
        { principalServerPort: '99999' },
        {},
        'ServerDiscovered',
        'principalServerPort must be a port from 1 to 65535, not "99999"',
      );
      expect(port.reason).toBe('ServerNotDiscovered');
      await expectCondition(
        { mode: 'fancy' },
        {},
        'ManifestWorkCreated',
        'mode must be managed or autonomous, not "fancy"',
      );
      expect(await work(a, 'agent')).toBeUndefined();
      await fixture.gitOpsCluster(ns, 'fleet', 'placement', { mode: 'autonomous' });
      await fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
      await idle();
      const before = await versions();
      await hub.client.mergePatch(managedClusters, { name: a }, { metadata: { labels: { touched: 'again' } } });
      await idle();
      expect(await versions()).toEqual(before);
    } finally {
      await hub.applyCrds(join(root, 'charts/argocd-agent-addon/crds'));
    }
  },
);

test('a cluster that does not answer holds nobody up and can be forced', async () => {
  await enroll();
  const finalizers = ['cluster.open-cluster-management.io/manifest-work-cleanup'];
  for (const name of names)
    await hub.client.mergePatch(manifestWorks, { namespace: a, name }, { metadata: { finalizers } });
  await fixture.clusterAvailable(a, 'Unknown');
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'fleet' });
  await eventually('the other cluster to be left', async () => (await addOn(b)) === undefined);
  await fixture.conditionIs(
    [ns, 'fleet'],
    'RemovedClustersCleanedUp',
    'False',
    new RegExp(`cluster ${a} must remove ManifestWork argocd-agent-addon-agent \\(the cluster does not report\\)`),
  );
  expect(await secret(`cluster-${a}`)).toBeDefined();
  const annotations = { 'apps.open-cluster-management.io/force-detach': 'true' };
  await hub.client.mergePatch(gitOpsClusters, { namespace: ns, name: 'fleet' }, { metadata: { annotations } });
  await eventually(
    'gone',
    async () => (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'fleet' })) === undefined,
  );
  expect(await secret(`cluster-${a}`)).toBeUndefined();
  for (const name of names)
    await hub.client.mergePatch(manifestWorks, { namespace: a, name }, { metadata: { finalizers: null } });
});

test('a cluster that leaves is cleaned up in order, and can come back', async () => {
  await enroll();
  // The work agent's finalizer: a work is there until its cluster has removed it.
  const finalizers = ['cluster.open-cluster-management.io/manifest-work-cleanup'];
  for (const name of names)
    await hub.client.mergePatch(manifestWorks, { namespace: a, name }, { metadata: { finalizers } });
  const release = (part: string) =>
    hub.client.mergePatch(
      manifestWorks,
      { namespace: a, name: `argocd-agent-addon-${part}` },
      { metadata: { finalizers: null } },
    );
  const isGoing = async (part: string) => (await work(a, part))?.metadata.deletionTimestamp !== undefined;
  await fixture.placement(ns, 'placement', [b]);
  await hub.client.mergePatch(
    placementDecisions,
    { namespace: ns, name: 'placement-decision-2' },
    { status: { decisions: [] } },
    { subresource: 'status' },
  );
  await eventually('the agent to go', () => isGoing('agent'));
  expect((await addOn(a))?.metadata.annotations).toMatchObject({ 'apps.open-cluster-management.io/detaching': 'true' });
  await fixture.conditionIs(
    [ns, 'fleet'],
    'RemovedClustersCleanedUp',
    'False',
    /Cleaning up 1 removed cluster.*argocd-agent-addon-agent/,
  );
  expect(await isGoing('argocd')).toBe(false);
  await release('agent');
  await eventually('Argo CD to go', () => isGoing('argocd'));
  expect(await isGoing('crds')).toBe(false);
  expect(await secret(`cluster-${a}`)).toBeDefined();
  await release('argocd');
  await eventually('the CRDs work to go', () => isGoing('crds'));
  await release('crds');
  await eventually('nothing left', async () => {
    const left = await Promise.all([
      addOn(a),
      secret(`cluster-${a}`),
      secret(`argocd-cluster-client-${a}`),
      secret(`argocd-agent-addon-${a}`),
    ]);
    return left.every((one) => one === undefined);
  });
  await fixture.conditionIs([ns, 'fleet'], 'RemovedClustersCleanedUp', 'True', /^Cleaned up 1 removed cluster\(s\)$/);
  expect(await work(b, 'agent')).toBeDefined();
  await fixture.placement(ns, 'placement', [a, b]);
  await enrolled(a);
});

test('nobody leaves because a Placement cannot be read', async () => {
  await enroll();
  await hub.client.delete(placements, { namespace: ns, name: 'placement' });
  for (const name of ['placement-decision-1', 'placement-decision-2']) {
    await hub.client.delete(placementDecisions, { namespace: ns, name });
  }
  await fixture.conditionIs([ns, 'fleet'], 'PlacementEvaluated', 'False', /does not exist/);
  await running?.stop();
  running = startController(hub.client);
  await eventually('caches', async () => running?.controller.missing().length === 0);
  await delay(500); // longer than the time after which an unselected cluster would be left
  await idle();
  for (const cluster of [a, b]) expect((await work(cluster, 'agent'))?.metadata.deletionTimestamp).toBeUndefined();
});

test('of two GitOpsClusters that select a cluster the older has it, and hands it over when it goes', async () => {
  await fixture.placement(ns, 'first', [a]);
  await fixture.gitOpsCluster(ns, 'older', 'first');
  await delay(1_100); // creation times count in seconds
  const other = `${ns}-other`;
  await fixture.namespace(other);
  await fixture.placement(other, 'second', [a, b]);
  await fixture.gitOpsCluster(other, 'younger', 'second', { principalServerAddress: 'other.example.com' });
  running = startController(hub.client);
  await fixture.conditionIs([ns, 'older'], 'Ready', 'True');
  await fixture.conditionIs([other, 'younger'], 'Ready', 'True');
  await fixture.conditionIs(
    [other, 'younger'],
    'PlacementEvaluated',
    'True',
    new RegExp(`${a} already belongs to the older GitOpsCluster ${ns}/older`),
  );
  const serverOf = async (cluster: string) => {
    const params = (await work(cluster, 'agent'))?.spec.workload.manifests.find(
      ({ metadata }) => metadata.name === 'argocd-agent-params',
    );
    return (params as { data?: Record<string, string> } | undefined)?.data?.['agent.server.address'];
  };
  expect(await serverOf(a)).toBe('principal.example.com');
  expect(await serverOf(b)).toBe('other.example.com');
  expect(await secret(`cluster-${a}`, other)).toBeUndefined();
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'older' });
  await eventually('the other server', async () => (await serverOf(a)) === 'other.example.com');
  await eventually(
    'the older one gone',
    async () => (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'older' })) === undefined,
  );
  await eventually(
    'the Secret to move',
    async () => (await secret(`cluster-${a}`, other)) !== undefined && (await secret(`cluster-${a}`)) === undefined,
  );
});

test('deleting a GitOpsCluster takes everything along', async () => {
  await enroll();
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'fleet' });
  await eventually(
    'gone',
    async () => (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'fleet' })) === undefined,
  );
  expect(await hub.client.list(manifestWorks, { namespace: a })).toEqual([]);
  expect(await addOn(b)).toBeUndefined();
  await eventually('Secrets gone', async () => (await hub.client.list(secrets, { namespace: ns })).length === 0);
});

test('the hub itself is never touched', async () => {
  await fixture.managedCluster('local-cluster');
  await fixture.placement(ns, 'placement', ['local-cluster', a]);
  await fixture.gitOpsCluster(ns, 'fleet', 'placement');
  running = startController(hub.client);
  await fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
  await fixture.conditionIs(
    [ns, 'fleet'],
    'PlacementEvaluated',
    'True',
    /^Evaluated 2 managed clusters; local-cluster is skipped: it is the hub itself$/,
  );
  expect(await hub.client.list(manifestWorks, { namespace: 'local-cluster' })).toEqual([]);
  expect(await addOn('local-cluster')).toBeUndefined();
});

test("a user's own certificates and cluster Secrets stay as they are", async () => {
  const own: Secret = { metadata: { namespace: ns, name: `cluster-${a}` }, type: 'Opaque', data: { name: 'bWluZQ==' } };
  await fixture.put(secrets, own);
  await fixture.placement(ns, 'placement', [a, b]);
  await fixture.gitOpsCluster(ns, 'fleet', 'placement');
  running = startController(hub.client);
  await fixture.conditionIs(
    [ns, 'fleet'],
    'ClustersImported',
    'False',
    new RegExp(`Secret ${ns}/cluster-${a} exists and was not made by this controller`),
  );
  await enrolled(b);
  expect((await secret(`cluster-${a}`))?.data).toEqual(own.data);
});

test('a work that cannot be below 500 KiB is a condition that names object and size', async () => {
  const name = 'appprojects.argoproj.io';
  const live = await hub.client.get(crds, { name });
  const padding = Object.fromEntries(
    Array.from({ length: 4000 }, (_, i) => [`field${i}`, { type: 'string', pattern: 'x'.repeat(120) }]),
  );
  const grow = (properties: object) =>
    hub.client.jsonPatch(crds, { name }, [
      {
        op: 'add',
        path: '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/padding',
        value: { type: 'object', properties },
      },
    ]);
  await grow(padding);
  try {
    await fixture.placement(ns, 'placement', [a]);
    await fixture.gitOpsCluster(ns, 'fleet', 'placement');
    running = startController(hub.client);
    await fixture.conditionIs(
      [ns, 'fleet'],
      'ManifestWorkCreated',
      'False',
      /CustomResourceDefinition appprojects\.argoproj\.io has \d{6} bytes; a ManifestWork takes at most 512000/,
    );
    await grow({});
    await fixture.conditionIs([ns, 'fleet'], 'ManifestWorkCreated', 'True');
  } finally {
    if (live) await grow({});
  }
});

test('an AddOnDeploymentConfig that an add-on names is applied and reported', async () => {
  await enroll();
  await fixture.put(addOnDeploymentConfigs, {
    metadata: { namespace: a, name: 'settings' },
    spec: { agentInstallNamespace: 'x', nodePlacement: { nodeSelector: { role: 'infra' } } },
  });
  const reference = {
    group: 'addon.open-cluster-management.io',
    resource: 'addondeploymentconfigs',
    namespace: a,
    name: 'settings',
  };
  await hub.client.mergePatch(
    managedClusterAddOns,
    { namespace: a, name: 'argocd-agent-addon' },
    { spec: { configs: [reference] } },
  );
  await eventually('the node selector', async () => JSON.stringify(await work(a, 'agent')).includes('"role":"infra"'));
  expect(JSON.stringify(await work(b, 'agent'))).not.toContain('"role":"infra"');
  await eventually(
    'the reference',
    async () => (await addOn(a))?.status?.configReferences?.[0]?.desiredConfig?.specHash?.length === 64,
  );
});
