import { expect, test } from 'vitest';
import { installCrds, originalCrds } from '../../e2e/hub/index.ts';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { configMaps, crds, events, findCondition, leases, type Secret, secrets } from '../../lib/kube/index.ts';
import { inspectCertificate, isIssuedBy, secretText } from '../../lib/pki/index.ts';
import {
  addOnDeploymentConfigs,
  gitOpsClusters,
  managedClusterAddOns,
  managedClusters,
  manifestWorks,
  placements,
  requestedSecretName,
} from '../hub/index.ts';
import { chartCrds, useHub, workNames } from '../testing/hub.ts';

const hub = useHub(borrowCluster);

test('clusters selected while the certificate authority is being made are enrolled', async () => {
  const { ns, a, b } = hub;
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  const selectFirst = async (key: { name: string }) => {
    if (key.name !== 'argocd-agent-ca') {
      return;
    }
    await hub.fixture.placement(ns, 'placement', [a, b]);
    await until('a look at both clusters', async () => hub.controller.stats.clusters.done >= 4);
  };
  const client = new Proxy(hub.client, {
    get: (target, property) => {
      const value = Reflect.get(target, property, target);
      if (typeof value !== 'function') {
        return value;
      }
      if (property !== 'create' && property !== 'apply') {
        return value.bind(target);
      }
      return async (...args: [unknown, { metadata: { name: string } }]) => {
        await selectFirst(args[1].metadata);
        return value.apply(target, args);
      };
    },
  });
  hub.start({ client });
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
});

test('ocm defect H3: two GitOpsClusters of a namespace share authority and principal without endless writes', async () => {
  const { ns, a, b } = hub;
  await hub.fixture.placement(ns, 'one', [a]);
  await hub.fixture.placement(ns, 'two', [b]);
  await hub.fixture.gitOpsCluster(ns, 'one', 'one', { principalServerAddress: 'one.example.com' });
  await hub.fixture.gitOpsCluster(ns, 'two', 'two', { principalServerAddress: 'two.example.com', mode: 'autonomous' });
  hub.start();
  await hub.fixture.conditionIs([ns, 'one'], 'Ready', 'True');
  await hub.fixture.conditionIs([ns, 'two'], 'Ready', 'True');
  await hub.idle();
  const certificate = secretText((await hub.secret('argocd-agent-principal-tls'))?.data, 'tls.crt') ?? '';
  expect(inspectCertificate(certificate).dnsNames).toEqual(
    expect.arrayContaining(['one.example.com', 'two.example.com']),
  );
});

test('ocm defect H6: ocm defect M4: a GitOpsCluster enrolls the clusters of all decision pages', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  const authority = secretText((await hub.secret('argocd-agent-ca'))?.data, 'tls.crt') ?? '';
  expect(inspectCertificate(authority)).toMatchObject({
    isAuthority: true,
    commonName: expect.stringMatching(/^argocd-agent-ca@\d+$/),
  });
  for (const [name, host] of [
    ['argocd-agent-principal-tls', 'principal.example.com'],
    ['argocd-agent-resource-proxy-tls', `argocd-agent-resource-proxy.${ns}.svc`],
  ] as const) {
    const found = await hub.secret(name);
    expect(found).toMatchObject({ type: 'kubernetes.io/tls' });
    const certificate = secretText(found?.data, 'tls.crt') ?? '';
    expect(inspectCertificate(certificate).dnsNames).toContain(host);
    expect(isIssuedBy(certificate, authority)).toBe(true);
  }
  expect(secretText((await hub.secret('argocd-agent-jwt'))?.data, 'jwt.key')).toContain('BEGIN PRIVATE KEY');
  const bundle = await hub.client.get(configMaps, { namespace: ns, name: 'argocd-agent-ca-bundle' });
  expect(bundle?.data?.['ca-bundle.crt']?.trim()).toBe(authority.trim());
  for (const cluster of [a, b]) {
    const found = await hub.secret(`cluster-${cluster}`);
    expect(found?.metadata.labels).toMatchObject({
      'argocd.argoproj.io/secret-type': 'cluster',
      'apps.open-cluster-management.io/cluster-name': cluster,
      'argocd-agent.argoproj-labs.io/agent-name': cluster,
      'placement-name': 'placement',
    });
    expect(secretText(found?.data, 'name')).toBe(cluster);
    expect(secretText(found?.data, 'server')).toBe(`https://argocd-agent-resource-proxy:9090?agentName=${cluster}`);
    const { tlsClientConfig } = JSON.parse(secretText(found?.data, 'config') ?? '{}');
    const certificate = Buffer.from(tlsClientConfig.certData, 'base64').toString();
    expect(inspectCertificate(certificate)).toMatchObject({ commonName: cluster, usages: ['client'] });
    expect((await hub.addOn(cluster))?.status?.healthCheck?.mode).toBe('Customized');
    const agent = await hub.work(cluster, 'agent');
    // The cluster requests the certificate of its agent. No key leaves the hub.
    expect(JSON.stringify(agent)).toContain(`"agent.tls.secret-name":"${requestedSecretName}"`);
    expect(JSON.stringify(agent)).not.toContain('"tls.key":');
    const kinds = (await hub.work(cluster, 'crds'))?.spec.workload.manifests.map(({ metadata }) => metadata.name);
    expect(kinds).toEqual(['applications.argoproj.io', 'appprojects.argoproj.io']);
  }
  const status = (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'fleet' }))?.status;
  expect(status).toMatchObject({ clusters: { selected: 2, enrolled: 0, available: 0, connected: 0, failing: 0 } });
  for (const type of [
    'RBACReady',
    'ServerDiscovered',
    'JWTSecretReady',
    'CACertificateReady',
    'PrincipalCertificateReady',
    'ResourceProxyCertificateReady',
    'AddOnTemplateReady',
    'PlacementTolerationConfigured',
    'HubArgoCDCompatible',
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

test('ocm defect M14: neither a second reconcile nor a restart writes anything', async () => {
  const { a } = hub;
  await hub.enroll();
  await hub.idle();
  const before = await hub.versions();
  await hub.client.mergePatch(managedClusters, { name: a }, { metadata: { labels: { touched: 'yes' } } });
  await hub.idle();
  expect(await hub.versions()).toEqual(before);
  await hub.restart();
  await hub.idle();
  expect(await hub.versions()).toEqual(before);
  expect(hub.controller.writes).toBe(0);
});

test('ocm defect M2: a deleted or changed object is restored', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  const original = await hub.work(a, 'agent');
  await hub.client.delete(manifestWorks, { namespace: a, name: 'argocd-agent-addon-agent' });
  await until(
    'the work again',
    async () =>
      (await hub.work(a, 'agent'))?.spec.workload.manifests.length === original?.spec.workload.manifests.length,
  );
  await hub.client.mergePatch(
    manifestWorks,
    { namespace: a, name: 'argocd-agent-addon-crds' },
    { spec: { deleteOption: { propagationPolicy: 'Foreground' } } },
  );
  await until(
    'the delete option',
    async () => (await hub.work(a, 'crds'))?.spec.deleteOption?.propagationPolicy === 'Orphan',
  );
  await hub.client.mergePatch(secrets, { namespace: ns, name: `cluster-${a}` }, { data: { server: 'eA==' } });
  await until('the server', async () =>
    secretText((await hub.secret(`cluster-${a}`))?.data, 'server')?.includes('agentName'),
  );
  const before = secretText((await hub.secret('argocd-agent-principal-tls'))?.data, 'tls.crt');
  await hub.client.delete(secrets, { namespace: ns, name: 'argocd-agent-principal-tls' });
  await until('a new certificate', async () => {
    const now = secretText((await hub.secret('argocd-agent-principal-tls'))?.data, 'tls.crt');
    return now !== undefined && now !== before;
  });
  await hub.client.delete(managedClusterAddOns, { namespace: b, name: 'argocd-agent-addon' });
  await until('the add-on', () => hub.addOn(b));
});

test('ocm defect M9: the health of a cluster comes from its works and its connection', async () => {
  const { ns, a } = hub;
  await hub.enroll();
  const verdict = async (type: string) => findCondition((await hub.addOn(a))?.status?.conditions, type);
  expect(await verdict('AgentConnected')).toMatchObject({ status: 'False', reason: 'NeverConnected' });
  for (const name of workNames) {
    await hub.fixture.reportWork(a, name);
  }
  await until('Available', async () => (await verdict('Available'))?.status === 'True');
  expect(await verdict('Progressing')).toMatchObject({ status: 'False', reason: 'Completed' });
  const lease = { namespace: ns, name: `argocd-agent-${a}` };
  const connected = (value: string) =>
    hub.fixture.put(leases, {
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
  await until('connected', async () => (await verdict('AgentConnected'))?.status === 'True');
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'ClustersReady',
    'False',
    /^1 of 2 clusters available, 1 of 2 agents connected; waiting for \[c\d+b\]$/,
  );
  await connected('false');
  await until('disconnected', async () => (await verdict('AgentConnected'))?.reason === 'Disconnected');
  await hub.fixture.reportWork(a, 'argocd-agent-addon-agent', 0);
  await until('unavailable', async () => (await verdict('Available'))?.reason === 'AgentNotConnected');
  expect(await verdict('Available')).toMatchObject({
    status: 'False',
    message: 'the agent has not been connected to principal.example.com:443; not ready: argocd-agent-agent',
  });
  await hub.fixture.clusterAvailable(a, 'Unknown');
  await until('unknown', async () => (await verdict('Available'))?.status === 'Unknown');
});

test('invalid input leads to a message that names object and field, and to an Event', async () => {
  const { ns } = hub;
  const goc = [ns, 'fleet'] as const;
  hub.start();
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'nowhere');
  await hub.fixture.conditionIs(
    goc,
    'PlacementEvaluated',
    'False',
    new RegExp(`^Failed to evaluate placement: Placement ${ns}/nowhere does not exist$`),
  );
  await hub.fixture.conditionIs(goc, 'Ready', 'False', /Placement .*nowhere does not exist/);
  await until('an Event', async () =>
    (await hub.client.list(events, { namespace: ns })).some(
      ({ reason, note, regarding }) =>
        reason === 'PlacementEvaluatedFailed' && note?.includes('nowhere') && regarding?.name === 'fleet',
    ),
  );
});

test('the API server refuses at once what the CRD forbids', async () => {
  const { ns } = hub;
  const make = (addOn: object, reference: object = {}) =>
    hub.fixture.gitOpsCluster(ns, 'bad', 'placement', addOn, reference);
  await expect(make({ mode: 'fancy' })).rejects.toThrow(/spec\.argoCDAgentAddon\.mode.*"fancy"/);
  await expect(make({ principalServerPort: '70000' })).rejects.toThrow(/principalServerPort/);
  await expect(make({ principalServerPort: 'https' })).rejects.toThrow(/principalServerPort/);
  await expect(make({}, { kind: 'PlacementDecision' })).rejects.toThrow(/placementRef/);
});

test('with the permissive CRD of argocd-pull-integration, the status reports the mistakes', async () => {
  const { ns, a } = hub;
  await installCrds(hub.client, await originalCrds());
  try {
    await hub.fixture.placement(ns, 'placement', [a]);
    hub.start();
    const who = `GitOpsCluster ${ns}/fleet: spec`;
    const expectCondition = async (addOn: object, reference: object, type: string, message: string) => {
      await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', addOn, reference);
      const found = await hub.fixture.conditionIs([ns, 'fleet'], type, 'False', new RegExp(`${who}.*${message}`));
      await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'False', new RegExp(`^${type}: .*${message}`));
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
    expect(await hub.work(a, 'agent')).toBeUndefined();
    await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', { mode: 'autonomous' });
    await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
    await hub.idle();
    const before = await hub.versions();
    await hub.client.mergePatch(managedClusters, { name: a }, { metadata: { labels: { touched: 'again' } } });
    await hub.idle();
    expect(await hub.versions()).toEqual(before);
  } finally {
    await hub.cluster.applyCrds(chartCrds);
  }
});

test('ocm defect H4: the hub itself is never touched', async () => {
  const { ns, a } = hub;
  await hub.fixture.managedCluster('local-cluster');
  await hub.fixture.placement(ns, 'placement', ['local-cluster', a]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start();
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'PlacementEvaluated',
    'True',
    /^Evaluated 2 managed clusters; local-cluster is skipped: it is the hub itself$/,
  );
  expect(await hub.client.list(manifestWorks, { namespace: 'local-cluster' })).toEqual([]);
  expect(await hub.addOn('local-cluster')).toBeUndefined();
});

test("a user's own certificates and cluster Secrets stay as they are", async () => {
  const { ns, a, b } = hub;
  const own: Secret = { metadata: { namespace: ns, name: `cluster-${a}` }, type: 'Opaque', data: { name: 'bWluZQ==' } };
  await hub.fixture.put(secrets, own);
  await hub.fixture.placement(ns, 'placement', [a, b]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
  hub.start();
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'ClustersImported',
    'False',
    new RegExp(`Secret ${ns}/cluster-${a} exists and was not made by this controller`),
  );
  await hub.enrolled(b);
  expect((await hub.secret(`cluster-${a}`))?.data).toEqual(own.data);
});

test('a work that cannot be below 500 KiB is a condition that names object and size', async () => {
  const { ns, a } = hub;
  const name = 'appprojects.argoproj.io';
  const live = await hub.client.get(crds, { name });
  const padding = Object.fromEntries(
    Array.from({ length: 4000 }, (_, i) => [`field${i}`, { type: 'string', pattern: 'x'.repeat(120) }]),
  );
  const grow = async (properties: object) => {
    const crd = structuredClone(await hub.client.get(crds, { name }));
    const schema = crd?.spec?.versions[0]?.schema as { openAPIV3Schema: { properties: Record<string, object> } };
    schema.openAPIV3Schema.properties.padding = { type: 'object', properties };
    await hub.client.mergePatch(crds, { name }, { spec: { versions: crd?.spec?.versions } });
  };
  await grow(padding);
  try {
    await hub.fixture.placement(ns, 'placement', [a]);
    await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement');
    hub.start();
    await hub.fixture.conditionIs(
      [ns, 'fleet'],
      'ManifestWorkCreated',
      'False',
      /CustomResourceDefinition appprojects\.argoproj\.io has \d{6} bytes; a ManifestWork takes at most 512000/,
    );
    await grow({});
    await hub.fixture.conditionIs([ns, 'fleet'], 'ManifestWorkCreated', 'True');
  } finally {
    if (live) {
      await grow({});
    }
  }
});

test('ocm defect M6: an AddOnDeploymentConfig that an add-on names is applied and reported', async () => {
  const { a, b } = hub;
  await hub.enroll();
  await hub.fixture.put(addOnDeploymentConfigs, {
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
  await until('the node selector', async () => JSON.stringify(await hub.work(a, 'agent')).includes('"role":"infra"'));
  expect(JSON.stringify(await hub.work(b, 'agent'))).not.toContain('"role":"infra"');
  await until(
    'the reference',
    async () => (await hub.addOn(a))?.status?.configReferences?.[0]?.desiredConfig?.specHash?.length === 64,
  );
});
