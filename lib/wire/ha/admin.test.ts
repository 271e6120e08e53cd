import { X509Certificate } from 'node:crypto';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { noLog } from '../../../e2e/peer/index.ts';
import { HAStatusResponse } from '../../../proto/gen/haadminapi/haadmin.ts';
import { type ClientInfo, fingerprintOf, subjectOf } from '../../auth/index.ts';
import { until } from '../../base/testing.ts';
import { OpenConnections } from '../../credentials/index.ts';
import type { ClientTls } from '../index.ts';
import { createTestCa, type TestCa, type TestCertificate } from '../testing/certificates.ts';
import { haAdminClient } from './admin-client.ts';
import { serveHaAdmin } from './admin-server.ts';

// The administration of a pair over TLS: whose call is served, and for how long.

let [ca, otherCa]: TestCa[] = [];
let [principal, operator, stranger]: TestCertificate[] = [];
beforeAll(async () => {
  [ca, otherCa] = await Promise.all([createTestCa('fleet CA'), createTestCa('other CA')]);
  [principal, operator, stranger] = await Promise.all([
    ca.issue({ subject: 'CN=principal', names: ['127.0.0.1'], usage: 'server' }),
    ca.issue({ subject: 'CN=ha-admin' }),
    otherCa.issue({ subject: 'CN=ha-admin' }),
  ]);
});

const blocked = new Set<string>();
let connections: OpenConnections;
let server: Awaited<ReturnType<typeof serveHaAdmin>>;
let asked: string[];
/** Resolves promotions. */
let promoted: PromiseWithResolvers<string>;
let authorize: (peer: ClientInfo) => string;

const serverTls = (clientCa: string) => ({ ...(principal as TestCertificate), clientCa });
beforeEach(async () => {
  blocked.clear();
  asked = [];
  promoted = Promise.withResolvers();
  authorize = ({ certificate }) => subjectOf(certificate as X509Certificate);
  connections = new OpenConnections({ isBlocked: (fingerprint) => blocked.has(fingerprint), logger: noLog });
  server = await serveHaAdmin({
    address: '127.0.0.1',
    port: 0,
    tls: serverTls((ca as TestCa).cert),
    connections,
    authorize: (peer) => {
      asked.push(authorize(peer));
      return asked.at(-1) ?? '';
    },
    service: {
      status: () => HAStatusResponse.fromPartial({ state: 'active' }),
      promote: () => promoted.promise,
      demote: async () => 'replicating',
    },
    logger: noLog,
  });
});
afterEach(() => server?.close());

const admin = (tls: ClientTls | 'plaintext') =>
  haAdminClient({ address: `127.0.0.1:${server.port}`, tls, timeoutMs: 5_000 });
const as = (certificate: TestCertificate | undefined) => admin({ ...certificate, ca: (ca as TestCa).cert });

test('a client whose certificate holds is asked who it is, and served', async () => {
  promoted.resolve('active');
  expect(await as(operator).status()).toMatchObject({ state: 'active' });
  expect(await as(operator).promote(true)).toBe('active');
  expect(await as(operator).demote()).toBe('replicating');
  expect(asked).toEqual(['CN=ha-admin', 'CN=ha-admin', 'CN=ha-admin']);
});

test.each([
  ['no certificate', () => undefined, 'the client presented no certificate'],
  ['one of another authority', () => stranger, 'which is not a CA that this principal trusts'],
])('a client with %s is told so, and nobody is asked', async (_, certificate, reason) => {
  await expect(as(certificate()).status()).rejects.toMatchObject({
    code: 16,
    details: expect.stringMatching(new RegExp(`^client certificate rejected: .*${reason}`)),
  });
  expect(asked).toEqual([]);
});

test('a client without TLS loses its connection', async () => {
  await expect(admin('plaintext').status()).rejects.toMatchObject({ code: 14, isConnectionLoss: true });
  expect(asked).toEqual([]);
});

test('a client does not take another server for the principal', async () => {
  await expect(admin({ ...operator, ca: (otherCa as TestCa).cert }).demote()).rejects.toMatchObject({
    code: 14,
    details: expect.stringContaining('is not issued by a CA that we trust'),
  });
});

test('a blocked certificate ends what its client has open, and is refused from then on', async () => {
  const order = as(operator).promote(false);
  await until(() => asked.length === 1);
  blocked.add(fingerprintOf(new X509Certificate((operator as TestCertificate).cert)));
  connections.blocklistChanged();
  await expect(order).rejects.toMatchObject({
    code: 14,
    details: expect.stringContaining('the client certificate is on the blocklist'),
  });
  await expect(as(operator).status()).rejects.toMatchObject({
    code: 16,
    details: 'client certificate rejected: the client certificate is on the blocklist',
  });
  expect(asked).toHaveLength(1);
});

test('another authority ends what was opened with the former one', async () => {
  const order = as(operator).promote(false);
  await until(() => asked.length === 1);
  server.setTls(serverTls((otherCa as TestCa).cert));
  await expect(order).rejects.toMatchObject({ code: 14, details: expect.stringContaining('not trusted any more') });
  expect(await as(stranger).demote()).toBe('replicating');
});
