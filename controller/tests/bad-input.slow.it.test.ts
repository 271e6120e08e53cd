import { expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  ApiError,
  events,
  type KubeClient,
  type KubeObject,
  type ResourceType,
  rfc3339,
  secrets,
} from '../../lib/kube/index.ts';
import { createAuthority, type KeyCertificate, tlsSecretData } from '../../lib/pki/index.ts';
import {
  type FleetStatus,
  gitOpsClusters,
  type ManifestWork,
  manifestWorks,
  placementDecisions,
  placements,
} from '../hub/index.ts';
import { useHub } from '../testing/hub.ts';
import { capturedLog, described, printed } from '../testing/kubectl.ts';

const hub = useHub(borrowCluster);
const goc = () => [hub.ns, 'fleet'] as const;
const key = () => ({ namespace: hub.ns, name: 'fleet' });
/** Problems are reported at once in these tests. */
const troubleDelays = { refusedMs: 0, slowMs: 600_000 };

async function fleetStatus(): Promise<FleetStatus | undefined> {
  return (await hub.client.get(gitOpsClusters, key()))?.status?.clusters as FleetStatus | undefined;
}

/** Waits until the columns of `kubectl get` show this. */
async function shows(columns: Readonly<Record<string, unknown>>, name = 'fleet'): Promise<void> {
  let seen: Record<string, unknown> | undefined;
  try {
    await until('the columns', async () => {
      seen = await printed(hub.client, hub.ns, name);
      return Object.entries(columns).every(([column, value]) => seen?.[column] === value);
    });
  } catch {
    expect(seen).toMatchObject(columns);
  }
}

/** Waits until the controller's log contains a line. Events are logged, too. */
async function logs(log: ReturnType<typeof capturedLog>, line: RegExp): Promise<void> {
  await until(`a log line ${line}`, async () => line.test(log.text())).catch(() => expect(log.text()).toMatch(line));
}

/** Waits until `kubectl describe` contains a line. */
async function describes(line: RegExp, name = 'fleet'): Promise<void> {
  let text = '';
  try {
    await until(`a line ${line}`, async () => {
      text = await described(hub.client, hub.ns, name);
      return line.test(text);
    });
  } catch {
    expect(text).toMatch(line);
  }
}

test('kubectl get shows the important fields in these columns', async () => {
  await hub.enroll({ troubleDelays });
  await shows({ Placement: 'placement', Mode: 'managed', Selected: 2, Enrolled: 0, Connected: 0, Ready: 'True' });
  expect(Object.keys(await printed(hub.client, hub.ns, 'fleet'))).toEqual([
    'Name',
    'Placement',
    'Mode',
    'Selected',
    'Enrolled',
    'Connected',
    'Ready',
    'Age',
  ]);
  for (const part of ['agent', 'argocd', 'crds']) {
    await hub.fixture.reportWork(hub.a, `argocd-agent-addon-${part}`);
  }
  await hub.fixture.agentConnected(hub.ns, hub.a);
  await shows({ Selected: 2, Enrolled: 1, Connected: 1 });
  await describes(new RegExp(`Normal ClusterEnrolled: cluster ${hub.a} has applied everything`));
  await describes(
    new RegExp(`Normal ClusterConnected: the agent of cluster ${hub.a} has connected .* for the first time`),
  );
});

test('a Placement that is missing, in another namespace, or not bound to a cluster set', async () => {
  const { ns } = hub;
  const log = capturedLog();
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'elsewhere', {}, { namespace: 'default' });
  hub.start({ troubleDelays, logger: log.logger });
  await shows({ Placement: 'elsewhere', Ready: 'False', Selected: 0 });
  await describes(
    /PlacementEvaluated False Failed: .*Placement \S+\/elsewhere does not exist; spec\.placementRef\.namespace \(default\) is not used: a GitOpsCluster uses a Placement of its own namespace/,
  );
  await describes(/Warning PlacementEvaluatedFailed: .*elsewhere does not exist/);
  await logs(log, /level=warning msg="[^"]*elsewhere does not exist.*event=PlacementEvaluatedFailed/);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'elsewhere');
  await hub.fixture.namespace('other');
  await hub.fixture.put(placements, { metadata: { namespace: 'other', name: 'elsewhere' }, spec: {} });
  await hub.client.mergePatch(gitOpsClusters, key(), { metadata: { annotations: { look: 'again' } } });
  await describes(
    /does not exist; there is one in namespace other, but a GitOpsCluster uses a Placement of its own namespace/,
  );
  // OCM makes one empty decision and reports the reason on the Placement.
  await hub.fixture.placement(ns, 'elsewhere', []);
  const condition = {
    type: 'PlacementSatisfied',
    status: 'False',
    reason: 'NoManagedClusterSetBindings',
    message: 'No valid ManagedClusterSetBindings found in placement namespace',
    lastTransitionTime: rfc3339(new Date()),
  };
  await hub.client.mergePatch(
    placements,
    { namespace: ns, name: 'elsewhere' },
    { status: { numberOfSelectedClusters: 0, conditions: [condition] } },
    { subresource: 'status' },
  );
  await describes(
    /PlacementEvaluated True NoClusters: No managed clusters selected by placement: NoManagedClusterSetBindings: .*; create a ManagedClusterSetBinding in namespace/,
  );
  await shows({ Selected: 0, Enrolled: 0 });
});

test('a cluster that leaves and returns is reported each time, with Events and log lines', async () => {
  const { ns, a, b } = hub;
  const log = capturedLog();
  await hub.enroll({ troubleDelays, logger: log.logger });
  const count = (event: string) => log.text().split(`event=${event}`).length - 1;
  const comes = async () => {
    await hub.enrolled(a);
    for (const part of ['agent', 'argocd', 'crds']) {
      await hub.fixture.reportWork(a, `argocd-agent-addon-${part}`);
    }
    await hub.fixture.agentConnected(ns, a);
  };
  for (const time of [1, 2]) {
    await comes();
    await until(`arrival ${time}`, async () => count('ClusterEnrolled') === time && count('ClusterConnected') === time);
    await hub.unselect(a);
    await hub.fixture.endCleanUp(a);
    await until(`departure ${time}`, async () => count('ClusterLeaving') === time && count('ClusterLeft') === time);
    // Events that follow each other within seconds are one occurrence.
    const left = Date.now();
    await until('a pause', async () => Date.now() > left + 6_000);
    await hub.fixture.placement(ns, 'placement', [a, b], 1);
  }
  await describes(new RegExp(`Normal ClusterLeft: all objects of cluster ${a} are removed from the hub`));
  const enrolled = async () =>
    (await hub.client.list(events, { namespace: ns })).find(({ reason }) => reason === 'ClusterEnrolled');
  await until('two occurrences in one Event', async () => (await enrolled())?.series?.count === 2);
});

test('two GitOpsClusters that select the same cluster', async () => {
  const { ns, a, b } = hub;
  const log = capturedLog();
  await hub.enroll({ troubleDelays, logger: log.logger });
  await hub.fixture.placement(ns, 'second', [a, b]);
  // Creation times have whole seconds.
  const older = Date.parse((await hub.client.get(gitOpsClusters, key()))?.metadata.creationTimestamp ?? '');
  await until('the next second', async () => Date.now() > older + 1_000);
  await hub.fixture.gitOpsCluster(ns, 'younger', 'second');
  await shows({ Selected: 2, Enrolled: 0, Ready: 'False' }, 'younger');
  await describes(new RegExp(`Ready False Conflict: PlacementEvaluated: .*older GitOpsCluster ${ns}/fleet`), 'younger');
  await describes(new RegExp(`ClustersReady False Conflict: ${a}, ${b} already belong to .*${ns}/fleet`), 'younger');
  await describes(
    new RegExp(`${a}, ${b} already belong to the older GitOpsCluster ${ns}/fleet and are left to it`),
    'younger',
  );
  await describes(new RegExp(`Warning ClusterConflict: ${a}, ${b} already belong`), 'younger');
  await logs(log, new RegExp(`level=warning msg="${a}, ${b} already belong.*event=ClusterConflict`));
  const of = async () => (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'younger' }))?.status?.clusters;
  const before = (await of()) as FleetStatus;
  expect(before).toMatchObject({ selected: 2, failing: 2 });
  expect(before.failingClusters?.map(({ name, step, reason }) => [name, step, reason])).toEqual([
    [a, 'PlacementEvaluated', 'Conflict'],
    [b, 'PlacementEvaluated', 'Conflict'],
  ]);
  const conflicts = async () => (await described(hub.client, ns, 'younger')).split('ClusterConflict').length;
  const recorded = await conflicts();
  await hub.stop();
  hub.start({ troubleDelays });
  await until('caches', async () => hub.controller.missing().length === 0);
  await hub.idle();
  expect(await of()).toEqual(before);
  expect(await conflicts()).toBe(recorded);
});

test('the hub itself and clusters that are not registered', async () => {
  const { ns, a } = hub;
  const log = capturedLog();
  await hub.fixture.managedCluster('hub-too', { 'local-cluster': 'true' });
  await hub.fixture.placement(ns, 'placement', ['hub-too', 'nobody-1', 'nobody-2', 'nobody-3', a]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start({ troubleDelays, logger: log.logger });
  await shows({ Selected: 5, Ready: 'True' });
  await describes(
    /Evaluated 5 managed clusters; hub-too is skipped: it is the hub itself; .*nobody-1 is skipped: there is no ManagedCluster nobody-1; .*; 1 more are skipped/,
  );
  await describes(/Normal ClusterSkipped: hub-too is skipped: it is the hub itself/);
  await logs(log, /level=info msg="hub-too is skipped: it is the hub itself.*event=ClusterSkipped/);
  expect(await hub.client.list(manifestWorks, { namespace: 'hub-too' })).toEqual([]);
});

/** Reports that a cluster refuses a manifest, as OCM's work agent does. */
async function refuse(cluster: string, message: string): Promise<void> {
  const name = 'argocd-agent-addon-agent';
  const work = await until('the work', () => hub.client.get(manifestWorks, { namespace: cluster, name }));
  const failed = { status: 'False' as const, reason: 'AppliedManifestFailed', lastTransitionTime: rfc3339(new Date()) };
  const condition = { type: 'Applied', ...failed, observedGeneration: work.metadata.generation ?? 0 };
  const ordinal = work.spec.workload.manifests.findIndex(({ kind }) => kind === 'Deployment');
  const resourceMeta = { ordinal, kind: 'Deployment', namespace: 'argocd', name: 'argocd-agent-agent' };
  const status: ManifestWork['status'] = {
    conditions: [{ ...condition, message: 'Failed to apply manifest work' }],
    resourceStatus: { manifests: [{ resourceMeta, conditions: [{ type: 'Applied', ...failed, message }] }] },
  };
  await hub.client.mergePatch(manifestWorks, work.metadata, { status }, { subresource: 'status' });
}

test('a work that the cluster refuses, and one that its work agent has no right for', async () => {
  const { a } = hub;
  const log = capturedLog();
  await hub.enroll({ troubleDelays, logger: log.logger });
  await refuse(a, 'admission webhook "policy.example.com" denied the request: no');
  await describes(
    /ClusterRefusesWork: cluster \S+: ManifestWork argocd-agent-addon-agent: Deployment argocd\/argocd-agent-agent: admission webhook "policy\.example\.com" denied the request: no/,
  );
  await shows({ Selected: 2, Enrolled: 0 });
  await logs(log, /level=warning msg="cluster \S+: .*denied the request: no.*event=ClusterRefusesWork/);
  const { since } = (await until('the list', async () => (await fleetStatus())?.failingClusters?.[0])) ?? {};
  const agent = 'system:serviceaccount:open-cluster-management-agent:klusterlet-work-sa';
  await refuse(
    a,
    `deployments.apps "argocd-agent-agent" is forbidden: User "${agent}" cannot patch resource "deployments" in API group "apps" in the namespace "argocd"`,
  );
  await until('what to grant', async () =>
    (await fleetStatus())?.failingClusters?.[0]?.message.endsWith(
      'grant it on the cluster: a ClusterRole that allows to patch deployments.apps, labelled open-cluster-management.io/aggregate-to-work: "true"',
    ),
  );
  expect(await fleetStatus()).toMatchObject({
    failing: 1,
    failingClusters: [{ name: a, step: 'ManifestApplied', reason: 'AddonManifestAppliedFailed', since }],
  });
  for (const part of ['agent', 'argocd', 'crds']) {
    await hub.fixture.reportWork(a, `argocd-agent-addon-${part}`);
  }
  await until('nothing to fail', async () => (await fleetStatus())?.failing === 0);
  await describes(new RegExp(`Normal ClusterRecovered: cluster ${a} has recovered: `));
});

test('the start time of a problem survives a restart of the controller', async () => {
  const { ns, a } = hub;
  // A foreign Secret is in the way, so that only the status records the time.
  await hub.fixture.put(secrets, { metadata: { namespace: ns, name: `cluster-${a}` }, data: { name: 'bWluZQ==' } });
  await hub.fixture.placement(ns, 'placement', [a]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start({ troubleDelays });
  await shows({ Ready: 'False', Selected: 1 });
  const before = await until('the list', async () => (await fleetStatus())?.failingClusters?.[0]);
  expect(before).toMatchObject({ name: a, step: 'ClustersImported', reason: 'Failed' });
  expect(before.message).toContain(`Secret ${ns}/cluster-${a} exists and was not made by this controller`);
  await until('the next second', async () => Date.now() > Date.parse(before.since) + 1_000);
  await hub.stop();
  hub.start({ troubleDelays });
  await until('caches', async () => hub.controller.missing().length === 0);
  await until('the cluster to be looked at', async () => hub.controller.stats.clusters.failed > 0);
  expect((await fleetStatus())?.failingClusters).toEqual([before]);
});

test.each<[string, (one: KeyCertificate, other: KeyCertificate) => Record<string, string>, RegExp]>([
  [
    'belongs to another certificate',
    ({ certificate }, { key }) => tlsSecretData({ certificate, key }),
    /argocd-agent-ca: tls\.key is not the private key of tls\.crt/,
  ],
  [
    'has another name',
    (one) => ({ 'tls.crt': tlsSecretData(one)['tls.crt'] ?? '', 'ca.key': tlsSecretData(one)['tls.key'] ?? '' }),
    /argocd-agent-ca must hold tls\.crt and tls\.key/,
  ],
])('an authority whose key %s', async (_, dataOf, why) => {
  const { ns, a } = hub;
  const log = capturedLog();
  const [one, other] = await Promise.all(['own-1', 'own-2'].map((commonName) => createAuthority({ commonName })));
  if (!one || !other) {
    throw new Error('no authorities');
  }
  const metadata = { namespace: ns, name: 'argocd-agent-ca' };
  await hub.fixture.put(secrets, { metadata, data: dataOf(one, other) });
  await hub.fixture.placement(ns, 'placement', [a]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start({ troubleDelays, logger: log.logger });
  await shows({ Selected: 1, Enrolled: 0, Ready: 'False' });
  await describes(new RegExp(`CACertificateReady False Failed: .*${why.source}`));
  await describes(new RegExp(`Warning CACertificateReadyFailed: .*${why.source}`));
  await logs(log, new RegExp(`level=warning msg="[^"]*${why.source}.*event=CACertificateReadyFailed`));
  expect(await hub.work(a, 'agent')).toBeUndefined();
  await hub.client.mergePatch(secrets, metadata, { data: tlsSecretData(one) });
  await hub.enrolled(a);
  await shows({ Ready: 'True' });
});

/** Fails or delays writes of one kind, as an overloaded API server does. */
function busy(
  client: KubeClient,
  plural: string,
  next: (object: KubeObject) => Error | undefined | Promise<undefined>,
): KubeClient {
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') {
        return value;
      }
      if (name !== 'create' && name !== 'apply') {
        return value.bind(target);
      }
      return async (type: ResourceType, ...rest: unknown[]) => {
        const error = type.plural === plural ? await next(rest[0] as KubeObject) : undefined;
        if (error) {
          throw error;
        }
        return (value as (...all: unknown[]) => Promise<KubeObject>).call(target, type, ...rest);
      };
    },
  });
}

test.each([
  [500, 'etcdserver: request timed out'],
  [429, 'too many requests, please try again later'],
  [504, 'request did not complete within the allotted timeout'],
])('an API server that answers %i', async (status, message) => {
  const { a, b, ns } = hub;
  let isDown = true;
  let refused = 0;
  const client = busy(hub.client, 'manifestworks', () => {
    if (!isDown) {
      return undefined;
    }
    refused += 1;
    return new ApiError({ status, message });
  });
  const log = capturedLog();
  await hub.fixture.placement(ns, 'placement', [a, b]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start({ troubleDelays, client, logger: log.logger });
  await shows({ Selected: 2, Enrolled: 0, Ready: 'False' });
  await describes(
    new RegExp(`ManifestWorkCreated False Failed: Failed to create ManifestWorks for clusters: \\[.*${message}`),
  );
  await describes(new RegExp(`Warning ManifestWorkCreatedFailed: .*${message}`));
  await until('both in the list', async () => (await fleetStatus())?.failing === 2);
  expect((await fleetStatus())?.failingClusters?.[0]).toMatchObject({ name: a, step: 'ManifestWorkCreated' });
  await logs(log, new RegExp(`level=warning msg="[^"]*${message}.*event=ManifestWorkCreatedFailed`));
  // There are six works per attempt. Without back-off there would be thousands by now.
  expect(refused).toBeLessThan(6 * 20);
  isDown = false;
  await Promise.all([hub.enrolled(a), hub.enrolled(b)]);
  await shows({ Ready: 'True' });
  await until('nothing to fail', async () => (await fleetStatus())?.failing === 0);
});

test('a slow API server delays no other cluster, and the status reports the work in progress', async () => {
  const { a, b, ns } = hub;
  const { promise: late, resolve: answer } = Promise.withResolvers<undefined>();
  let held = 0;
  const client = busy(hub.client, 'manifestworks', ({ metadata }) => {
    if (metadata.namespace !== a) {
      return undefined;
    }
    held += 1;
    return late;
  });
  await hub.fixture.placement(ns, 'placement', [a, b]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start({ troubleDelays, client });
  try {
    await until('the write that gets no response', async () => held > 0);
    await hub.enrolled(b);
    await shows({ Selected: 2, Ready: 'Unknown' });
    await describes(/ManifestWorkCreated Unknown InProgress: Reconciliation in progress/);
    expect(held).toBe(1);
  } finally {
    answer(undefined);
  }
  await hub.enrolled(a);
  await shows({ Ready: 'True' });
  expect(await described(hub.client, ns, 'fleet')).not.toMatch(/^Warning /m);
});

test('a status of an earlier version, with a number in `clusters`, is replaced', async () => {
  const { ns } = hub;
  await hub.enroll({ troubleDelays });
  await hub.stop();
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gitopsclusters.apps.open-cluster-management.io`;
  const pointer = '/spec/versions/0/schema/openAPIV3Schema/properties/status/properties';
  const read = async () => JSON.parse(await (await hub.client.request(path)).body.text());
  const status = (await read()).spec.versions[0].schema.openAPIV3Schema.properties.status.properties;
  const setStatusSchema = async (properties: object) => {
    const patch = [{ op: 'replace', path: pointer, value: properties }];
    const headers = { 'content-type': 'application/json-patch+json' };
    const answer = await hub.client.request(path, { method: 'PATCH', headers, body: JSON.stringify(patch) });
    await answer.body.discard();
  };
  const number = { type: 'integer', format: 'int32' };
  await setStatusSchema({ ...status, clusters: number, availableClusters: number, connectedClusters: number });
  await until('the old schema', () =>
    hub.client
      .mergePatch(
        gitOpsClusters,
        key(),
        { status: { clusters: 2, availableClusters: 1, connectedClusters: 1 } },
        { subresource: 'status' },
      )
      .then(({ status: now }) => now?.clusters === 2),
  );
  // A controller that is newer than the CRD works on, without the list.
  await hub.client.mergePatch(gitOpsClusters, key(), { spec: { argoCDAgentAddon: { mode: 'autonomous' } } });
  hub.start({ troubleDelays });
  const { generation } = (await hub.client.get(gitOpsClusters, key()))?.metadata ?? {};
  await until(
    'conditions of the new generation',
    async () => (await hub.client.get(gitOpsClusters, key()))?.status?.observedGeneration === generation,
  );
  await hub.stop();
  await setStatusSchema(status);
  // Others can write the object in the meantime, whatever its status contains.
  await until('a write by a user', () =>
    hub.client.mergePatch(gitOpsClusters, key(), { spec: { argoCDAgentAddon: { mode: 'managed' } } }),
  );
  hub.start({ troubleDelays });
  await shows({ Selected: 2, Enrolled: 0, Connected: 0 });
  const found = await hub.client.get(gitOpsClusters, { namespace: ns, name: 'fleet' });
  expect(found?.status).not.toHaveProperty('connectedClusters');
  await hub.fixture.conditionIs(goc(), 'Ready', 'True');
});

test('250 clusters in three decisions of two groups: new decisions for the same clusters detach none', async () => {
  const { ns, a, b } = hub;
  const nobody = Array.from({ length: 248 }, (_, i) => `n${String(i).padStart(3, '0')}`);
  const pages = [[...nobody.slice(0, 99), a], nobody.slice(99, 199), [...nobody.slice(199), b]];
  const write = async (page: number) => {
    const clusters = pages[page] ?? [];
    const decision = { namespace: ns, name: `placement-decision-${page + 1}` };
    const group = page < 2 ? ['first', '0'] : ['second', '1'];
    const prefix = 'cluster.open-cluster-management.io';
    const labels = {
      [`${prefix}/placement`]: 'placement',
      [`${prefix}/decision-group-name`]: group[0] ?? '',
      [`${prefix}/decision-group-index`]: group[1] ?? '',
    };
    await hub.fixture.put(placementDecisions, { metadata: { ...decision, labels } });
    const decisions = clusters.map((clusterName) => ({ clusterName, reason: '' }));
    await hub.client.mergePatch(placementDecisions, decision, { status: { decisions } }, { subresource: 'status' });
  };
  await hub.fixture.put(placements, { metadata: { namespace: ns, name: 'placement' }, spec: {} });
  for (const page of [0, 1, 2]) {
    await write(page);
  }
  const status = { numberOfSelectedClusters: 250 };
  await hub.client.mergePatch(placements, { namespace: ns, name: 'placement' }, { status }, { subresource: 'status' });
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start({ troubleDelays, settleMs: 0 });
  await shows({ Selected: 250, Ready: 'True' });
  await describes(/Evaluated 250 managed clusters; n000 is skipped: .*; 245 more are skipped/);
  await Promise.all([hub.enrolled(a), hub.enrolled(b)]);
  const addOns = async () => (await Promise.all([hub.addOn(a), hub.addOn(b)])).map((addOn) => addOn?.metadata);
  const before = await addOns();
  for (const page of [0, 1, 2]) {
    await hub.client.delete(placementDecisions, { namespace: ns, name: `placement-decision-${page + 1}` });
    await hub.fixture.conditionIs(goc(), 'PlacementEvaluated', 'Unknown');
    await write(page);
    await hub.fixture.conditionIs(goc(), 'PlacementEvaluated', 'True');
  }
  await hub.idle();
  const identity = (list: typeof before) => list.map((metadata) => [metadata?.uid, metadata?.annotations]);
  expect(identity(await addOns())).toEqual(identity(before));
  expect(await described(hub.client, ns, 'fleet')).not.toContain('ClusterLeaving');
});

test('a specification that can never work is refused when it is written, with instructions', async () => {
  const { ns } = hub;
  const make = (addOn: object, reference: object = {}) =>
    hub.fixture.gitOpsCluster(ns, 'bad', 'placement', addOn, reference);
  const payload = { manifests: [{ apiVersion: 'argoproj.io/v1beta1', kind: 'ArgoCD', metadata: { name: 'argocd' } }] };
  await expect(make({ argoCD: 'Install', argoCDCRManifestWork: payload })).rejects.toThrow(
    /argoCD must be Operator or left out/,
  );
  const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } };
  await expect(make({ argoCDCRManifestWork: { manifests: [config] } })).rejects.toThrow(
    /must be an ArgoCD of argoproj\.io\/v1beta1/,
  );
  await expect(make({ argoCDCRManifestWork: { manifests: [] } })).rejects.toThrow(/manifests/);
  await expect(make({}, { kind: '' })).rejects.toThrow(/kind must be Placement/);
  for (const address of [
    'https://hub.example.com',
    'hub.example.com:443',
    '[hub.example.com]',
    '[2001:db8::1]:443',
    'hub example',
  ]) {
    await expect(make({ principalServerAddress: address })).rejects.toThrow(/principalServerAddress.*without a scheme/);
  }
  for (const address of ['hub.example.com', '10.0.0.1', '2001:db8::1', '[2001:db8::1]', '', 'Hub_1.example.com.']) {
    await make({ principalServerAddress: address });
  }
  await make({ argoCD: 'Operator', argoCDCRManifestWork: payload });
  await make({ argoCDCRManifestWork: { manifests: [config, ...payload.manifests] } });
  await make({ mode: '', agentNamespace: '', operatorNamespace: 'gitops', principalServerPort: '' });
});
