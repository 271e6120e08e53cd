import { once } from 'node:events';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { effort } from '../../lib/base/testing.ts';
import { configMaps } from '../../lib/kube/index.ts';
import type { KeyCertificate } from '../../lib/pki/index.ts';
import type { Pair } from '../pair/index.ts';
import { Random } from '../random/index.ts';
import type { ProxyClient } from './proxy-client.ts';
import { deployWeb, startProxiedPair } from './shop.ts';

// Whoever has the certificate of one agent tries to reach another one's cluster, or what is nobody's, or to break the proxy.

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const marker = 'a-secret-of-the-other-cluster';
const own = 'what-belongs-to-nobody-here';

let pair: Pair;
let port: number;
let mine: KeyCertificate;
let proxy: ProxyClient;

beforeAll(async () => {
  ({ pair, port, credential: mine, proxy } = await startProxiedPair({ name: 'edge-a' }));
  const other = await pair.addAgent({ name: 'edge-b' });
  const tracked = { 'argocd.argoproj.io/tracking-id': 'web:/ConfigMap:shop/settings' };
  for (const [name, { client }] of [
    ['edge-a', pair.managed],
    ['edge-b', other.cluster],
  ] as const) {
    await deployWeb(pair.hub.client, name, client, name === 'edge-a' ? proxy : undefined);
    const data = name === 'edge-b' ? { marker } : { fine: 'yes' };
    await client.create(configMaps, { metadata: { name: 'settings', namespace: 'shop', annotations: tracked }, data });
    await client.create(configMaps, { metadata: { name: 'private', namespace: 'default' }, data: { own } });
  }
});
afterAll(() => pair?.stop());

const settings = '/api/v1/namespaces/shop/configmaps/settings';

async function open(): Promise<TLSSocket> {
  const socket = connectTls({
    host: '127.0.0.1',
    port,
    ca: pair.authority.certificate,
    cert: mine.certificate,
    key: mine.key,
  });
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  return socket;
}

/** Sends bytes as they are; everything that comes back until the connection ends. */
async function raw(bytes: string | Buffer): Promise<string> {
  const socket = await open().catch((error: NodeJS.ErrnoException) => {
    // A handshake that takes too long on a busy machine is broken off, and shows nothing.
    if (error.code === 'ECONNRESET') {
      return undefined;
    }
    throw error;
  });
  if (socket === undefined) {
    return '';
  }
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  socket.end(bytes);
  // A reset is an end as well.
  if (!socket.closed) {
    await new Promise((resolve) => socket.once('close', resolve));
  }
  return text;
}

async function isWell(): Promise<void> {
  const answer = await proxy.send('GET', settings);
  expect([answer.status, JSON.parse(answer.text).data]).toEqual([200, { fine: 'yes' }]);
}

test.each([
  `${settings}?agentName=edge-b`,
  '/api/v1/namespaces/default/configmaps/private',
  '/api/v1/namespaces/shop/configmaps/../../default/configmaps/private',
  '/api/v1/namespaces/shop/configmaps/..%2f..%2fdefault%2fconfigmaps%2fprivate',
  '/api/v1/namespaces/shop%2f..%2fdefault/configmaps/private',
  '/api/v1/namespaces/default/configmaps/private/../../../shop/configmaps/settings',
  '/api/v1/namespaces/default/configmaps/private%00',
  '/api/v1/namespaces/default/configmaps/private?name=settings&namespace=shop',
  '/api/v1/namespaces/default//configmaps/private',
  '//api/v1/namespaces/default/configmaps/private',
  `${settings}/../private`,
  '/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dprivate',
  '/api/v1/configmaps?limit=500&resourceVersion=0',
  '/api/v1/watch/namespaces/default/configmaps/private',
  // The API server answers the first with the object itself, the others with a watch.
  '/api/v1/namespaces/default/configmaps/private?watch=true',
  '/api/v1/namespaces/default/configmaps?watch=&timeoutSeconds=1',
  '/api/v1/namespaces/default/configmaps?watch=yes&timeoutSeconds=1',
  '/api/v1/watch/configmaps?timeoutSeconds=1',
  'https://edge-b/api/v1/namespaces/shop/configmaps/settings',
])('%s shows nothing that is not an Application of this agent', async (path) => {
  const socket = await raw(`GET ${path} HTTP/1.1\r\nHost: edge-b\r\nConnection: close\r\n\r\n`);
  expect(socket).not.toContain(marker);
  expect(socket).not.toContain(own);
  await isWell();
});

test.each([
  ['two lengths', `POST ${settings} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\nabcd`],
  [
    'length and chunks',
    `POST ${settings} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n`,
  ],
  ['a bare line feed in a header', `GET ${settings} HTTP/1.1\nHost: x\nX: y\rZ: z\n\n`],
  ['an upgrade', `GET ${settings} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`],
  ['a tunnel', 'CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['endless headers', `GET ${settings} HTTP/1.1\r\n${'X: y\r\n'.repeat(50_000)}\r\n`],
  ['no HTTP', Buffer.alloc(100_000, 7)],
  [
    'forged headers',
    `GET ${settings} HTTP/1.1\r\nHost: x\r\nX-Remote-User: edge-b\r\nX-Forwarded-Client-Cert: edge-b\r\nConnection: close\r\n\r\n`,
  ],
])('%s harm nobody', async (_what, bytes) => {
  const answer = await raw(bytes);
  expect(answer).not.toContain(marker);
  await isWell();
});

test('a body that no object needs is refused', async () => {
  const answer = await proxy
    .send('PUT', settings, { body: Buffer.alloc(5 * 1024 * 1024, 'x') })
    // The answer may come while the body is still on its way.
    .catch((error: NodeJS.ErrnoException) => ({ status: error.code }));
  expect([413, 'EPIPE', 'ECONNRESET']).toContain(answer.status);
  await isWell();
});

const spoilt = effort(1_500, 10_000);

test(`${spoilt} spoilt requests, seed ${seed}`, async () => {
  const dice = new Random(seed);
  const random = () => dice.next();
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const methods = ['GET', 'PUT', 'POST', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE', 'get', ''];
  const pieces = [
    'api',
    'apis',
    'v1',
    'namespaces',
    'shop',
    'default',
    'configmaps',
    'settings',
    'private',
    '..',
    '.',
    '',
    '%2f',
    '%2e%2e',
    'exec',
    'log',
    'proxy',
    'apps',
    'version',
    'openapi',
    'v3',
    'watch',
    '\u00fc',
    '%',
    '?',
    '*',
  ];
  const queries = [
    '',
    '?watch=true&timeoutSeconds=1',
    '?limit=-1',
    '?agentName=edge-b',
    '?=&&=',
    '?continue=x',
    '?fieldSelector=%00',
    '?labelSelector=(((',
  ];
  const headers = [
    'Accept: */*',
    'Accept: application/vnd.kubernetes.protobuf',
    'Authorization: Bearer x',
    'Content-Type: x/y',
    'Impersonate-User: admin',
    'Upgrade: websocket',
    'Range: bytes=0-1',
    `X: ${'y'.repeat(2_000)}`,
  ];
  const request = () => {
    const path =
      random() < 0.3 ? settings : `/${Array.from({ length: Math.floor(random() * 8) }, () => pick(pieces)).join('/')}`;
    const body = random() < 0.3 ? pick(['{}', '[]', '{"kind":"ConfigMap"}', '\0', 'x'.repeat(1_000)]) : '';
    const lines = [
      `${pick(methods)} ${path}${pick(queries)} HTTP/1.1`,
      'Host: x',
      pick(headers),
      `Content-Length: ${body.length}`,
      'Connection: close',
    ];
    // What changes something of this agent's own is no attack.
    if (path === settings) {
      lines[0] = `${pick(['GET', 'HEAD', 'OPTIONS'])} ${path}${pick(queries)} HTTP/1.1`;
    }
    const bytes = Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
    if (random() < 0.2) {
      bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    }
    return bytes;
  };
  let next = 0;
  const worker = async () => {
    while (next++ < spoilt) {
      const answer = await raw(request());
      if (answer.includes(marker) || answer.includes(own)) {
        throw new Error(`seed ${seed}: ${answer.slice(0, 500)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));
  await isWell();
  expect(pair.principal.output).not.toMatch(/level=error|"level":"error"/);
}, 300_000);
