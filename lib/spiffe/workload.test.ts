import { createPrivateKey } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { X509SVIDResponse } from '../../proto/gen/workloadapi/workload.ts';
import { until } from '../base/testing.ts';
import { createAuthority, issueCertificate } from '../pki/index.ts';
import { type GivenSvid, startWorkloadEndpoint } from './testing.ts';
import { followWorkload, type WorkloadIdentity } from './workload.ts';
import { endpointProblem } from './workload-call.ts';

let path: string;
beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'spiffe-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  path = join(folder, 'api.sock');
});

function follow(endpoint: string) {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const [offered, reasons]: [WorkloadIdentity[], string[]] = [[], []];
  const ignore = () => undefined;
  const warn = (fields: { reason?: unknown }) => void reasons.push(String(fields.reason));
  const logger = { debug: ignore, info: ignore, warn, error: ignore };
  const ended = followWorkload({ endpoint, offer: (one) => void offered.push(one), logger, signal: stop.signal });
  return { offered, reasons, stop, ended };
}

async function start() {
  const endpoint = await startWorkloadEndpoint(path);
  onTestFinished(() => endpoint.stop());
  return endpoint;
}

async function svid(name: string): Promise<GivenSvid> {
  const [authority, former] = await Promise.all(['now', 'before'].map((commonName) => createAuthority({ commonName })));
  if (authority === undefined || former === undefined) {
    throw new Error('no authority');
  }
  const own = await issueCertificate({ authority, commonName: name, usages: ['client'] });
  return { id: `spiffe://x/${name}`, ...own, bundle: [authority.certificate, former.certificate] };
}

const squeezed = (text: string) => text.replace(/\s/g, '');

test('gives the identity with the authorities, and every later one', async () => {
  const endpoint = await start();
  const [first, second] = await Promise.all([svid('one'), svid('two')]);
  endpoint.give(first);
  const { offered, stop, ended } = follow(endpoint.address);
  await until('the first identity', () => offered.length === 1);
  expect(squeezed(offered[0]?.certificate ?? '')).toBe(squeezed(first.certificate));
  expect(createPrivateKey(offered[0]?.key ?? '').equals(createPrivateKey(first.key))).toBe(true);
  expect(squeezed(offered[0]?.bundles.x ?? '')).toBe(squeezed(first.bundle.join('')));
  endpoint.give(second);
  await until('the second identity', () => offered.length === 2);
  expect(squeezed(offered[1]?.certificate ?? '')).toBe(squeezed(second.certificate));
  expect(endpoint.streams).toBe(1);
  stop.abort();
  await ended;
});

test('asks again: without an endpoint, without an identity, and when the stream ends', async () => {
  const { offered, reasons } = follow(`unix://${path}`);
  await until('it says that there is nobody', () => reasons.length > 0);
  expect(reasons[0]).toContain('ENOENT');
  const endpoint = await start();
  await until('it says that there is no identity', () =>
    reasons.some((one) => one.startsWith('no identity is registered')),
  );
  endpoint.give(await svid('one'));
  await until('it has an identity', () => offered.length === 1);
  endpoint.drop();
  await until('it has asked again', () => offered.length === 2);
});

test.each([
  ['an answer that is too large', Buffer.from([0, 0x7f, 0xff, 0xff, 0xff])],
  ['a compressed one', Buffer.from([1, 0, 0, 0, 0])],
])('%s ends the stream', async (_, bytes) => {
  const endpoint = await startRawServer(bytes);
  const { reasons, offered } = follow(endpoint);
  await until('it says so', () => reasons.some((one) => one.includes('is compressed or too large')));
  expect(offered).toEqual([]);
});

test('an identity that cannot be read is not offered', async () => {
  const bytes = Buffer.from('x');
  const one = { spiffeId: 'spiffe://x/one', x509Svid: bytes, x509SvidKey: bytes, bundle: bytes };
  const message = X509SVIDResponse.encode({ svids: [one], federatedBundles: {} }).finish();
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  const { reasons, offered } = follow(await startRawServer(Buffer.concat([head, message])));
  await until('it says so', () => reasons.some((one) => one.startsWith('its identity cannot be read')));
  expect(offered).toEqual([]);
});

/** A server of HTTP/2 that answers any stream with these bytes. */
async function startRawServer(bytes: Buffer): Promise<string> {
  const { createServer: createHttp2Server } = await import('node:http2');
  const server = createHttp2Server();
  server.on('stream', (stream) => {
    stream.on('error', () => undefined);
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    stream.write(bytes);
  });
  server.on('sessionError', () => undefined);
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
  return `unix://${path}`;
}

test('an endpoint that speaks something else is named, and tried again', async () => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    for (const socket of sockets) {
      socket.destroy();
    }
    server.close();
  });
  const { reasons } = follow(`unix://${path}`);
  await until('it says so', () => reasons.length > 0);
});

test.each(['unix:///run/spire/api.sock', 'unix:/run/spire/api.sock', 'tcp://127.0.0.1:8000', 'tcp://[::1]:8000'])(
  'the address %s is one',
  (address) => expect(endpointProblem(address)).toBeUndefined(),
);

test.each([
  '/run/api.sock',
  'unix://host/api.sock',
  'unix://',
  'tcp://localhost:80',
  'tcp://127.0.0.1',
  'http://x',
  'tcp://1.2.3.4:0',
])('the address %j is none', (address) =>
  expect(endpointProblem(address)).toContain('must be unix:///path/of/the/socket or tcp://<IP address>:<port>'),
);
