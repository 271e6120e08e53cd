import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { playAgent, playPrincipal } from '../../../../e2e/peer/index.ts';
import { Random } from '../../../../e2e/random/index.ts';
import { createLogger } from '../../../ops/index.ts';
import type { WireServer } from '../../index.ts';
import { createTestCa, type TestCa, type TestCertificate } from '../../testing/certificates.ts';

// Arbitrary bytes of unauthenticated clients do no harm.

const seed = Math.floor(Math.random() * 2 ** 31);

let ca: TestCa;
let material: TestCertificate;
beforeAll(async () => {
  ca = await createTestCa();
  material = await ca.issue({ subject: 'CN=principal', names: ['127.0.0.1'], usage: 'server' });
});

let server: WireServer;
afterEach(() => server.close());

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
const upgrade = Buffer.from(
  'GET /eventstreamapi.EventStream/Subscribe HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
    'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: grpc-ws\r\n\r\n',
);
const post = Buffer.from(
  'POST /authapi.Authentication/Authenticate HTTP/1.1\r\nHost: x\r\nContent-Type: application/grpc\r\n' +
    'Transfer-Encoding: chunked\r\n\r\n5\r\n\0\0\0\0\0\r\n0\r\n\r\n',
);
const starts = [Buffer.alloc(0), preface, Buffer.concat([preface, settings]), upgrade, post];

/** A start that a client could have made, cut or spoilt, and noise. */
function visit(random: Random): Buffer[] {
  const start = random.pick(starts);
  const spoilt = Buffer.from(random.chance(0.5) ? start : start.subarray(0, random.integer(0, start.length)));
  if (random.chance(0.3) && spoilt.length > 0) {
    spoilt[random.integer(0, spoilt.length - 1)] = random.integer(0, 255);
  }
  const noise = Buffer.from(Array.from({ length: random.integer(0, 200) }, () => random.integer(0, 255)));
  const cut = random.integer(0, spoilt.length);
  return [spoilt.subarray(0, cut), spoilt.subarray(cut), noise];
}

test.each(['plaintext', 'TLS'])(`random bytes of unauthenticated clients, ${seed}: %s`, async (kind) => {
  const random = new Random(seed);
  const tls = kind === 'TLS' ? material : undefined;
  ({ server } = await playPrincipal({
    tls: tls ?? 'plaintext',
    webSocket: true,
    timeouts: { requestMs: 200, idleMs: 200 },
  }));
  const open = (): Socket => {
    const target = { host: '127.0.0.1', port: server.port };
    if (tls === undefined || random.chance(0.2)) {
      return connectTcp(target);
    }
    return connectTls({ ...target, ca: ca.cert, ALPNProtocols: random.chance(0.5) ? ['h2'] : ['http/1.1'] });
  };
  const visits = Array.from({ length: 200 }, async () => {
    const socket = open();
    socket.on('error', () => undefined);
    socket.resume();
    const closed = once(socket, 'close').catch(() => undefined);
    for (const chunk of visit(random)) {
      if (socket.writable) {
        socket.write(chunk);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    // Some leave at once, the others wait until they are sent away.
    if (random.chance(0.3)) {
      socket.destroy();
    }
    await closed;
  });
  await Promise.all(visits);
  const agent = playAgent(server.port, tls === undefined ? {} : { tls: () => ({ ca: ca.cert }) });
  await agent.calls;
  expect(server.connectedAgents()).toEqual(['one']);
  await agent.stop();
});

test.each([
  ['nothing', Buffer.alloc(0)],
  ['a part of a greeting', Buffer.from([0x16, 0x03, 0x01, 0x01, 0x00, 0x01])],
])('a TLS client that sends %s is refused', async (_what, bytes) => {
  ({ server } = await playPrincipal({ tls: material, timeouts: { requestMs: 200, idleMs: 200 } }));
  const socket = connectTcp({ host: '127.0.0.1', port: server.port });
  socket.on('error', () => undefined);
  socket.resume();
  const closed = once(socket, 'close');
  if (bytes.length > 0) {
    socket.write(bytes);
  }
  await closed;
});

test('the HTTP version is detected however the first bytes are split', async () => {
  ({ server } = await playPrincipal({ webSocket: true }));
  const trickle = (bytes: Buffer) =>
    new Promise<string>((resolve) => {
      const socket = connectTcp({ host: '127.0.0.1', port: server.port, noDelay: true }, async () => {
        for (const byte of bytes) {
          socket.write(Buffer.from([byte]));
          await new Promise((next) => setImmediate(next));
        }
      });
      socket.once('data', (chunk) => {
        resolve(chunk.toString('latin1'));
        socket.destroy();
      });
    });
  // The answer of HTTP/2 begins with its settings: a frame of type 4 on stream 0.
  expect((await trickle(Buffer.concat([preface, settings]))).slice(3, 9)).toBe('\x04\0\0\0\0\0');
  expect(await trickle(post)).toMatch(/^HTTP\/1.1 200 /);
  expect(await trickle(Buffer.from('PRINT / HTTP/1.1\r\n\r\n'))).toMatch(/^HTTP\/1.1 400 /);
  const session = connectHttp2(`http://127.0.0.1:${server.port}`);
  await once(session, 'remoteSettings');
  session.destroy();
});

test.each([
  [
    'plaintext',
    'the client speaks plaintext on a TLS port',
    (localAddress: string, port: number) => {
      return connectTcp({ host: '127.0.0.1', port, localAddress }, function (this: Socket) {
        this.write('GET / HTTP/1.1\r\n\r\n');
      });
    },
  ],
  [
    'HTTP/1.1',
    'the client does not speak HTTP/2 (ALPN h2)',
    (localAddress: string, port: number) => {
      const to = { host: '127.0.0.1', port, localAddress, ca: ca.cert };
      return connectTls(to, function (this: Socket) {
        this.resume();
      });
    },
  ],
] as const)('clients of many networks that speak %s are one line of the log', async (_, why, visitFrom) => {
  const lines: string[] = [];
  const logger = createLogger({ format: 'json', destination: { write: (line) => void lines.push(line) } });
  ({ server } = await playPrincipal({ tls: material, logger }));
  const come = async (count: number) => {
    const visits = Array.from({ length: count }, async (_, index) => {
      const socket = visitFrom(`127.0.1.${index + 1}`, server.port);
      socket.on('error', () => undefined);
      await once(socket, 'close').catch(() => undefined);
    });
    await Promise.all(visits);
  };
  const told = () => lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg.endsWith(why));
  await come(50);
  expect(told()).toHaveLength(1);
  expect(told()[0]).toMatchObject({ level: 'warning', refused: 1, from: expect.stringMatching(/^127\.0\.1\./) });
});
