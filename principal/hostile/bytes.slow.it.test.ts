import { constants } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type AttackCall, eventBytes, evil, frame, mutated, other, Stage } from '../../e2e/hostile/index.ts';
import { namespace } from '../../e2e/pair/index.ts';
import { Random } from '../../e2e/random/index.ts';
import { eventLines, messageBytes, recordingNames } from '../../e2e/recordings/index.ts';
import { effort, until } from '../../lib/base/testing.ts';
import { agentSource, eventTypes, heartbeatEvent, messageEvent, objectEvent, targets } from '../../lib/wire/index.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open(['--enable-websocket']);
});
afterAll(() => stage?.close());
afterEach(() => stage.expectPeace());

const subscribePath = '/eventstreamapi.EventStream/Subscribe';
const mebi = 1024 * 1024;

describe('messages', () => {
  test.each([
    ['a bomb of zeros', frame(gzipSync(Buffer.alloc(199 * mebi)), 1)],
    ['a bomb over the limit', frame(gzipSync(Buffer.alloc(300 * mebi)), 1)],
    ['a bomb in a bomb', frame(gzipSync(gzipSync(Buffer.alloc(100 * mebi))), 1)],
    ['no gzip', frame(Buffer.from('no gzip at all'), 1)],
    ['half a gzip', frame(gzipSync(Buffer.alloc(mebi)).subarray(0, 500), 1)],
  ])('compressed: %s', async (_, bytes) => {
    for (let round = 0; round < 3; round++) {
      const call = await stage.agent({ headers: { 'grpc-encoding': 'gzip' } });
      await call.write(bytes);
      await Promise.race([call.end, call.settle()]);
    }
  });

  test.each([
    ['an Application', targets.application, eventTypes.statusUpdate],
    ['an answer of the cache', targets.redis, eventTypes.redisResponse],
  ])('made to become much more when they are parsed: %s', async (_, target, type) => {
    const call = await stage.agent();
    const event = (bytes: number) => {
      const data = Buffer.alloc(bytes, '{},');
      data.write(`{"metadata":{"name":"own"},"status":{"x":[[{},`, 0);
      return { ...messageEvent(target, type, {}, { source: agentSource }), data };
    };
    await call.send(event(15 * mebi));
    await call.settle();
    expect(call.isOver).toBe(false);
    await call.send(event(199 * mebi));
    expect((await call.end).code).toBe(14);
  });

  test('that are announced and do not come', async () => {
    const calls: AttackCall[] = [];
    for (let count = 0; count < 20; count++) {
      const call = await stage.agent();
      await call.write(frame(Buffer.from('x'), 0, count % 2 === 0 ? 200 * mebi : 5));
      calls.push(call);
    }
    const lying = await stage.agent();
    await lying.write(frame(Buffer.from('x'), 0, 2 ** 32 - 1));
    expect((await lying.end).code).toBe(14);
    const strange = await stage.agent();
    await strange.write(frame(Buffer.from('x'), 255));
    expect((await strange.end).code).toBe(14);
  });
});

describe('HTTP/2', () => {
  test('odd requests are answered or cut off', async () => {
    const attacker = await stage.attacker();
    const { accessToken } = await attacker.login();
    const paths = [
      '',
      '/',
      '//',
      '*',
      '/x',
      `/${'x'.repeat(15_000)}`,
      '/%00',
      `${subscribePath}/`,
      subscribePath.toLowerCase(),
    ];
    for (const path of paths) {
      const call = attacker.call(path, { authorization: accessToken });
      call.stream.end(frame(Buffer.alloc(0)));
      await call.end;
    }
    for (const headers of [
      { 'content-type': 'text/html' },
      { 'content-type': 'application/grpc-web' },
      { 'grpc-encoding': 'brotli' },
      { 'grpc-encoding': 'x'.repeat(10_000) },
      { 'grpc-timeout': '1n' },
      { authorization: 'x'.repeat(30_000) },
      { ':method': 'CONNECT' },
      { ':method': 'GET' },
      Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x-${index}`, 'y'.repeat(50)])),
      Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`x-${index}`, 'y'.repeat(9_000)])),
    ]) {
      const one = await stage.attacker();
      try {
        const call = one.call(subscribePath, { authorization: accessToken, ...headers });
        call.stream.end();
        await Promise.race([call.end, new Promise((resolve) => one.session.once('close', resolve))]);
      } catch {
        // Node itself refuses to send it.
      }
    }
  });

  test('streams that are opened and reset without end', async () => {
    const attacker = await stage.attacker();
    const { accessToken } = await attacker.login();
    for (let count = 0; count < 3_000 && !attacker.session.closed; count++) {
      const call = attacker.subscribe(accessToken);
      call.stream.close(constants.NGHTTP2_CANCEL);
      if (count % 100 === 0) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  });

  test('streams of an agent that replace each other', async () => {
    for (let count = 0; count < 100; count++) {
      const attacker = await stage.attacker();
      const { accessToken } = await attacker.login();
      for (let again = 0; again < 5; again++) {
        attacker.subscribe(accessToken);
      }
    }
  });

  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  const frameOf = (type: number, flags: number, stream: number, payload: Buffer) => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head.writeUInt8(type, 3);
    head.writeUInt8(flags, 4);
    head.writeUInt32BE(stream, 5);
    return Buffer.concat([head, payload]);
  };
  const settings = frameOf(4, 0, 0, Buffer.alloc(0));
  const open = (protocol: 'h2' | 'http/1.1') =>
    new Promise<TLSSocket>((resolve, reject) => {
      const { certificate: cert, key } = stage.certificateOf(evil);
      const ca = stage.hub.authority.certificate;
      const socket = connectTls({
        port: stage.hub.principalPort,
        host: '127.0.0.1',
        ca,
        cert,
        key,
        ALPNProtocols: [protocol],
      });
      socket.once('secureConnect', () => resolve(socket));
      socket.on('error', reject);
      socket.resume();
    });
  const flood = async (chunk: Buffer, most: number, protocol: 'h2' | 'http/1.1' = 'h2', first?: Buffer) => {
    const socket = await open(protocol);
    socket.on('error', () => socket.destroy());
    socket.write(first ?? Buffer.concat([preface, settings]));
    for (let sent = 0; sent < most && socket.writable; sent += chunk.length) {
      if (!socket.write(chunk)) {
        await new Promise<void>((resolve) => {
          socket.once('drain', resolve);
          socket.once('close', () => resolve());
        });
      }
    }
    socket.destroy();
  };
  // A header block that is never ended; 0x40: a new literal name of one byte, with a value of 100.
  const literal = Buffer.concat([Buffer.from([0x40, 1, 0x78, 100]), Buffer.alloc(100, 'a')]);
  const block = Buffer.concat(Array.from({ length: 150 }, () => literal));
  const many = (one: Buffer, count: number) => Buffer.concat(Array.from({ length: count }, () => one));

  test.each([
    ['a header block without end', Buffer.concat([frameOf(1, 0, 1, block), many(frameOf(9, 0, 1, block), 20)])],
    [
      'empty continuations',
      Buffer.concat([frameOf(1, 0, 1, Buffer.alloc(0)), many(frameOf(9, 0, 1, Buffer.alloc(0)), 5_000)]),
    ],
    ['pings', many(frameOf(6, 0, 0, Buffer.alloc(8)), 5_000)],
    ['settings', many(settings, 5_000)],
    ['window updates of nothing', many(frameOf(8, 0, 0, Buffer.alloc(4)), 5_000)],
    ['priorities', many(frameOf(2, 0, 3, Buffer.alloc(5)), 5_000)],
    ['unknown frames', many(frameOf(0xfa, 0xff, 0, Buffer.alloc(1_000)), 100)],
    ['data for no stream', many(frameOf(0, 0, 7, Buffer.alloc(10_000)), 100)],
    ['a frame of 16 MiB', Buffer.concat([frameOf(0, 0, 1, Buffer.alloc(0)), Buffer.alloc(16 * mebi)])],
    ['another protocol', Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(1_000))],
  ])('raw frames: %s', async (_, chunk) => {
    await flood(chunk, 8 * mebi);
  });

  const upgrade =
    `GET ${subscribePath} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n` +
    'sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-protocol: grpc-ws\r\n\r\n';
  const post = `POST ${subscribePath} HTTP/1.1\r\nhost: x\r\ncontent-type: application/grpc\r\n`;
  test.each([
    ['nothing but a header', '', 'a'],
    ['headers without end', `${post}`, `x-${'y'.repeat(1_000)}: z\r\n`],
    ['requests in a row', '', `${post}content-length: 0\r\n\r\n`],
    ['a body that never ends', `${post}transfer-encoding: chunked\r\n\r\n`, `1000\r\n${'a'.repeat(4_096)}\r\n`],
    ['a chunk of absurd size', `${post}transfer-encoding: chunked\r\n\r\n`, 'ffffffffffffffff\r\n'],
    ['two lengths', `${post}content-length: 5\r\ncontent-length: 7\r\ntransfer-encoding: chunked\r\n\r\n`, 'hello'],
    ['a WebSocket of nonsense', upgrade, 'nonsense'],
    ['WebSocket pings', upgrade, '\u0089\u0080aaaa'],
    ['fragments without end', upgrade, '\u0002\u0081aaaab'],
    ['a WebSocket frame of absurd size', upgrade, '\u0082\u00ff\u007f\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ffaaaa'],
    ['text for bytes', upgrade, '\u0081\u0085aaaa\u0009\u0004\r\r\u000e'],
  ])('raw HTTP/1.1: %s', async (_, first, chunk) => {
    const bytes = Buffer.from(chunk.repeat(Math.ceil(20_000 / chunk.length)), 'latin1');
    await flood(bytes, mebi / 4, 'http/1.1', Buffer.from(first, 'latin1'));
  });

  test('connections that send nothing, or end in the middle of the handshake', async () => {
    const sockets = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const socket = connectTcp(stage.hub.principalPort, '127.0.0.1');
        socket.on('error', () => socket.destroy());
        await new Promise((resolve) => socket.once('connect', resolve));
        if (index % 2 === 0) {
          socket.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]));
        }
        return socket;
      }),
    );
    await stage.exchange();
    for (const socket of sockets) {
      socket.destroy();
    }
  });
});

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

const spoilt = effort(2_000, 10_000);

test(`${spoilt} spoilt messages (SEED=${seed})`, async () => {
  const random = new Random(seed);
  const messages = [...recorded(), ...made()];
  expect(messages.length).toBeGreaterThan(10);
  const refused = await stage.metric('argocd_principal_refused_events_total');
  let call = await stage.agent();
  const send = async (many: number) => {
    for (let count = 0; count < many; count++) {
      if (call.isOver) {
        call = await stage.agent();
      }
      const bytes = mutated(messages, words, random);
      const lie = random.chance(0.005) ? random.integer(0, bytes.length + 10) : bytes.length;
      await call.write(frame(bytes, random.chance(0.002) ? random.integer(0, 255) : 0, lie));
    }
    await Promise.race([call.end, call.settle()]);
  };
  await send(spoilt);
  // What follows a lie on the same call is lost: how many messages are read at all is up to the machine.
  while ((await stage.metric('argocd_principal_refused_events_total')) <= refused + spoilt / 10) {
    await send(spoilt / 10);
  }
});

/** The events that a Go agent sent, but for the largest. */
function recorded(): Uint8Array[] {
  return recordingNames()
    .flatMap(eventLines)
    .filter(({ dir }) => dir === 'agent->principal')
    .map(messageBytes)
    .filter(({ length }) => length <= 15_000);
}

const words = [
  ...Object.values(targets),
  ...Object.values(eventTypes),
  ...['own', 'guarded', 'witness', evil, other, namespace, 'default', '', '__proto__', 'constructor', 'GET'],
  ...['Application', 'AppProject', 'Repository', 'GPGKey', 'metadata', 'spec', 'status', 'operation', 'annotations'],
  ...['argocd.argoproj.io/source-uid', 'argocd.argoproj.io/namespace-remapped', 'finalizers', 'deletionTimestamp'],
];

/** The bytes that a regular agent would send. */
function made(): Uint8Array[] {
  const origin = { source: agentSource };
  const object = {
    metadata: {
      name: 'own',
      namespace: evil,
      uid: 'u',
      resourceVersion: '1',
      annotations: {},
      labels: {},
      finalizers: ['a'],
    },
    spec: { project: 'default', destination: { name: evil } },
    status: { health: { status: 'Healthy' }, operationState: { phase: 'Running' }, conditions: [] },
    operation: { sync: {} },
  };
  const told = { kind: 'Application', name: 'guarded', namespace, uid: 'u', checksum: 'YQ==', digest: 'YQ==' };
  const types = ['statusUpdate', 'delete', 'create', 'specUpdate', 'setOperation'] as const;
  return [
    heartbeatEvent(origin),
    ...types.map((type) => objectEvent(targets.application, eventTypes[type], object, origin)),
    ...types.map((type) => objectEvent(targets.appProject, eventTypes[type], object, origin)),
    ...types.map((type) => objectEvent(targets.repository, eventTypes[type], object, origin)),
    messageEvent(targets.resourceResync, eventTypes.requestUpdate, told, origin),
    messageEvent(targets.resourceResync, eventTypes.responseSyncedResource, told, origin),
    messageEvent(targets.resourceResync, eventTypes.requestSyncedResourceList, { checksum: null }, origin),
    messageEvent(targets.resourceResync, eventTypes.requestResourceResync, {}, origin),
    messageEvent(targets.clusterCacheInfoUpdate, eventTypes.clusterCacheInfoUpdate, { applicationsCount: 1 }, origin),
  ].map(eventBytes);
}

describe('a flood', () => {
  /** A principal that makes the flooder wait has done the right thing: then the flood ends early. */
  const send = async (call: AttackCall, next: (index: number) => Uint8Array, count: number) => {
    for (let index = 0; index < count && !call.isOver; ) {
      const chunk: Buffer[] = [];
      for (; chunk.length < 200 && index < count; index++) {
        chunk.push(frame(next(index)));
      }
      const isTaken = call.write(Buffer.concat(chunk)).then(() => true);
      if (!(await Promise.race([isTaken, stalled()]))) {
        return;
      }
    }
  };
  const stalled = () => new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 1_000));

  test('of 100,000 events by one who reads no answers', async () => {
    const call = await stage.agent();
    call.isPolite = false;
    call.stream.pause();
    const object = {
      metadata: { name: 'own', namespace: evil, uid: 'u' },
      spec: {},
      status: { health: { status: 'x' } },
    };
    await send(
      call,
      (index) => {
        const ids = { resourceId: 'own_u', eventId: String(index) };
        return eventBytes(
          objectEvent(targets.application, eventTypes.statusUpdate, object, { source: agentSource }, ids),
        );
      },
      100_000,
    );
    await stage.exchange();
  });

  test('of 100,000 objects that it claims to have', async () => {
    const call = await stage.agent();
    call.isPolite = false;
    const kinds = ['Application', 'AppProject', 'Repository', 'GPGKey'];
    await send(
      call,
      (index) => {
        const told = {
          kind: kinds[index % 4],
          name: `made-up-${index}`,
          namespace: evil,
          uid: `u${index}`,
          checksum: null,
        };
        return eventBytes(
          messageEvent(targets.resourceResync, eventTypes.requestUpdate, told, { source: agentSource }),
        );
      },
      100_000,
    );
    await stage.exchange();
  });

  test('of acknowledgements for events that were never sent', async () => {
    const call = await stage.agent();
    await send(
      call,
      (index) => {
        const beat = heartbeatEvent({ source: agentSource });
        return eventBytes({
          ...beat,
          target: targets.eventProcessed,
          type: eventTypes.processed,
          eventId: String(index),
        });
      },
      50_000,
    );
    await until('it is taken', async () => (call.isOver ? true : call.settle().then(() => true)));
  });

  test('of logins and tokens', async () => {
    const attacker = await stage.attacker();
    await Promise.all(Array.from({ length: 200 }, () => attacker.login()));
    await Promise.all(Array.from({ length: 200 }, () => attacker.subscribe('x.y.z').end));
    const nobody = await stage.attacker({ name: undefined });
    await Promise.all(Array.from({ length: 200 }, () => nobody.login()));
  });
});
