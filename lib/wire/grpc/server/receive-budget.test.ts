import { type ClientHttp2Session, connect } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { Event } from '../../../../proto/gen/eventstreamapi/eventstream.ts';
import { TokenAuthority } from '../../../auth/index.ts';
import { until } from '../../../base/testing.ts';
import { agentSource, encodeEvent, objectEvent, serveWire, type WireServer } from '../../index.ts';
import { createSigningKey } from '../../testing/certificates.ts';
import { MessageReader } from './message-reader.ts';
import { ReceiveBudget } from './receive-budget.ts';

// How much memory agents can make the principal use, and the effect on other agents.

const million = 1_000_000;

function frame(payload: Uint8Array, flag = 0, length = payload.length): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, payload]);
}

describe('compressed messages', () => {
  const seen: (string | number)[] = [];
  let flows = 0;
  const over = { is: false };

  function reader(maxBytes = 50 * million, budget = new ReceiveBudget(100 * million)) {
    seen.length = 0;
    flows = 0;
    over.is = false;
    return new MessageReader(
      {
        message: (bytes) => seen.push(bytes.length),
        unreadable: (error) => seen.push((error as Error).message),
        halfClose: () => seen.push('end'),
        flow: () => flows++,
        isOver: () => over.is,
      },
      { maxBytes, gzip: true, budget },
    );
  }

  const bomb = frame(gzipSync(Buffer.alloc(20 * million)), 1);
  const settled = (count: number) => until(() => seen.length >= count);

  test('one that unpacks to much is unpacked elsewhere, and what follows waits for it', async () => {
    const messages = reader();
    messages.push(Buffer.concat([frame(Buffer.alloc(3)), bomb, frame(Buffer.alloc(4)), bomb]));
    messages.push(frame(Buffer.alloc(5)));
    messages.end();
    expect(seen).toEqual([3]);
    expect(messages.isBusy).toBe(true);
    await settled(6);
    expect(seen).toEqual([3, 20 * million, 4, 20 * million, 5, 'end']);
    expect(messages.isBusy).toBe(false);
    expect(flows).toBeGreaterThan(0);
  });

  test('a message with a wrong length costs no more than others', async () => {
    const messages = reader();
    const liar = Buffer.from(bomb);
    liar.writeUInt32LE(10, liar.length - 4);
    messages.push(liar);
    expect(seen).toEqual([]);
    await settled(1);
    expect(seen).toEqual([expect.stringContaining('damaged')]);
  });

  test('small ones are there at once', () => {
    const messages = reader();
    messages.push(frame(gzipSync(Buffer.alloc(100_000)), 1));
    expect(seen).toEqual([100_000]);
  });

  test('one over the limit is refused', async () => {
    const messages = reader(10 * million);
    messages.push(bomb);
    await settled(1);
    expect(seen).toEqual([expect.stringContaining(`more than the limit of ${10 * million} bytes`)]);
  });

  test('a message whose call has ended in the meantime is not delivered', async () => {
    const budget = new ReceiveBudget(100 * million);
    const messages = reader(50 * million, budget);
    messages.push(bomb);
    over.is = true;
    messages.close();
    // Those that come later are unpacked after it.
    await budget.gunzipQueue.run(bomb.subarray(5), 50 * million, () => true);
    expect(seen).toEqual([]);
    expect(budget.heldBytes).toBe(0);
  });
});

describe('messages that do not come to their end', () => {
  const tokens = TokenAuthority.fromPem(createSigningKey());
  const stops: (() => unknown)[] = [];
  const received: string[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) {
      await stop();
    }
    received.length = 0;
  });

  async function start(): Promise<WireServer> {
    const silent = () => undefined;
    const server = await serveWire({
      address: '127.0.0.1',
      port: 0,
      tls: 'plaintext',
      version: '1',
      principalNamespace: 'argocd',
      tokens,
      authenticate: async () => '',
      subscribe: ({ agent }) => ({ event: () => received.push(agent), closed: silent }),
      maxReceivingBytes: 3 * million,
      webSocket: true,
      logger: { debug: silent, info: silent, warn: silent, error: silent },
    });
    stops.push(() => server.close());
    return server;
  }

  const path = '/eventstreamapi.EventStream/Subscribe';
  const token = async (agent: string) => (await tokens.issue({ agent, mode: 'managed' })).accessToken;

  /** A stream of an agent over HTTP/2. */
  async function overHttp2(server: WireServer, agent: string) {
    const session: ClientHttp2Session = connect(`http://127.0.0.1:${server.port}`);
    session.on('error', () => undefined);
    stops.push(() => session.destroy());
    const authorization = await token(agent);
    const headers = {
      ':method': 'POST',
      ':path': path,
      te: 'trailers',
      'content-type': 'application/grpc',
      authorization,
    };
    const stream = session.request(headers, { endStream: false });
    stream.on('error', () => undefined);
    stream.resume();
    const status = new Promise<unknown>((resolve) => {
      stream.on('trailers', (trailers) => resolve(trailers['grpc-message']));
    });
    return { write: (bytes: Buffer) => stream.write(bytes), status };
  }

  /** The same over a WebSocket; each write is a piece of one message. */
  async function overWebSocket(server: WireServer, agent: string) {
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}${path}`, {
      headers: {
        'sec-websocket-protocol': 'grpc-ws',
        'content-type': 'application/grpc',
        authorization: await token(agent),
      },
    });
    stops.push(() => socket.terminate());
    const status = new Promise<string>((resolve) => {
      socket.on('message', (data) => {
        const text = String(data);
        if (text.includes('Grpc-Message')) {
          resolve(text);
        }
      });
    });
    await new Promise((resolve) => socket.once('open', resolve));
    return { write: (bytes: Buffer) => socket.send(bytes, { fin: false, binary: true }), status };
  }

  const object = { metadata: { name: 'a', namespace: 'a', uid: 'u' }, spec: { text: 'x'.repeat(million) } };
  const type = 'io.argoproj.argocd-agent.event.status-update';
  const event = Event.encode({
    event: encodeEvent(objectEvent('application', type, object, { source: agentSource })),
  }).finish();

  test.each([
    ['HTTP/2', overHttp2],
    ['WebSocket', overWebSocket],
  ] as const)('are bounded altogether: who holds most has to go, the others go on (%s)', async (_, open) => {
    const server = await start();
    const [greedy, modest] = [await open(server, 'greedy'), await overHttp2(server, 'modest')];
    await until(() => server.connectedAgents().length === 2);
    modest.write(frame(event).subarray(0, million));
    greedy.write(frame(Buffer.alloc(2.5 * million), 0, 100 * million));
    expect(decodeURIComponent(String(await greedy.status))).toContain('this is the largest');
    modest.write(frame(event).subarray(million));
    await until(() => received.length > 0);
    expect(received).toEqual(['modest']);
    expect(server.connectedAgents()).toEqual(['modest']);
  });
});
