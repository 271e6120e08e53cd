import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { beforeAll, expect, test } from 'vitest';
import { TokenAuthority } from '../auth/index.ts';
import { isIssuedBy } from '../pki/index.ts';
import { runWireClient, serveWire } from './index.ts';
import { createSigningKey } from './testing/certificates.ts';

// A root, an issuing authority below it, and certificates of that one, which are shown with it.

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const day = 86_400_000;
const life = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) };
const pair = () => webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
const silent = () => undefined;
const logger = { debug: silent, info: silent, warn: silent, error: silent };

async function chain() {
  const [rootKeys, issuingKeys] = await Promise.all([pair(), pair()]);
  const signing = { ...life, signingAlgorithm: algorithm, signingKey: rootKeys.privateKey };
  const extensions = [new BasicConstraintsExtension(true, undefined, true)];
  const root = await X509CertificateGenerator.createSelfSigned({
    ...signing,
    name: 'CN=root',
    keys: rootKeys,
    extensions,
  });
  const issuing = await X509CertificateGenerator.create({
    ...signing,
    subject: 'CN=issuing',
    issuer: 'CN=root',
    publicKey: issuingKeys.publicKey,
    extensions,
  });
  const issue = async (subject: string, usage: string) => {
    const keys = await pair();
    const leaf = await X509CertificateGenerator.create({
      ...signing,
      signingKey: issuingKeys.privateKey,
      subject,
      issuer: 'CN=issuing',
      publicKey: keys.publicKey,
      extensions: [
        new ExtendedKeyUsageExtension([usage]),
        new SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }]),
      ],
    });
    const key = PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
    return { cert: `${leaf.toString('pem')}\n${issuing.toString('pem')}`, leaf: leaf.toString('pem'), key };
  };
  const [server, agent] = await Promise.all([
    issue('CN=principal', ExtendedKeyUsage.serverAuth),
    issue('CN=edge', ExtendedKeyUsage.clientAuth),
  ]);
  return { root: root.toString('pem'), issuing: issuing.toString('pem'), server, agent };
}

let made: Awaited<ReturnType<typeof chain>>;
beforeAll(async () => {
  made = await chain();
});

async function connects(trusted: { agent: string; principal: string }): Promise<string> {
  const server = await serveWire({
    address: '127.0.0.1',
    port: 0,
    tls: { ...made.server, clientCa: trusted.principal, requireClientCertificate: true },
    version: '1',
    principalNamespace: 'argocd',
    tokens: TokenAuthority.fromPem(createSigningKey()),
    authenticate: async () => ({ agent: 'edge' }),
    subscribe: () => ({ event: silent, closed: silent }),
    logger,
  });
  const stop = new AbortController();
  const { promise, resolve } = Promise.withResolvers<string>();
  const done = runWireClient({
    server: `127.0.0.1:${server.port}`,
    tls: () => ({ ca: trusted.agent, ...made.agent }),
    credentials: () => ({ method: 'mtls', credentials: {} }),
    mode: 'managed',
    version: '1',
    agentNamespace: 'argocd',
    onConnected: () => {
      resolve('connected');
      return { event: silent, closed: silent };
    },
    onDisconnected: (error) => resolve(error.message),
    signal: stop.signal,
    backoff: { initialMs: 2_000, maxMs: 2_000 },
    logger,
  });
  const result = await promise;
  stop.abort();
  await done;
  await server.close();
  return result;
}

test.each([
  ['root', 'root'],
  ['issuing', 'root'],
  ['root', 'issuing'],
  ['issuing', 'issuing'],
] as const)(
  'an agent that trusts the %s authority and a principal that trusts the %s one',
  async (agent, principal) => {
    expect(await connects({ agent: made[agent], principal: made[principal] })).toBe('connected');
  },
);

test('a chain is of an authority above or in it, as TLS judges', async () => {
  const { root, issuing, server } = made;
  const other = await chain();
  expect(isIssuedBy(server.cert, root)).toBe(true);
  expect(isIssuedBy(server.cert, issuing)).toBe(true);
  expect(isIssuedBy(server.leaf, issuing)).toBe(true);
  expect(isIssuedBy(server.leaf, root), 'nobody shows the one between').toBe(false);
  expect(isIssuedBy(server.cert, other.root)).toBe(false);
  expect(isIssuedBy(server.leaf + other.issuing + issuing, root), 'with others between').toBe(true);
  expect(isIssuedBy(server.leaf + server.leaf, server.leaf), 'a certificate is no authority of itself').toBe(false);
});
