import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type ConnectionOptions, connect, createServer, type TLSSocket } from 'node:tls';
import {
  BasicConstraintsExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { remoteAddressOf } from '../base/index.ts';
import { until } from '../base/testing.ts';
import { limitHandshakeBytes, RefusalLog } from './index.ts';

const host = '127.0.0.1';
let own: Chain;
beforeAll(async () => {
  own = await chain({});
});

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

async function serve(trusted = own.root) {
  const lines: string[] = [];
  const secured: TLSSocket[] = [];
  const failed: string[] = [];
  const options = { ...own, ca: trusted, requestCert: true, rejectUnauthorized: false, ALPNProtocols: ['h2'] };
  const server = createServer(options, (socket) => {
    secured.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => socket.write(`${bytes.length} `));
    socket.on('end', () => socket.end());
  });
  server.on('tlsClientError', (_error, socket) => {
    failed.push(remoteAddressOf(socket));
    socket.destroy();
  });
  limitHandshakeBytes(server, new RefusalLog('tests', { warn: (_, line) => lines.push(line) }));
  server.listen(0, host);
  await once(server, 'listening');
  stops.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  const client = (more: ConnectionOptions) => {
    const socket = Object.assign(connect({ port, host, rejectUnauthorized: false, ...more }), {
      hasEnded: false,
      received: '',
    });
    stops.push(() => socket.destroy());
    socket.on('error', () => undefined);
    socket.on('close', () => {
      socket.hasEnded = true;
    });
    socket.on('data', (bytes) => {
      socket.received += bytes;
    });
    return socket;
  };
  return { lines, secured, failed, client };
}

interface Chain {
  readonly cert: string;
  readonly key: string;
  readonly root: string;
}

/** A leaf with so many names, behind this many authorities of its own. */
async function chain({ names = 0, authorities = 0, rsaBits = 0 }): Promise<Chain> {
  const algorithm =
    rsaBits === 0
      ? { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
      : {
          name: 'RSASSA-PKCS1-v1_5',
          modulusLength: rsaBits,
          publicExponent: new Uint8Array([1, 0, 1]),
          hash: 'SHA-256',
        };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificates: string[] = [];
  for (let depth = authorities; depth >= 0; depth--) {
    const certificate = await X509CertificateGenerator.create({
      subject: `CN=${depth}`,
      issuer: `CN=${Math.min(depth + 1, authorities)}`,
      publicKey: keys.publicKey,
      signingKey: keys.privateKey,
      signingAlgorithm: algorithm,
      notBefore: new Date(Date.now() - 1e8),
      notAfter: new Date(Date.now() + 1e8),
      extensions:
        depth === 0
          ? [
              new SubjectAlternativeNameExtension(
                Array.from({ length: names }, (_, index) => ({ type: 'dns' as const, value: `name-${index}.example` })),
              ),
            ]
          : [new BasicConstraintsExtension(true, undefined, true)],
    });
    certificates.unshift(certificate.toString('pem'));
  }
  return {
    // Clients leave the root out.
    cert: certificates.slice(0, Math.max(1, authorities)).join('\n'),
    key: PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY'),
    root: certificates.at(-1) ?? '',
  };
}

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a stranger with a large certificate is cut off, with %s',
  async (version) => {
    const { client, secured, lines } = await serve();
    const stranger = client({ ...(await chain({ names: 2_000 })), maxVersion: version });
    await until(() => stranger.hasEnded);
    expect(secured).toEqual([]);
    expect(lines).toEqual(['The server for tests ends a connection: its handshake is too large']);
  },
);

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a leaf of RSA 4096 with two authorities and a post-quantum key share is taken, with %s',
  async (version) => {
    const { root, ...shown } = await chain({ names: 20, authorities: 3, rsaBits: 4096 });
    const { client, secured, lines } = await serve(root);
    const agent = client({ ...shown, maxVersion: version, ecdhCurve: 'X25519MLKEM768:X25519:P-256' });
    await until(() => secured.length === 1);
    expect([secured[0]?.authorized, secured[0]?.getPeerX509Certificate()?.subject, lines]).toEqual([true, 'CN=0', []]);
    expect(remoteAddressOf(secured[0] as TLSSocket)).toBe(`${host}:${agent.localPort}`);
  },
);

test('what comes at once behind the handshake may be of any size, and comes in order', async () => {
  const { client, secured, lines } = await serve();
  const agent = client(await chain({ authorities: 1 }));
  agent.write(Buffer.alloc(1_000_000));
  const total = () =>
    agent.received
      .trim()
      .split(' ')
      .map(Number)
      .reduce((sum, one) => sum + one, 0);
  await until(() => expect(total()).toBe(1_000_000));
  expect([secured.length, lines]).toEqual([1, []]);
  agent.end();
  await until(() => agent.hasEnded);
});

test('nobody gets a second handshake', async () => {
  const { client, secured } = await serve();
  const stranger = client({ maxVersion: 'TLSv1.2' });
  await once(stranger, 'secureConnect');
  expect(secured).toHaveLength(1);
  stranger.renegotiate({ rejectUnauthorized: false }, () => undefined);
  await until(() => stranger.hasEnded);
});

test('a failed handshake has the address of its client', async () => {
  const { client, failed } = await serve();
  const other = client({ ALPNProtocols: ['other'] });
  await once(other, 'connect');
  const address = `${host}:${other.localPort}`;
  await until(() => expect(failed).toEqual([address]));
});

test('a connection that its client ends has ended here, and the other way round', async () => {
  const { client, secured } = await serve();
  const leaving = client({});
  await until(() => secured.length === 1);
  leaving.destroy();
  await until(() => secured[0]?.destroyed === true);
  const staying = client({});
  await until(() => secured.length === 2);
  secured[1]?.destroy();
  await until(() => staying.hasEnded);
});
