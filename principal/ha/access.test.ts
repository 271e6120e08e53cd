import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { type ClientInfo, fingerprintOf, GoExpression, mtlsMethod } from '../../lib/auth/index.ts';
import { createAuthority, issueCertificate } from '../../lib/pki/index.ts';
import type { GrpcError } from '../../lib/wire/index.ts';
import { type ReplicationAccessOptions, replicationAccess } from './access.ts';

const nothing = () => undefined;
let certificates: Record<'agent' | 'peer' | 'elsewhere' | 'client' | 'other', X509Certificate>;
beforeAll(async () => {
  const authority = await createAuthority({ commonName: 'ca' });
  const issue = async (commonName: string, hosts: string[], usages: ('server' | 'client')[]) =>
    new X509Certificate((await issueCertificate({ authority, commonName, hosts, usages })).certificate);
  certificates = {
    agent: await issue('cluster1', [], ['client']),
    peer: await issue('argocd-agent-principal', ['hub2.example.com', '10.0.0.2'], ['server', 'client']),
    elsewhere: await issue('argocd-agent-principal', ['hub3.example.com'], ['server', 'client']),
    client: await issue('hub2', ['hub2.example.com'], ['client']),
    other: await issue('hub2', [], ['server', 'client']),
  };
});

const peerOf = (certificate: X509Certificate | undefined): ClientInfo => ({
  address: '127.0.0.1:1',
  encrypted: true,
  ...(certificate && { certificate }),
  header: () => undefined,
});
const check = (certificate: X509Certificate | undefined, change: Partial<ReplicationAccessOptions> = {}) => {
  try {
    return replicationAccess({
      method: mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+)') }),
      isBlocked: () => false,
      isAgent: (name) => name === 'cluster1',
      allowed: [],
      peerHost: 'hub2.example.com',
      logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
      ...change,
    })(peerOf(certificate));
  } catch (error) {
    return (error as GrpcError).code;
  }
};
const [denied, unauthenticated] = [7, 16];

test('without names, only the other principal may follow, by its server certificate', () => {
  expect(check(certificates.peer)).toBe('argocd-agent-principal');
  expect(check(certificates.peer, { peerHost: '10.0.0.2' })).toBe('argocd-agent-principal');
  expect(check(certificates.elsewhere)).toBe(denied);
  expect(check(certificates.client), 'not a server').toBe(denied);
  expect(check(certificates.peer, { peerHost: undefined })).toBe(denied);
});

test('an agent never may, whatever the flags say', () => {
  expect(check(certificates.agent)).toBe(denied);
  expect(check(certificates.agent, { allowed: ['cluster1'] })).toBe(denied);
  expect(check(certificates.agent, { isAgent: () => false }), 'not yet mapped').toBe(denied);
});

test('names in the list may, and only they', () => {
  expect(check(certificates.other, { allowed: ['hub2'] })).toBe('hub2');
  expect(check(certificates.peer, { allowed: ['hub2'] })).toBe(denied);
  expect(check(certificates.client, { allowed: ['hub2'] }), 'of a former agent, say').toBe(denied);
});

test('a certificate is needed that holds and is not blocked', () => {
  expect(check(undefined)).toBe(unauthenticated);
  const blocked = fingerprintOf(certificates.peer);
  expect(check(certificates.peer, { isBlocked: (one) => one === blocked })).toBe(unauthenticated);
});
