import { createPublicKey } from 'node:crypto';
import { expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { secrets } from '../../lib/kube/index.ts';
import {
  createAuthority,
  inspectCertificate,
  isIssuedBy,
  type KeyCertificate,
  renewalTime,
  secretText,
  splitCertificates,
} from '../../lib/pki/index.ts';
import type { ManifestWork } from '../hub/index.ts';
import { useHub, workNames } from '../testing/hub.ts';

const hub = useHub(borrowCluster);
const servers = ['argocd-agent-principal-tls', 'argocd-agent-resource-proxy-tls'];
const rotate = 'apps.open-cluster-management.io/rotate';

const textIn = async (secret: string, key: string) => secretText((await hub.secret(secret))?.data, key) ?? '';
const authority = () => textIn('argocd-agent-ca', 'tls.crt');
const trusted = async () => splitCertificates(await textIn('argocd-agent-ca-trust', 'ca.crt'));

/** The authorities and the certificate that are delivered to a cluster. */
async function delivered(cluster: string): Promise<{ authorities: string[]; certificate: string }> {
  const work = (await hub.work(cluster, 'agent')) as ManifestWork;
  const data = (name: RegExp) =>
    work.spec.workload.manifests.find(({ kind, metadata }) => kind === 'Secret' && name.test(metadata.name)) as {
      data?: Record<string, string>;
    };
  return {
    authorities: splitCertificates(secretText(data(/^argocd-agent-ca$/).data, 'ca.crt') ?? ''),
    certificate: secretText(data(/client-cert$/).data, 'tls.crt') ?? '',
  };
}

const report = (cluster: string) => Promise.all(workNames.map((name) => hub.fixture.reportWork(cluster, name)));

/** Waits until a cluster's works contain both authorities and a certificate of the new one. */
const offered = (cluster: string, now: string) =>
  until(`both authorities for ${cluster}`, async () => {
    const { authorities, certificate } = await delivered(cluster);
    return authorities.length === 2 && isIssuedBy(certificate, now);
  });

async function serversAre(of: string): Promise<boolean> {
  const found = await Promise.all(servers.map((name) => textIn(name, 'tls.crt')));
  return found.every((certificate) => isIssuedBy(certificate, of));
}

async function rotated(former: string): Promise<string> {
  return until('another authority', async () => {
    const now = await authority();
    return now !== former && (await trusted()).length === 2 && now;
  });
}

/** Follows a rotation from the second authority to its end. */
async function followRotation(former: string): Promise<void> {
  const { a, b, ns } = hub;
  const now = await rotated(former);
  await Promise.all([offered(a, now), offered(b, now)]);
  // One of two trusts the new authority.
  await report(a);
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'CACertificateReady',
    'True',
    new RegExp(`in use until clusters \\[${b}]`),
  );
  expect(await serversAre(former)).toBe(true);
  for (const name of [`cluster-${a}`, `cluster-${b}`]) {
    const config = JSON.parse(await textIn(name, 'config')) as { tlsClientConfig: { caData: string } };
    expect(splitCertificates(Buffer.from(config.tlsClientConfig.caData, 'base64').toString())).toHaveLength(2);
  }
  await report(b);
  await until('servers of the new authority', () => serversAre(now));
  await until('the end of the former authority', async () => (await trusted()).length === 1);
  expect(await trusted()).toEqual(splitCertificates(now));
  await until('one authority on the clusters', async () => (await delivered(a)).authorities.length === 1);
  await hub.fixture.conditionIs([ns, 'fleet'], 'CACertificateReady', 'True', /^CA certificate created successfully$/);
}

async function enrolled(options: Parameters<typeof hub.enroll>[0] = {}): Promise<string> {
  await hub.enroll(options, { clientCertificate: 'Generated' });
  await Promise.all([report(hub.a), report(hub.b)]);
  await hub.idle();
  return authority();
}

test('ocm defect H5: ocm defect M16: a requested rotation changes no certificate before all clusters trust the new authority', async () => {
  const { ns } = hub;
  const former = await enrolled();
  const ask = (text: string) =>
    hub.client.mergePatch(
      secrets,
      { namespace: ns, name: 'argocd-agent-ca' },
      { metadata: { annotations: { [rotate]: text } } },
    );
  await ask('2026-11-21');
  await followRotation(former);
  await hub.idle();
  const settled = await hub.versions();
  // The request has been carried out: after a restart it does not count as a new one.
  await hub.restart();
  await hub.idle();
  expect(await hub.versions()).toEqual(settled);
});

test('a user replaces their own authority: the former one stays trusted until all certificates have changed', async () => {
  const { ns } = hub;
  const [first, second] = await Promise.all([
    createAuthority({ commonName: 'first' }),
    createAuthority({ commonName: 'second' }),
  ]);
  const supply = (pair: KeyCertificate) => {
    const encode = (text: string) => Buffer.from(text).toString('base64');
    return hub.fixture.put(secrets, {
      metadata: { namespace: ns, name: 'argocd-agent-ca' },
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': encode(pair.certificate), 'tls.key': encode(pair.key) },
    });
  };
  await supply(first);
  const former = await enrolled();
  const { metadata } = await supply(second);
  await followRotation(former);
  // The user's Secret is read, never written.
  expect((await hub.secret('argocd-agent-ca'))?.metadata.resourceVersion).toBe(metadata.resourceVersion);
});

test('ocm defect H5: ocm defect M1: the controller’s own authority is renewed after two thirds of its life', async () => {
  let now = Date.now();
  const former = await enrolled({ clock: () => new Date(now) });
  now += 250 * 24 * 3600_000;
  await hub.stop();
  hub.start({ clock: () => new Date(now) });
  const next = await rotated(former);
  await Promise.all([offered(hub.a, next), offered(hub.b, next)]);
});

test('ocm defect M1: a certificate that becomes due while the controller runs is renewed without a change', async () => {
  const former = await enrolled();
  await hub.stop();
  const due = renewalTime(inspectCertificate(former)).getTime();
  const begin = Date.now();
  // Everything with fewer days to live is renewed at the start. Nothing triggers the renewals after that.
  hub.start({ clock: () => new Date(due - 5_000 + Date.now() - begin) });
  await rotated(former);
});

test('deleting the trust record ends the trust in a former authority at once', async () => {
  const { ns, a, b } = hub;
  const former = await enrolled();
  const key = { namespace: ns, name: 'argocd-agent-ca' };
  await hub.client.mergePatch(secrets, key, { metadata: { annotations: { [rotate]: 'leaked' } } });
  const now = await rotated(former);
  await Promise.all([offered(a, now), offered(b, now)]);
  await hub.client.delete(secrets, { namespace: ns, name: 'argocd-agent-ca-trust' });
  await until('servers of the new authority', () => serversAre(now));
  await until('one authority', async () => (await trusted()).length === 1);
});

test('a token key is renewed when due or on request; tokens of the former key are valid for a day', async () => {
  const { ns } = hub;
  let now = Date.now();
  const clock = () => new Date(now);
  const restart = async () => {
    await hub.stop();
    hub.start({ clock });
  };
  await hub.enroll({ clock });
  const key = () => textIn('argocd-agent-jwt', 'jwt.key');
  const former = () => textIn('argocd-agent-jwt', 'jwt.previous.pub');
  const first = await key();
  expect(await former()).toBe('');
  await hub.client.mergePatch(
    secrets,
    { namespace: ns, name: 'argocd-agent-jwt' },
    { metadata: { annotations: { [rotate]: 'now' } } },
  );
  await until('another key', async () => (await key()) !== first);
  expect(createPublicKey(await former()).equals(createPublicKey(first))).toBe(true);
  const second = await key();
  now += 25 * 3600_000;
  await restart();
  await until('the end of the former key', async () => (await former()) === '');
  expect(await key()).toBe(second);
  now += 250 * 24 * 3600_000;
  await restart();
  await until('a third key', async () => (await key()) !== second);
  expect(createPublicKey(await former()).equals(createPublicKey(second))).toBe(true);
});
