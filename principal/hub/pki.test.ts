import { beforeEach, expect, test } from 'vitest';
import { MemorySecrets } from '../../e2e/memory/index.ts';
import { enrolledClusterSecret, identityIn } from '../../lib/clusters/index.ts';
import type { Secret } from '../../lib/kube/index.ts';
import {
  createAuthority,
  inspectCertificate,
  isIssuedBy,
  issueCertificate,
  secretText,
  tlsSecretData,
} from '../../lib/pki/index.ts';
import { certificateMs, ensurePki, issueClient, pkiManager } from './pki.ts';

const namespace = 'argocd';
const names = {
  authority: 'argocd-agent-ca',
  principal: 'argocd-agent-principal-tls',
  resourceProxy: 'argocd-agent-resource-proxy-tls',
  tokenKey: 'argocd-agent-jwt',
};
const day = 24 * 3_600_000;
let hub: MemorySecrets;
let lines: string[];
beforeEach(() => {
  hub = new MemorySecrets();
  lines = [];
});

function run(options: { addresses?: readonly string[]; now?: Date } = {}) {
  lines = [];
  return ensurePki({
    client: hub.api,
    namespace,
    names,
    service: 'argocd-agent-principal',
    addresses: options.addresses ?? [],
    report: (line) => lines.push(line),
    signal: new AbortController().signal,
    ...(options.now === undefined ? {} : { now: options.now }),
  });
}

const textOf = (name: string, key = 'tls.crt') => secretText(hub.named(name)?.data, key) ?? '';
const put = (name: string, data: Record<string, string>) => hub.put({ metadata: { namespace, name }, data });

test('makes what is missing, once', async () => {
  const { authority, principalCertificate } = await run({ addresses: ['hub.example.com', '10.0.0.1', '::1'] });
  expect(hub.writes).toBe(4);
  expect(principalCertificate).toBe(textOf(names.principal));
  expect(isIssuedBy(principalCertificate, authority?.certificate ?? '')).toBe(true);
  const { dnsNames, ipAddresses, usages } = inspectCertificate(principalCertificate);
  expect(dnsNames).toEqual(
    expect.arrayContaining(['hub.example.com', 'argocd-agent-principal.argocd.svc', 'localhost']),
  );
  expect([ipAddresses, usages]).toEqual([
    ['10.0.0.1', '127.0.0.1', '::1'],
    ['server', 'client'],
  ]);
  expect(inspectCertificate(textOf(names.resourceProxy)).dnsNames).toContain('argocd-agent-resource-proxy');
  expect(textOf(names.tokenKey, 'jwt.key')).toContain('BEGIN PRIVATE KEY');

  await run();
  expect(hub.writes).toBe(4);
  expect(lines.every((line) => line.includes('kept'))).toBe(true);
});

test('renews its certificates in the last third of their life, with the names that they have', async () => {
  const start = new Date();
  await run({ addresses: ['former.example.com'], now: start });
  const at = (share: number) => new Date(start.getTime() + certificateMs * share);
  await run({ now: at(0.6) });
  expect(hub.writes).toBe(4);
  await run({ addresses: ['new.example.com'], now: at(0.7) });
  const info = inspectCertificate(textOf(names.principal));
  expect(info.dnsNames).toEqual(expect.arrayContaining(['former.example.com', 'new.example.com']));
  expect(info.notAfter.getTime()).toBeGreaterThan(at(1.6).getTime());
  expect(lines).toContainEqual(expect.stringContaining('argocd-agent-resource-proxy-tls: issued, because two thirds'));
});

test("renews the certificates in its cluster Secrets, and nobody else's", async () => {
  const { authority, authorities } = await run();
  if (authority === undefined) {
    throw new Error('there is no authority');
  }
  const { certificate, key } = await issueClient(authority, 'edge', new Date(Date.now() - 3_600_000));
  const identity = { cert: certificate, key, ca: authorities };
  const entry = (agent: string) => ({ agent, address: 'proxy:9090', identity });
  hub.put(enrolledClusterSecret(namespace, entry('edge'), { mode: 'managed', labels: {}, managedBy: pkiManager }));
  hub.put(enrolledClusterSecret(namespace, entry('theirs'), { mode: 'managed', labels: {}, managedBy: 'somebody' }));
  await run();
  expect(hub.writes).toBe(4);
  await run({ now: new Date(Date.now() + 61 * day) });
  const renewed = identityIn(hub.named('cluster-edge') as Secret);
  expect(renewed.certificate).not.toBe(certificate);
  expect(inspectCertificate(renewed.certificate).commonName).toBe('edge');
  expect(renewed.ca).toBe(authorities);
  expect(identityIn(hub.named('cluster-theirs') as Secret).certificate).toBe(certificate);
});

test('uses Secrets of others and never changes them', async () => {
  const authority = await createAuthority({ commonName: 'mine', lifetimeMs: 300 * day });
  put(names.authority, tlsSecretData(authority));
  const server = await issueCertificate({
    authority,
    commonName: 'x',
    hosts: ['x'],
    usages: ['server'],
    lifetimeMs: day,
  });
  put(names.principal, tlsSecretData(server));
  put(names.tokenKey, { 'jwt.key': Buffer.from('mine').toString('base64') });
  const { principalCertificate } = await run({ addresses: ['hub.example.com'] });
  expect(principalCertificate).toBe(server.certificate);
  expect(hub.writes).toBe(1);
  expect(isIssuedBy(textOf(names.resourceProxy), authority.certificate)).toBe(true);
  expect(lines).toContainEqual(expect.stringContaining('argocd-agent-principal-tls: yours, kept'));
});

test('says what to do when something cannot be made', async () => {
  const authority = await createAuthority({ commonName: 'mine' });
  const { 'tls.crt': certificate, 'tls.key': key } = tlsSecretData(authority);
  put(names.authority, { 'ca.crt': certificate });
  await expect(run()).rejects.toThrow(
    'Secret argocd/argocd-agent-principal-tls: there is none, and Secret argocd/argocd-agent-ca has no tls.key: add',
  );
  put(names.authority, { 'tls.crt': certificate, 'tls.key': certificate });
  await expect(run()).rejects.toThrow(/argocd-agent-ca.*Correct the Secret, or delete it/);
  put(names.authority, { 'tls.crt': certificate, 'tls.key': key });
  put(names.tokenKey, {});
  await expect(run()).rejects.toThrow('Secret argocd/argocd-agent-jwt has no key jwt.key: add it');
});

test('two that make the same Secrets agree', async () => {
  const [one, two] = await Promise.all([run(), run()]);
  expect(one.authorities).toBe(two.authorities);
  expect(textOf(names.authority)).toBe(one.authorities);
  expect(isIssuedBy(textOf(names.principal), one.authorities)).toBe(true);
});
