import { createPrivateKey, X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSigningRequest, type RequestedSubject } from '../../e2e/ocm/signing-request.ts';
import { type Cluster, startCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  type CertificateSigningRequest,
  certificateSigningRequests,
  events,
  KubeClient,
  type Secret,
  secrets,
} from '../../lib/kube/index.ts';
import { inspectCertificate, isIssuedBy, secretText, splitCertificates } from '../../lib/pki/index.ts';
import { agentSubject, type ManifestWork } from '../hub/index.ts';
import { useHub, workNames } from '../testing/hub.ts';

const hub = useHub(startCluster);
const day = 24 * 3600_000;
const signerName = 'open-cluster-management.io/argocd-agent-addon';
const ocmSecret = 'argocd-agent-addon-open-cluster-management.io-argocd-agent-addon-client-cert';

/** Makes a request as the registration agent of a cluster, for any cluster. */
async function ask(
  from: string,
  options: { of?: string; subject?: Partial<RequestedSubject>; spec?: object } = {},
): Promise<{ name: string; key: string }> {
  const { of = from, subject = {}, spec = {} } = options;
  const user = `system:open-cluster-management:${from}:agent`;
  // The rights of the agents are not under test.
  const groups = [`system:open-cluster-management:${from}`, 'system:masters'];
  const client = KubeClient.fromKubeconfig(await (hub.cluster as Cluster).kubeconfigFor({ user, groups }));
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

async function enrolled(addOn: object = { clientCertificate: 'CSR' }): Promise<void> {
  const { ns, a, b } = hub;
  await hub.fixture.placement(ns, 'placement', [a, b]);
  await hub.fixture.gitOpsCluster(ns, 'fleet', 'placement', addOn);
  hub.start();
  await hub.fixture.conditionIs([ns, 'fleet'], 'Ready', 'True');
}

const report = (cluster: string) => Promise.all(workNames.map((name) => hub.fixture.reportWork(cluster, name)));

test('a cluster gets the certificate that it requests; add-on and works name signer and Secret', async () => {
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
  await enrolled({});
  const { refusal } = await answer((await ask(hub.a)).name);
  expect(refusal?.message).toMatch(/does not let its clusters ask .*clientCertificate is Generated/);
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
