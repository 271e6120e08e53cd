import { randomFillSync } from 'node:crypto';
import { type ClientHttp2Session, connect } from 'node:http2';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { playPrincipal } from '../../../../e2e/peer/index.ts';
import { Event } from '../../../../proto/gen/eventstreamapi/eventstream.ts';
import { TokenAuthority } from '../../../auth/index.ts';
import { until } from '../../../base/testing.ts';
import { agentSource, encodeEvent, objectEvent, type WireServer, type WireServerOptions } from '../../index.ts';
import { createSigningKey } from '../../testing/certificates.ts';
import { MessageReader } from './message-reader.ts';
import { ReceiveBudget } from './receive-budget.ts';

// How much memory agents can make the principal use, and the effect on other agents.

const million = 1_000_000;
const budgetOf = (maxBytes: number, messageMs = 60_000) => new ReceiveBudget({ maxBytes, messageMs });

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
  const paused = { is: false };

  function reader(maxBytes = 50 * million, budget = budgetOf(100 * million)) {
    seen.length = 0;
    flows = 0;
    over.is = false;
    paused.is = false;
    return new MessageReader(
      {
        message: (bytes) => seen.push(bytes.length),
        unreadable: (error) => seen.push((error as Error).message),
        halfClose: () => seen.push('end'),
        flow: () => flows++,
        isPaused: () => paused.is,
        isOver: () => over.is,
      },
      { maxBytes, gzip: true, peer: 'one', budget },
    );
  }

  /** A thirtieth of it is random. */
  const large = Buffer.alloc(20 * million);
  randomFillSync(large, 0, large.length / 30);
  const bomb = frame(gzipSync(large), 1);
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

  test('one that is unpacked when nothing may be delivered any more waits, and what follows behind it', async () => {
    const messages = reader();
    messages.push(Buffer.concat([bomb, frame(Buffer.alloc(4))]));
    messages.end();
    paused.is = true;
    await until(() => expect(messages.isBusy).toBe(false));
    expect(seen).toEqual([]);
    paused.is = false;
    messages.proceed();
    await settled(3);
    expect(seen).toEqual([20 * million, 4, 'end']);
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

  test('one that unpacks to far more than its size is refused, whatever size it claims', async () => {
    const messages = reader();
    const zeros = frame(gzipSync(Buffer.alloc(20 * million)), 1);
    messages.push(zeros);
    await settled(1);
    const liar = Buffer.from(zeros);
    liar.writeUInt32LE(10, liar.length - 4);
    messages.push(liar);
    await settled(2);
    expect(seen).toEqual(Array(2).fill(expect.stringMatching(/^invalidArgument: .* more than 128 times its size/)));
  });

  test('an Application whose resources differ in nothing but their names is not', async () => {
    const resources = Array.from({ length: 7_500 }, (_, index) => ({
      group: 'apps',
      health: { status: 'Healthy' },
      kind: 'Deployment',
      name: `guestbook-${index}`,
      namespace: 'guestbook',
      status: 'Synced',
      version: 'v1',
    }));
    const packed = gzipSync(JSON.stringify({ status: { resources } }), { level: 9 });
    reader().push(frame(packed, 1));
    await settled(1);
    expect(seen).toEqual([expect.any(Number)]);
  });

  test('a message whose call has ended in the meantime is not delivered', async () => {
    const budget = budgetOf(100 * million);
    const messages = reader(50 * million, budget);
    messages.push(bomb);
    over.is = true;
    messages.close();
    // Those that come later are unpacked after it.
    await budget.gunzipQueue.run('two', bomb.subarray(5), {
      maxBytes: 50 * million,
      isWanted: () => true,
      deliver: () => undefined,
    });
    expect(seen).toEqual([]);
    expect(budget.heldBytes).toBe(0);
  });
});

describe('bytes of incomplete messages', () => {
  const kilo = 1_000;
  const caller = () => {
    const call = { refused: 0, refuse: () => call.refused++ };
    return call;
  };

  test('the peer that holds most loses a call, however many small ones it has', () => {
    const budget = budgetOf(100 * million);
    const [victim, ...greedy] = Array.from({ length: 1_001 }, caller) as [ReturnType<typeof caller>];
    budget.hold('victim', victim, 600 * kilo);
    for (const call of greedy) {
      budget.hold('greedy', call, 419 * kilo);
    }
    const another = caller();
    budget.hold('another', another, 20 * million);
    expect([victim.refused, another.refused]).toEqual([0, 0]);
    expect(greedy.reduce((sum, { refused }) => sum + refused, 0)).toBeGreaterThan(700);
    expect(budget.heldBytes).toBeLessThanOrEqual(100 * million);
  });

  test('of that peer it is the call with the largest message', () => {
    const budget = budgetOf(10 * million);
    const [small, large, other] = [caller(), caller(), caller()];
    budget.hold('greedy', small, 2 * million);
    budget.hold('greedy', large, 5 * million);
    budget.hold('other', other, 4 * million);
    expect([small, large, other].map(({ refused }) => refused)).toEqual([0, 1, 0]);
    expect(budget.heldBytes).toBe(6 * million);
  });

  test('those of a peer that holds little are not counted, and nothing is remembered', () => {
    const budget = budgetOf(million);
    const calls = Array.from({ length: 1_000 }, caller);
    for (const [index, call] of calls.entries()) {
      budget.hold(`peer ${index}`, call, 60 * kilo);
    }
    expect(calls.every(({ refused }) => refused === 0)).toBe(true);
    expect(budget.heldBytes).toBe(0);
    for (const [index, call] of calls.entries()) {
      budget.hold(`peer ${index}`, call, 0);
    }
    expect(budget.heldBytes).toBe(0);
  });
});

describe('bytes of a paused call', () => {
  /** A reader of a peer, with what was refused to it. */
  function open(budget: ReceiveBudget, peer = 'one') {
    const state = { paused: false, seen: 0, refused: '' };
    const reader: MessageReader = new MessageReader(
      {
        message: () => state.seen++,
        unreadable: (error) => {
          state.refused = (error as Error).message;
        },
        halfClose: () => undefined,
        flow: () => undefined,
        isPaused: () => state.paused,
        isOver: () => state.refused !== '',
      },
      { maxBytes: million, gzip: false, peer, budget },
    );
    const pause = (paused: boolean) => {
      state.paused = paused;
      reader.proceed();
    };
    return { reader, state, pause };
  }
  const message = frame(Buffer.alloc(million / 2));
  const refusedOf = (calls: readonly ReturnType<typeof open>[]) =>
    calls.filter(({ state }) => state.refused !== '').length;

  test.each([
    ['incomplete', message.subarray(0, -1)],
    ['complete', message],
  ])('count: who has many loses some, others with one do not (%s)', (_, bytes) => {
    const budget = budgetOf(3 * million);
    const honest = open(budget, 'honest');
    honest.pause(true);
    honest.reader.push(bytes);
    const greedy = Array.from({ length: 20 }, () => open(budget, 'greedy'));
    for (const { reader, pause } of greedy) {
      reader.push(bytes.subarray(0, -2));
      pause(true);
      reader.push(bytes.subarray(-2));
    }
    expect(budget.heldBytes).toBeLessThanOrEqual(3 * million);
    expect(refusedOf(greedy)).toBe(16);
    expect(refusedOf([honest])).toBe(0);
    honest.pause(false);
    honest.reader.push(message.subarray(bytes.length));
    expect(honest.state.seen).toBe(1);
  });

  test('have no deadline; it goes on from there when the call goes on', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { reader, state, pause } = open(budgetOf(3 * million, 1_000));
    reader.push(message.subarray(0, 1_000));
    vi.advanceTimersByTime(900);
    pause(true);
    vi.advanceTimersByTime(100_000);
    expect(state.refused).toBe('');
    pause(false);
    vi.advanceTimersByTime(99);
    expect(state.refused).toBe('');
    vi.advanceTimersByTime(2);
    expect(state.refused).toContain('a message is not complete after 1 s');
  });

  test('have all of the time again for the next message', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { reader, state } = open(budgetOf(3 * million, 1_000));
    const small = frame(Buffer.alloc(2_000));
    for (let sent = 0; sent < 3; sent++) {
      reader.push(small.subarray(0, 1_000));
      vi.advanceTimersByTime(900);
      reader.push(small.subarray(1_000));
      // A turn in which time passes is over.
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect([state.seen, state.refused]).toEqual([3, '']);
  });
});

describe('turns', () => {
  /** Readers of one budget, whose turns come when `turn` is called. */
  function readers() {
    const seen: string[] = [];
    const budget = budgetOf(100 * million);
    const state = { paused: false };
    const open = (peer: string) =>
      new MessageReader(
        {
          message: (bytes) => {
            const text = Buffer.from(bytes).toString();
            seen.push(text);
            if (text === 'pause') {
              state.paused = true;
            }
            if (text === 'slow') {
              work(40);
            }
          },
          unreadable: () => seen.push('unreadable'),
          halfClose: () => seen.push('end'),
          flow: () => undefined,
          isPaused: () => state.paused,
          isOver: () => false,
        },
        { maxBytes: million, gzip: true, peer, budget },
      );
    return { open, seen, state };
  }
  const work = (milliseconds: number) => {
    const end = performance.now() + milliseconds;
    while (performance.now() < end) {
      // A message that takes this long.
    }
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const messages = (text: string, count: number) =>
    Buffer.concat(Array.from({ length: count }, () => frame(Buffer.from(text))));

  test('a peer that sends much waits for the next turn, with all its calls; others are read meanwhile', async () => {
    const { open, seen } = readers();
    const [first, second, other] = [open('a'), open('a'), open('b')];
    // Time stands still: a machine that is held up would end the turn before 32 messages.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    first.push(messages('a', 100));
    second.push(messages('A', 10));
    other.push(messages('b', 1));
    clock.mockRestore();
    expect(seen).toEqual([...Array(32).fill('a'), 'b']);
    expect([first.isBusy, second.isBusy, other.isBusy]).toEqual([true, true, false]);
    first.end();
    seen.length = 0;
    await turn();
    expect(seen.length).toBeLessThanOrEqual(32);
    await until(() => expect(seen).toHaveLength(68 + 10 + 1));
    expect(seen.filter((text) => text !== 'A')).toEqual([...Array(68).fill('a'), 'end']);
  });

  test('a peer whose messages take long makes the others wait for one of them, however many calls it has', async () => {
    const { open, seen } = readers();
    for (let call = 0; call < 10; call++) {
      open('a').push(messages('slow', 2));
    }
    const other = open('b');
    for (let sent = 1; sent <= 3; sent++) {
      const before = seen.filter((text) => text === 'slow').length;
      other.push(messages('quick', 1));
      await until(() => seen.filter((text) => text === 'quick').length === sent);
      expect(seen.filter((text) => text === 'slow').length - before).toBeLessThanOrEqual(1);
    }
    await until(() => seen.filter((text) => text === 'slow').length === 20);
  });

  test('a small message is delivered at once', () => {
    const { open, seen } = readers();
    open('a').push(frame(gzipSync('x'), 1));
    expect(seen).toEqual(['x']);
  });

  test('a message in which the peer is paused is the last until it goes on, also when its end has come', () => {
    const { open, seen, state } = readers();
    const reader = open('a');
    reader.push(Buffer.concat([messages('pause', 1), messages('a', 3)]));
    reader.end();
    expect(seen).toEqual(['pause']);
    state.paused = false;
    reader.proceed();
    expect(seen).toEqual(['pause', 'a', 'a', 'a', 'end']);
  });
});

describe('messages', () => {
  const tokens = TokenAuthority.fromPem(createSigningKey());
  const stops: (() => unknown)[] = [];
  const received: string[] = [];
  let resume: () => void = () => undefined;
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) {
      await stop();
    }
    received.length = 0;
  });

  async function start(timeouts: WireServerOptions['timeouts'] = {}): Promise<WireServer> {
    const { server } = await playPrincipal({
      tokens,
      subscribe: ({ agent, stream }) => {
        if (agent === 'unmapped') {
          stream.pause('unserved');
          resume = () => stream.resume('unserved');
        }
        return { event: () => received.push(agent), closed: () => undefined };
      },
      maxReceivingBytes: 3 * million,
      timeouts,
      webSocket: true,
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
    const write = (bytes: Buffer, _isLast = false) => stream.write(bytes);
    return { write, status };
  }

  test('in pieces of a byte count with what these cost (WebSocket)', async () => {
    const { socket, status } = await overWebSocket(await start(), 'tiny');
    const { _socket: raw } = socket as unknown as { _socket: Socket };
    raw.setNoDelay(true);
    let isOver = false;
    void status.then(() => {
      isOver = true;
    });
    // The header of a masked binary message of a million bytes.
    raw.write(Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, 0x0f, 0x42, 0x40, 1, 2, 3, 4]));
    let sent = 0;
    while (!isOver && sent < 30_000) {
      raw.write(Buffer.from([sent++ & 0xff]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await status).toMatch(/Grpc-Message: incomplete messages are more than 3000000 bytes/);
    expect(sent).toBeLessThan(30_000);
  });

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
    const write = (bytes: Buffer, isLast = false) => socket.send(bytes, { fin: isLast, binary: true });
    return { write, status, socket };
  }

  const object = { metadata: { name: 'a', namespace: 'a', uid: 'u' }, spec: { text: 'x'.repeat(million) } };
  const type = 'io.argoproj.argocd-agent.event.status-update';
  const event = Event.encode({
    event: encodeEvent(objectEvent('application', type, object, { source: agentSource })),
  }).finish();

  test.each([
    ['HTTP/2', overHttp2],
    ['WebSocket', overWebSocket],
  ] as const)(
    'that do not come to their end are bounded altogether: who holds most has to go, the others go on (%s)',
    async (_, open) => {
      const server = await start();
      const [greedy, modest] = [await open(server, 'greedy'), await overHttp2(server, 'modest')];
      await until(() => server.connectedAgents().length === 2);
      modest.write(frame(event).subarray(0, million));
      greedy.write(frame(Buffer.alloc(2.5 * million), 0, 10 * million));
      expect(decodeURIComponent(String(await greedy.status))).toContain('this peer has most of them');
      modest.write(frame(event).subarray(million));
      await until(() => received.length > 0);
      expect(received).toEqual(['modest']);
      expect(server.connectedAgents()).toEqual(['modest']);
    },
  );

  test.each([
    ['HTTP/2', overHttp2],
    ['WebSocket', overWebSocket],
  ] as const)('that do not come to their end have a deadline (%s)', async (_, open) => {
    const server = await start({ messageMs: 2_000 });
    const [slow, good] = [await open(server, 'slow'), await overHttp2(server, 'good')];
    await until(() => server.connectedAgents().length === 2);
    good.write(frame(event));
    slow.write(frame(event).subarray(0, 1_000));
    expect(decodeURIComponent(String(await slow.status))).toContain('a message is not complete after 2 s');
    good.write(frame(event));
    await until(() => received.length === 2);
    expect(server.connectedAgents()).toEqual(['good']);
  });

  test.each([
    ['HTTP/2', overHttp2],
    ['WebSocket', overWebSocket],
  ] as const)('of an agent that is paused from the start are not read (%s)', async (_, open) => {
    const server = await start();
    const [unmapped, good] = [await open(server, 'unmapped'), await overHttp2(server, 'good')];
    await until(() => server.connectedAgents().length === 2);
    unmapped.write(frame(event), true);
    for (let round = 1; round <= 20; round++) {
      good.write(frame(event));
      await until(() => received.filter((agent) => agent === 'good').length === round);
    }
    expect(received).not.toContain('unmapped');
    resume();
    await until(() => expect(received).toContain('unmapped'));
  });
});
