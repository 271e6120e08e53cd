import { createPrivateKey, X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSigningRequest, type RequestedSubject } from '../../e2e/ocm/signing-request.ts';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  type CertificateSigningRequest,
  type ConfigMap,
  certificateSigningRequests,
  events,
  findCondition,
  KubeClient,
  type Secret,
  secrets,
} from '../../lib/kube/index.ts';
import { inspectCertificate, isIssuedBy, secretText, splitCertificates } from '../../lib/pki/index.ts';
import {
  agentSubject,
  clientSecretName,
  type ManifestWork,
  managedClusterAddOns,
  manifestWorks,
  requestedSecretName as ocmSecret,
} from '../hub/index.ts';
import { useHub, workNames } from '../testing/hub.ts';

const hub = useHub(borrowCluster);
const day = 24 * 3600_000;
const signerName = 'open-cluster-management.io/argocd-agent-addon';

/** Makes a request as the registration agent of a cluster, for any cluster. */
async function ask(
  from: string,
  options: { of?: string; subject?: Partial<RequestedSubject>; spec?: object } = {},
): Promise<{ name: string; key: string }> {
  const { of = from, subject = {}, spec = {} } = options;
  const user = `system:open-cluster-management:${from}:agent`;
  // The rights of the agents are not under test.
  const groups = [`system:open-cluster-management:${from}`, 'system:masters'];
  const client = KubeClient.fromKubeconfig(await (hub.cluster as SharedCluster).kubeconfigFor({ user, groups }));
  const { request, key } = await createSigningRequest({ ...agentSubject(of), ...subject });
  const { metadata } = await client.create(certificateSigningRequests, {
    metadata: {
      generateName: `addon-${of}-argocd-agent-addon-`,
      labels: {
        'open-cluster-management.io/cluster-name': of,
        'open-cluster-management.io/addon-name': 'argocd-agent-addon',
      },
    } as unknown as CertificateSigningRequest['metadata'],
    spec: {
      request: Buffer.from(request).toString('base64'),
      signerName,
      usages: ['digital signature', 'key encipherment', 'client auth'],
      ...spec,
    },
  });
  await client.close();
  return { name: metadata.name, key };
}

const answer = (name: string) =>
  until(`an answer to ${name}`, async () => {
    const { status } = (await hub.client.get(certificateSigningRequests, { name })) ?? {};
    const refusal = status?.conditions?.find(({ type }) => type === 'Denied' || type === 'Failed');
    return (
      (status?.certificate !== undefined || refusal !== undefined) && { refusal, certificate: status?.certificate }
    );
  });

async function certificateFor(name: string): Promise<string> {
  const { certificate, refusal } = await answer(name);
  expect(refusal).toBeUndefined();
  return Buffer.from(certificate ?? '', 'base64').toString();
}

async function enrolled(addOn: object = {}): Promise<void> {
  const { ns, a, b } = hub;
  await hub.fixture.placement(ns, 'placement', [a, b]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', addOn);
  hub.start();
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
}

const report = (cluster: string) => Promise.all(workNames.map((name) => hub.fixture.reportWork(cluster, name)));

test('by default a cluster gets the certificate that it requests; add-on and works name signer and Secret', async () => {
  const { a } = hub;
  await enrolled();
  const { commonName: user, organizations: groups } = agentSubject(a);
  await until('the registration', async () => (await hub.addOn(a))?.status?.registrations?.length === 1);
  expect((await hub.addOn(a))?.status).toMatchObject({
    namespace: 'argocd',
    registrations: [{ signerName, subject: { user, groups } }],
  });
  const { manifests } = ((await hub.work(a, 'agent')) as ManifestWork).spec.workload;
  expect(manifests.filter(({ kind }) => kind === 'Secret').map(({ metadata }) => metadata.name)).toEqual([
    'argocd-agent-ca',
  ]);
  expect(JSON.stringify(manifests)).toContain(`"agent.tls.secret-name":"${ocmSecret}"`);
  const { name, key } = await ask(a);
  const certificate = await certificateFor(name);
  const info = inspectCertificate(certificate);
  expect(info).toMatchObject({ commonName: user, organizations: groups, dnsNames: [], isAuthority: false });
  expect([...info.usages]).toEqual(['client']);
  expect(info.notAfter.getTime() - Date.now()).toBeLessThanOrEqual(day);
  expect(isIssuedBy(certificate, secretText((await hub.secret('argocd-agent-ca'))?.data, 'tls.crt') ?? '')).toBe(true);
  expect(new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))).toBe(true);
  // A shorter life than the usual one is granted.
  const short = await certificateFor((await ask(a, { spec: { expirationSeconds: 3600 } })).name);
  expect(inspectCertificate(short).notAfter.getTime() - Date.now()).toBeLessThanOrEqual(3600_000);
});

test('an improper request is denied, with the reason in the request and an Event', async () => {
  const { a, b } = hub;
  await enrolled();
  const refused = async (asked: Promise<{ name: string }>, why: RegExp) => {
    const { name } = await asked;
    const { certificate, refusal } = await answer(name);
    expect(certificate).toBeUndefined();
    expect(refusal).toMatchObject({ type: 'Denied', message: expect.stringMatching(why) });
    await until(`an Event of ${name}`, async () =>
      (await hub.client.list(events, { namespace: 'default' })).some(
        ({ regarding, note = '' }) => regarding?.name === name && why.test(note),
      ),
    );
  };
  await Promise.all([
    refused(ask(a, { of: b }), new RegExp(`made by .*${a}:agent`)),
    refused(ask(a, { subject: { organizations: ['system:masters'] } }), /organizations are "system:masters"/),
    refused(ask('nobody'), /no GitOpsCluster selects cluster nobody/),
    refused(ask(a, { spec: { usages: ['client auth', 'server auth'] } }), /more than client authentication/),
  ]);
  // Another signer's request is not decided here.
  const { name } = await ask(a, { spec: { signerName: 'example.com/other' } });
  await certificateFor((await ask(a)).name);
  expect((await hub.client.get(certificateSigningRequests, { name }))?.status?.conditions).toBeUndefined();
});

test('a request that somebody else approved is signed only if it is permitted', async () => {
  const { a, b } = hub;
  await enrolled();
  await hub.stop();
  const [bad, good] = [await ask(a, { of: b }), await ask(a)];
  for (const { name } of [bad, good]) {
    const condition = { type: 'Approved', status: 'True', reason: 'KubectlApprove', message: 'by hand' };
    const status = { conditions: [condition] };
    await hub.client.mergePatch(certificateSigningRequests, { name }, { status }, { subresource: 'approval' });
  }
  hub.start();
  expect(await answer(bad.name)).toMatchObject({ refusal: { type: 'Failed' }, certificate: undefined });
  await certificateFor(good.name);
});

test('clusters with generated certificates may not request others', async () => {
  await enrolled({ clientCertificate: 'Generated' });
  const { refusal } = await answer((await ask(hub.a)).name);
  expect(refusal?.message).toMatch(/the hub delivers the key of cluster .*; set spec.*clientCertificate: CSR/);
});

/** Sets `clientCertificate`; undefined removes it. */
async function choose(clientCertificate: 'Generated' | 'CSR' | undefined): Promise<void> {
  await hub.fixture.gitOpsCluster(hub.ns, 'fleet', 'placement', clientCertificate ? { clientCertificate } : {});
  await hub.idle();
}

/** What the hub delivers to a cluster, and what it tells OCM's registration agent to request. */
async function stateOf(cluster: string) {
  const { manifests } = ((await hub.work(cluster, 'agent')) as ManifestWork).spec.workload;
  const addOn = await hub.addOn(cluster);
  const delivered = manifests.find(({ metadata }) => metadata.name === clientSecretName) as Secret | undefined;
  const params = manifests.find(({ metadata }) => metadata.name === 'argocd-agent-params') as ConfigMap | undefined;
  return {
    key: secretText(delivered?.data, 'tls.key'),
    secretName: params?.data?.['agent.tls.secret-name'],
    isRequested: (addOn?.status?.registrations?.length ?? 0) > 0,
    condition: findCondition(addOn?.status?.conditions, 'ClientCertificateIssued'),
  };
}

test('a cluster with a delivered key keeps it until it has a certificate that it requested, and can return', async () => {
  const { ns, a, b } = hub;
  await enrolled({ clientCertificate: 'Generated' });
  const { key = '' } = await stateOf(a);
  expect(key).toContain('BEGIN EC PRIVATE KEY');
  const isDelivered = { key, secretName: clientSecretName, isRequested: false, condition: undefined };
  // Without a setting and after a restart nothing changes.
  await choose(undefined);
  await hub.restart();
  await hub.idle();
  expect(await stateOf(a)).toEqual(isDelivered);

  await choose('CSR');
  const changing = await stateOf(a);
  expect(changing).toMatchObject({ key, secretName: clientSecretName, isRequested: true });
  expect(changing.condition).toMatchObject({
    status: 'False',
    reason: 'NotRequested',
    message: expect.stringMatching(/clientCertificate: Generated.*uses the key that the hub delivered$/),
  });
  await certificateFor((await ask(a)).name);
  await until('the end of the delivery', async () => (await stateOf(a)).key === undefined);
  await hub.idle();
  const own = { key: undefined, secretName: ocmSecret, isRequested: true };
  expect(await stateOf(a)).toMatchObject({ ...own, condition: { status: 'True', reason: 'Issued' } });
  // The other cluster has not requested a certificate.
  expect(await stateOf(b)).toMatchObject({ secretName: clientSecretName, isRequested: true });
  expect(Object.keys((await hub.secret(`argocd-agent-addon-${a}`))?.data ?? {}).sort()).toEqual([
    'redis-password',
    'server.secretkey',
  ]);
  const encoded = Buffer.from(key).toString('base64');
  const onHub = [await hub.client.list(secrets), await hub.client.list(manifestWorks)];
  expect(JSON.stringify(onHub)).not.toContain(encoded);
  await until('an Event', async () =>
    (await hub.client.list(events, { namespace: ns })).some(
      ({ reason, note = '' }) =>
        reason === 'KeyWithdrawn' && note.includes(`cluster ${a} `) && /valid until .* add [0-9A-F]{64} to/.test(note),
    ),
  );

  // Without a setting each cluster stays with what it has.
  await choose(undefined);
  expect([await stateOf(a), await stateOf(b)]).toMatchObject([own, { isRequested: false, condition: undefined }]);

  await choose('Generated');
  const back = await stateOf(a);
  expect(back).toEqual({ ...isDelivered, key: expect.stringContaining('BEGIN EC PRIVATE KEY') });
  expect(back.key).not.toBe(key);
  expect((await answer((await ask(a)).name)).refusal).toBeDefined();

  // The former certificate is gone from the cluster. So it must request one again before the key is withdrawn.
  await choose('CSR');
  expect(await stateOf(a)).toMatchObject({ key: back.key, isRequested: true, condition: { reason: 'NotRequested' } });
  await certificateFor((await ask(a)).name);
  await until('the end of the delivery', async () => (await stateOf(a)).key === undefined);
});

test('a cluster that argocd-pull-integration enrolled gets a key: a setting is needed to change it', async () => {
  const { ns, a, b } = hub;
  const key = { namespace: a, name: 'argocd-agent-addon' };
  const labels = { 'app.kubernetes.io/managed-by': 'argocd-pull-integration' };
  await hub.client.create(managedClusterAddOns, { metadata: { ...key, labels }, spec: {} });
  const { commonName: user, organizations: groups } = agentSubject(a);
  const status = {
    namespace: 'open-cluster-management-agent-addon',
    registrations: [{ signerName, subject: { user, groups } }],
  };
  await hub.client.mergePatch(managedClusterAddOns, key, { status }, { subresource: 'status' });
  await enrolled();
  await hub.idle();
  expect([await stateOf(a), await stateOf(b)]).toMatchObject([
    { secretName: clientSecretName, isRequested: false },
    { key: undefined, secretName: ocmSecret, isRequested: true },
  ]);
  await hub.restart();
  await hub.idle();
  expect((await stateOf(a)).key).toBeDefined();
  expect(await hub.secret(`argocd-agent-addon-${a}`, ns)).toBeDefined();
});

test('a former authority stays trusted while a requested certificate of it is in use', async () => {
  const { ns, a, b } = hub;
  let now = Date.now();
  await hub.fixture.placement(ns, 'placement', [a, b]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', { clientCertificate: 'CSR' });
  const clock = () => new Date(now);
  hub.start({ clock });
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
  await certificateFor((await ask(a)).name);
  const key = { namespace: ns, name: 'argocd-agent-ca' };
  const annotations = { 'apps.open-cluster-management.io/rotate': 'once' };
  await hub.client.mergePatch(secrets, key, { metadata: { annotations } });
  const trusted = async () =>
    splitCertificates(secretText((await hub.secret('argocd-agent-ca-trust'))?.data, 'ca.crt') ?? '').length;
  await until('both authorities', async () => (await trusted()) === 2);
  // A report counts only when the works contain both authorities.
  for (const cluster of [a, b]) {
    await until(`both authorities for ${cluster}`, async () => {
      const work = (await hub.work(cluster, 'agent')) as ManifestWork;
      const found = work.spec.workload.manifests.find(({ kind }) => kind === 'Secret') as Secret;
      return splitCertificates(secretText(found.data, 'ca.crt') ?? '').length === 2;
    });
  }
  await Promise.all([report(a), report(b)]);
  const message = new RegExp(`trusted until clusters \\[${a}] use certificates of the new one`);
  await hub.fixture.conditionIs([ns, 'fleet'], 'CACertificateReady', 'True', message);
  expect(await trusted()).toBe(2);
  // The cluster renews its certificate, and certainly uses the new one after some minutes.
  await certificateFor((await ask(a)).name);
  now += 6 * 60_000;
  await hub.stop();
  hub.start({ clock });
  await until('one authority', async () => (await trusted()) === 1);
});
