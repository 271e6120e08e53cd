import { createPublicKey } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:tls';
import { importPKCS8 } from 'jose';
import { beforeAll, expect, test } from 'vitest';
import {
  authoritiesOfSecret,
  type CertificateRequest,
  clockSkewMs,
  createAuthority,
  generateJwtKey,
  inspectCertificate,
  isIssuedBy,
  isKeyOf,
  issueCertificate,
  type KeyCertificate,
  PkiError,
  reasonToReissue,
  renewalTime,
  tlsOfSecret,
  tlsSecretData,
} from './index.ts';

const day = 24 * 3600_000;
let authority: KeyCertificate;
let other: KeyCertificate;
beforeAll(async () => {
  [authority, other] = await Promise.all([
    createAuthority({ commonName: 'argocd-agent-ca@1' }),
    createAuthority({ commonName: 'argocd-agent-ca@1' }),
  ]);
});

const server: CertificateRequest = {
  commonName: 'argocd-agent-principal',
  hosts: ['localhost', '127.0.0.1', '::1', 'principal.example.com'],
  usages: ['server'],
};
const agentName = 'system:open-cluster-management:cluster:c1:addon:argocd-agent-addon:agent:argocd-agent-addon-agent';
const client: CertificateRequest = {
  commonName: agentName,
  organizations: ['system:open-cluster-management:cluster:c1:addon:argocd-agent-addon', 'second'],
  usages: ['client'],
};

test('an authority is RSA, may sign, and its life starts before now', async () => {
  const now = new Date('2030-01-01T00:00:00Z');
  const made = await createAuthority({ commonName: 'ca', lifetimeMs: 10 * day, now });
  const info = inspectCertificate(made.certificate);
  expect(info).toMatchObject({ commonName: 'ca', isAuthority: true, notBefore: new Date(now.getTime() - clockSkewMs) });
  expect(info.notAfter).toEqual(new Date(now.getTime() + 10 * day));
  expect(createPublicKey(made.certificate).asymmetricKeyType).toBe('rsa');
  expect(made.key).toContain('BEGIN RSA PRIVATE KEY');
});

test('a leaf carries names, usages and its issuer, with either kind of key', async () => {
  const [rsa, ec] = await Promise.all([
    issueCertificate({ ...server, authority }),
    issueCertificate({ ...client, authority, algorithm: 'p256' }),
  ]);
  expect(inspectCertificate(rsa.certificate)).toMatchObject({
    commonName: 'argocd-agent-principal',
    dnsNames: ['localhost', 'principal.example.com'],
    ipAddresses: ['127.0.0.1', '::1'],
    usages: ['server'],
    isAuthority: false,
  });
  expect(inspectCertificate(ec.certificate)).toMatchObject({
    commonName: agentName,
    organizations: client.organizations,
    dnsNames: [],
    usages: ['client'],
  });
  for (const leaf of [rsa, ec]) {
    expect(isKeyOf(leaf.certificate, leaf.key)).toBe(true);
    expect(isIssuedBy(leaf.certificate, authority.certificate)).toBe(true);
    expect(isIssuedBy(leaf.certificate, other.certificate)).toBe(false);
    expect(isIssuedBy(leaf.certificate, other.certificate + authority.certificate)).toBe(true);
  }
  expect(isKeyOf(rsa.certificate, ec.key)).toBe(false);
});

test('a leaf never outlives its authority', async () => {
  const short = await createAuthority({ commonName: 'ca', lifetimeMs: day });
  const leaf = await issueCertificate({ ...server, authority: short, lifetimeMs: 30 * day });
  expect(inspectCertificate(leaf.certificate).notAfter).toEqual(inspectCertificate(short.certificate).notAfter);
});

test('mutual TLS works with what is issued and fails with another authority', async () => {
  const [serving, good, bad] = await Promise.all([
    issueCertificate({ ...server, authority }),
    issueCertificate({ ...client, authority, algorithm: 'p256' }),
    issueCertificate({ ...client, authority: other, algorithm: 'p256' }),
  ]);
  const tls = createServer(
    {
      cert: serving.certificate,
      key: serving.key,
      ca: authority.certificate,
      requestCert: true,
      rejectUnauthorized: true,
    },
    (socket) => socket.end(String(socket.getPeerCertificate().subject.CN)),
  );
  tls.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve));
  const dial = (pair: KeyCertificate) =>
    new Promise<string>((resolve, reject) => {
      const { port } = tls.address() as AddressInfo;
      const options = { port, host: '127.0.0.1', ca: authority.certificate, cert: pair.certificate, key: pair.key };
      let text = '';
      const socket = connect(options);
      socket.on('data', (chunk) => {
        text += chunk;
      });
      socket.on('end', () => (text ? resolve(text) : reject(new Error('closed'))));
      socket.on('error', reject);
    });
  await expect(dial(good)).resolves.toBe(agentName);
  await expect(dial(bad)).rejects.toThrow();
  await new Promise((resolve) => tls.close(resolve));
});

test('says why a certificate must be issued again', async () => {
  const leaf = await issueCertificate({ ...server, authority, lifetimeMs: 30 * day });
  const why = (wanted: Partial<CertificateRequest>, now?: Date) =>
    reasonToReissue(leaf, { ...server, ...wanted }, authority.certificate, now);
  expect(why({})).toBeUndefined();
  expect(why({ hosts: ['0:0:0:0:0:0:0:1', ...(server.hosts ?? [])] })).toBeUndefined();
  expect(why({ hosts: ['localhost'] })).toBe('its host names differ');
  expect(why({ commonName: 'x' })).toBe('it is for argocd-agent-principal');
  expect(why({ usages: ['client'] })).toBe('it lacks a usage');
  expect(why({}, new Date(Date.now() + 19 * day))).toBeUndefined();
  expect(why({}, new Date(Date.now() + 21 * day))).toBe('two thirds of its life are over');
  expect(why({}, new Date(Date.now() + 31 * day))).toBe('it has expired');
  expect(reasonToReissue(undefined, server, authority.certificate)).toBe('there is none');
  expect(reasonToReissue(leaf, server, other.certificate)).toBe('another authority signed it');
  expect(reasonToReissue({ ...leaf, key: other.key }, server, authority.certificate)).toContain('another certificate');
  expect(reasonToReissue({ certificate: 'x', key: 'y' }, server, authority.certificate)).toContain('no certificate');
});

test('renewal is due after two thirds', () => {
  expect(renewalTime({ notBefore: new Date(0), notAfter: new Date(30 * day) })).toEqual(new Date(20 * day));
});

test('the JWT key is PKCS#8 and fit for RS512', async () => {
  const pem = await generateJwtKey(2048);
  expect(pem).toMatch(/^-----BEGIN PRIVATE KEY-----/);
  await expect(importPKCS8(pem, 'RS512')).resolves.toBeTruthy();
});

test('making RSA keys leaves the event loop free', async () => {
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
  }, 1);
  await generateJwtKey(4096);
  clearInterval(timer);
  expect(ticks).toBeGreaterThan(5);
});

test('Secrets are read as either side of argocd-agent reads them', async () => {
  const data = tlsSecretData(authority);
  expect(tlsOfSecret(data)).toEqual(authority);
  expect(tlsOfSecret({ 'tls.crt': data['tls.crt'] })).toBeUndefined();
  expect(() => tlsOfSecret({ ...data, 'tls.key': tlsSecretData(other)['tls.key'] }, 'Secret argocd/x')).toThrow(
    'Secret argocd/x: tls.key is not the private key of tls.crt',
  );
  expect(authoritiesOfSecret(data, 'principal').trim()).toBe(authority.certificate.trim());
  expect(() => authoritiesOfSecret(data, 'agent')).toThrow(PkiError);
  expect(() => authoritiesOfSecret({}, 'principal', 'Secret a/b')).toThrow('Secret a/b: has no tls.crt or ca.crt');
  const both = {
    'ca.crt': tlsSecretData({ ...authority, certificate: authority.certificate + other.certificate })['tls.crt'],
  };
  expect(authoritiesOfSecret(both, 'agent').match(/BEGIN/g)).toHaveLength(2);
});

test('an authority that cannot sign is refused', async () => {
  const leaf = await issueCertificate({ ...server, authority });
  await expect(issueCertificate({ ...server, authority: leaf })).rejects.toMatchObject({ code: 'NOT_AN_AUTHORITY' });
  await expect(issueCertificate({ ...server, authority: { ...authority, key: other.key } })).rejects.toMatchObject({
    code: 'KEY_MISMATCH',
  });
});
