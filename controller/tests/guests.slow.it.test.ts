import { beforeEach, expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import { configMaps, endpointSlices, events, namespaces, rfc3339, secrets, services } from '../../lib/kube/index.ts';
import { fingerprintsOf, inspectCertificate, secretText } from '../../lib/pki/index.ts';
import { gitOpsClusters, keys, managedBy, placementDecisions, placements } from '../hub/index.ts';
import { confined } from '../testing/confined.ts';
import { useHub } from '../testing/hub.ts';

/*
 * GitOpsClusters in namespaces without a principal: Argo CD's principal, in `hub.ns`, serves them. The controller has the
 * rights of the chart's default.
 */

const hub = useHub(borrowCluster);
const principal = 'argocd-agent-principal';
const ours = { labelSelector: `${wellKnown.managedByLabel}=${managedBy}` };
let teamA = '';
let teamB = '';

beforeEach(async () => {
  [teamA, teamB] = [`${hub.ns}-team-a`, `${hub.ns}-team-b`];
  await Promise.all([teamA, teamB].map((namespace) => hub.fixture.namespace(namespace)));
  await hub.fixture.put(services, {
    metadata: { namespace: hub.ns, name: principal },
    spec: { type: 'LoadBalancer', ports: [{ name: 'https', port: 443 }] },
  });
  const loadBalancer = { ingress: [{ hostname: 'lb.example.com' }] };
  const key = { namespace: hub.ns, name: principal };
  await hub.client.mergePatch(services, key, { status: { loadBalancer } }, { subresource: 'status' });
  await hub.fixture.put(endpointSlices, {
    metadata: { namespace: hub.ns, name: principal, labels: { 'kubernetes.io/service-name': principal } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
    ports: [{ name: 'https', port: 8443, protocol: 'TCP' }],
  });
});

function start(own: readonly string[] = [hub.ns]): void {
  hub.start({
    client: confined(hub.client, (namespace) => own.includes(namespace)),
    watchNamespaces: own,
    argoCdNamespace: hub.ns,
  });
}

/** A GitOpsCluster as in argocd-pull-integration's example, with these additions. */
async function guest(namespace: string, clusters: readonly string[], addOn: object = {}) {
  const name = 'gitops-cluster';
  await hub.fixture.placement(namespace, name, clusters);
  return hub.fixture.put(gitOpsClusters, {
    metadata: { namespace, name },
    spec: {
      placementRef: { apiVersion: 'cluster.open-cluster-management.io/v1beta1', kind: 'Placement', name },
      argoCDAgentAddon: { mode: 'managed', ...addOn },
    },
  });
}

const isReady = (namespace: string) => hub.fixture.conditionIs([namespace, 'gitops-cluster'], 'Ready', 'True');
const read = async (namespace: string) => hub.client.get(gitOpsClusters, { namespace, name: 'gitops-cluster' });
const isGone = (namespace: string) => until('it is gone', async () => (await read(namespace)) === undefined);
/** Creation times have whole seconds: objects made from now on are younger. */
async function isOld(namespace: string): Promise<void> {
  const born = Date.parse((await read(namespace))?.metadata.creationTimestamp ?? '');
  await until('the next second', async () => Date.now() >= born + 1_000);
}
const ownerOf = async (cluster: string) => (await hub.addOn(cluster))?.metadata.annotations?.[keys.owner];
async function certificate(name: string, key = 'tls.crt'): Promise<string> {
  return secretText((await hub.secret(name))?.data, key) ?? '';
}
async function principalNames(): Promise<readonly string[]> {
  return inspectCertificate(await certificate('argocd-agent-principal-tls')).dnsNames;
}

test("the original's example in a namespace without a principal is Ready: all that is secret stays with Argo CD", async () => {
  const namespace = 'open-cluster-management';
  await hub.fixture.namespace(namespace);
  await guest(namespace, [hub.a]);
  start();
  await isReady(namespace);
  await hub.enrolled(hub.a);
  await hub.fixture.conditionIs([namespace, 'gitops-cluster'], 'ServerDiscovered', 'True', /lb\.example\.com:443/);
  expect((await read(namespace))?.metadata.annotations?.[keys.principalNamespace]).toBe(hub.ns);
  const secret = await hub.secret(`cluster-${hub.a}`);
  expect(secret?.metadata.labels).toMatchObject({
    [keys.ownerNamespace]: namespace,
    'placement-name': `${namespace}.gitops-cluster`,
  });
  for (const type of [secrets, configMaps]) {
    expect(await hub.client.list(type as typeof secrets, { namespace, ...ours })).toEqual([]);
  }
  // The Placement is the users' own. What it lacks is said, and does no harm to Ready.
  await hub.fixture.conditionIs(
    [namespace, 'gitops-cluster'],
    'PlacementTolerationConfigured',
    'False',
    /add \{key: cluster\.open-cluster-management\.io\/unreachable, operator: Exists\} and .* to its spec\.tolerations/,
  );
  const placement = await hub.client.get(placements, { namespace, name: 'gitops-cluster' });
  expect(placement?.spec?.tolerations).toBeUndefined();
  await hub.fixture.agentConnected(hub.ns, hub.a);
  await until('the connection', async () =>
    (await hub.addOn(hub.a))?.status?.conditions?.some(
      ({ type, status }) => type === 'AgentConnected' && status === 'True',
    ),
  );
});

test('GitOpsClusters in two namespaces share one principal and one authority, and do not disturb each other', async () => {
  await guest(teamA, [hub.a]);
  await guest(teamB, [hub.b], { mode: 'autonomous' });
  start();
  await Promise.all([teamA, teamB].map(isReady));
  await Promise.all([hub.a, hub.b].map((cluster) => hub.enrolled(cluster)));
  const authority = fingerprintsOf(await certificate('argocd-agent-ca'));
  expect(authority).toHaveLength(1);
  expect(fingerprintsOf(await certificate('argocd-agent-ca-trust', 'ca.crt'))).toEqual(authority);
  for (const cluster of [hub.a, hub.b]) {
    const config = secretText((await hub.secret(`cluster-${cluster}`))?.data, 'config') ?? '{}';
    const { caData } = JSON.parse(config).tlsClientConfig;
    expect(fingerprintsOf(Buffer.from(caData, 'base64').toString())).toEqual(authority);
  }
  await hub.idle();
  const before = await hub.versions();
  await hub.stop();
  start();
  await until('caches', async () => hub.controller.missing().length === 0);
  await hub.idle();
  expect(await hub.versions()).toEqual(before);
  // What one leaves behind is nothing of the other's.
  await hub.client.delete(gitOpsClusters, { namespace: teamA, name: 'gitops-cluster' });
  await hub.fixture.endCleanUp(hub.a);
  await isGone(teamA);
  await until('its Secrets are gone', async () => (await hub.secret(`cluster-${hub.a}`)) === undefined);
  expect(fingerprintsOf(await certificate('argocd-agent-ca'))).toEqual(authority);
  expect(await hub.secret(`cluster-${hub.b}`)).toBeDefined();
  await hub.client.delete(gitOpsClusters, { namespace: teamB, name: 'gitops-cluster' });
  await hub.fixture.endCleanUp(hub.b);
  await isGone(teamB);
  await until(
    'nothing is left',
    async () => (await hub.client.list(secrets, { namespace: hub.ns, ...ours })).length === 0,
  );
});

test('a cluster stays with the GitOpsCluster that has it: one of another namespace gets a conflict, even an older one', async () => {
  await guest(teamA, []);
  await isOld(teamA);
  await guest(teamB, [hub.a, hub.b]);
  await isOld(teamB);
  await guest(hub.ns, [hub.b]);
  start();
  await Promise.all([hub.a, hub.b].map((cluster) => hub.enrolled(cluster)));
  await hub.fixture.conditionIs(
    [hub.ns, 'gitops-cluster'],
    'Ready',
    'False',
    new RegExp(`${hub.b} already belongs to the older GitOpsCluster ${teamB}/gitops-cluster`),
  );
  await hub.idle();
  const before = await hub.secret(`cluster-${hub.a}`);
  await hub.fixture.placement(teamA, 'gitops-cluster', [hub.a]);
  const conflict = await hub.fixture.conditionIs(
    [teamA, 'gitops-cluster'],
    'Ready',
    'False',
    new RegExp(`${hub.a} already belongs to GitOpsCluster ${teamB}/gitops-cluster and is left to it`),
  );
  expect(conflict.reason).toBe('Conflict');
  await until('the Event', async () =>
    (await hub.client.list(events, { namespace: teamA })).some(({ reason }) => reason === 'ClusterConflict'),
  );
  await hub.idle();
  expect(await ownerOf(hub.a)).toBe(`${teamB}/gitops-cluster`);
  expect((await hub.secret(`cluster-${hub.a}`))?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
  // The owner gives it up: then it is free for the other one.
  await hub.fixture.placement(teamB, 'gitops-cluster', [hub.b]);
  await until('the other owner', async () => (await ownerOf(hub.a)) === `${teamA}/gitops-cluster`);
});

test('a Placement in another namespace is not used, and only that in the namespace of the principal is mentioned', async () => {
  await hub.fixture.placement(teamB, 'gitops-cluster', [hub.b]);
  await guest(teamA, []);
  for (const type of [placements, placementDecisions]) {
    for (const one of await hub.client.list(type as typeof placements, { namespace: teamA })) {
      await hub.client.delete(type as typeof placements, one.metadata);
    }
  }
  start();
  const missing = `Placement ${teamA}/gitops-cluster does not exist`;
  await hub.fixture.conditionIs([teamA, 'gitops-cluster'], 'Ready', 'False', new RegExp(`${missing}( |$)`));
  await hub.fixture.placement(hub.ns, 'gitops-cluster', [hub.b]);
  await hub.client.mergePatch(
    gitOpsClusters,
    { namespace: teamA, name: 'gitops-cluster' },
    { metadata: { labels: { look: 'again' } } },
  );
  const hint = await hub.fixture.conditionIs(
    [teamA, 'gitops-cluster'],
    'PlacementEvaluated',
    'False',
    new RegExp(`${missing}; there is one in namespace ${hub.ns}, but a GitOpsCluster uses a Placement of its own`),
  );
  expect(hint.message).not.toContain(teamB);
  expect(await hub.addOn(hub.b)).toBeUndefined();
});

test('a namespace without a ManagedClusterSetBinding is told that it needs one', async () => {
  await guest(teamA, []);
  const conditions = [
    {
      type: 'PlacementSatisfied',
      status: 'False' as const,
      reason: 'NoManagedClusterSetBindings',
      message: 'No valid ManagedClusterSetBindings found in placement namespace',
      lastTransitionTime: rfc3339(new Date()),
    },
  ];
  const key = { namespace: teamA, name: 'gitops-cluster' };
  await hub.client.mergePatch(placements, key, { status: { conditions } }, { subresource: 'status' });
  start();
  await hub.fixture.conditionIs(
    [teamA, 'gitops-cluster'],
    'PlacementEvaluated',
    'True',
    new RegExp(`NoManagedClusterSetBindings: .*; create a ManagedClusterSetBinding in namespace ${teamA}$`),
  );
});

test('what reaches beyond its own clusters is refused with the reason, and has no effect', async () => {
  await guest(teamA, [hub.a], { principalServerAddress: 'evil.example.com', principalServerPort: '443' });
  await guest(teamB, [hub.b], { clusterLabels: { labels: ['env'], claims: [] } });
  start();
  const address = await hub.fixture.conditionIs([teamA, 'gitops-cluster'], 'Ready', 'False', /evil\.example\.com/);
  expect(address.message).toContain(`which is no address of the principal in namespace ${hub.ns}`);
  await hub.fixture.conditionIs(
    [teamB, 'gitops-cluster'],
    'Ready',
    'False',
    new RegExp(`clusterLabels has \\["env"\\], which only a GitOpsCluster in namespace ${hub.ns} may have`),
  );
  await until('the Events', async () => {
    const found = await Promise.all([teamA, teamB].map((namespace) => hub.client.list(events, { namespace })));
    return found.every((list) => list.some(({ type }) => type === 'Warning'));
  });
  await hub.idle();
  expect(await principalNames()).not.toContain('evil.example.com');
  expect(await hub.work(hub.a, 'agent')).toBeUndefined();
  expect(await hub.addOn(hub.b)).toBeUndefined();
  await guest(teamA, [hub.a], { principalServerAddress: 'lb.example.com', principalServerPort: '8443' });
  await guest(teamB, [hub.b], { clusterLabels: { labels: [], claims: [] } });
  await Promise.all([teamA, teamB].map(isReady));
});

test('the address that a GitOpsCluster of the principal sets is that of all others', async () => {
  await guest(teamA, [hub.a]);
  start();
  const at = (address: string) =>
    hub.fixture.conditionIs([teamA, 'gitops-cluster'], 'ServerDiscovered', 'True', new RegExp(`at ${address}$`));
  await at('lb.example.com:443');
  await guest(hub.ns, [hub.b], { principalServerAddress: 'gateway.example.com', principalServerPort: '8443' });
  await at('gateway.example.com:8443');
  await until('its name', async () => (await principalNames()).includes('gateway.example.com'));
  await guest(hub.ns, [hub.b]);
  await at('lb.example.com:443');
});

test('a namespace that is being deleted gives its clusters back, and takes nothing of the principal with it', async () => {
  await guest(teamA, [hub.a]);
  await guest(teamB, [hub.b]);
  start();
  await Promise.all([teamA, teamB].map(isReady));
  await hub.enrolled(hub.a);
  // As the namespace controller does: everything goes, in any order, and nothing can be made any more.
  await hub.client.delete(namespaces, { name: teamA });
  await hub.client.delete(placements, { namespace: teamA, name: 'gitops-cluster' });
  await hub.client.delete(placementDecisions, { namespace: teamA, name: 'gitops-cluster-decision-1' });
  await hub.client.delete(gitOpsClusters, { namespace: teamA, name: 'gitops-cluster' });
  await hub.fixture.endCleanUp(hub.a);
  await isGone(teamA);
  expect(await hub.addOn(hub.a)).toBeUndefined();
  expect(await hub.secret('argocd-agent-ca')).toBeDefined();
  await hub.fixture.conditionIs([teamB, 'gitops-cluster'], 'Ready', 'True');
});

test('a GitOpsCluster with an authority of its own is not moved to another principal, and says what to do', async () => {
  await guest(teamA, [hub.a], { principalServerAddress: 'own.example.com', principalServerPort: '443' });
  start([hub.ns, teamA]);
  await isReady(teamA);
  await hub.enrolled(hub.a);
  await hub.idle();
  await hub.stop();
  const state = async () => {
    const { [`gitopsclusters/${teamA}/gitops-cluster`]: _, ...others } = await hub.versions();
    return others;
  };
  const before = await state();
  start();
  const refusal = await hub.fixture.conditionIs([teamA, 'gitops-cluster'], 'Ready', 'False', /no rights in namespace/);
  expect(refusal.reason).toBe('NamespaceNotServed');
  expect(refusal.message).toMatch(/clusters have certificates of an authority there: .*controller\.gitOpsNamespaces/);
  expect(refusal.message).toContain(`for the principal in namespace ${hub.ns}`);
  await until('the Event', async () =>
    (await hub.client.list(events, { namespace: teamA })).some(({ reason }) => reason === 'RBACReadyFailed'),
  );
  await hub.idle();
  expect(await state()).toEqual(before);
  await hub.stop();
  start([hub.ns, teamA]);
  await isReady(teamA);
  await hub.idle();
  expect(await state()).toEqual(before);
});

test('a guest that is replaced with its manifest stays with its principal', async () => {
  await guest(teamA, [hub.a]);
  start();
  await isReady(teamA);
  await hub.enrolled(hub.a);
  await hub.idle();
  const before = await hub.secret(`cluster-${hub.a}`);
  const live = await read(teamA);
  const metadata = {
    namespace: teamA,
    name: 'gitops-cluster',
    resourceVersion: live?.metadata.resourceVersion ?? '',
  };
  await hub.client.replace(gitOpsClusters, { metadata, spec: live?.spec });
  await until(
    'the record',
    async () => (await read(teamA))?.metadata.annotations?.[keys.principalNamespace] === hub.ns,
  );
  await isReady(teamA);
  await hub.idle();
  expect((await hub.secret(`cluster-${hub.a}`))?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion);
});

test('a guest stays with the principal that it has when its namespace is listed later', async () => {
  await guest(teamA, [hub.a]);
  start();
  await isReady(teamA);
  await hub.enrolled(hub.a);
  await hub.idle();
  await hub.stop();
  const before = await hub.versions();
  start([hub.ns, teamA]);
  await until('caches', async () => hub.controller.missing().length === 0);
  await hub.idle();
  expect(await hub.versions()).toEqual(before);
});
