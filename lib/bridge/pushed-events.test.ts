import { connect } from 'node:http2';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { eventBytes, frame } from '../../e2e/hostile/index.ts';
import { noLog, playPrincipal } from '../../e2e/peer/index.ts';
import { until } from '../base/testing.ts';
import { agentSource, eventTypes, heartbeatEvent, objectEvent, principalSource, targets } from '../wire/index.ts';
import { adaptStream } from './stream-adapter.ts';

// An agent may send events over a second, one-way stream. Whatever holds its event stream holds that one too.

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

const paths = { subscribe: '/eventstreamapi.EventStream/Subscribe', push: '/eventstreamapi.EventStream/Push' };
/** A call that an agent made by hand. */
interface RawCall {
  write(bytes: Buffer): void;
  /** Reads what the principal sends. Nothing is read before. */
  read(): void;
}
type Open = (path: string) => RawCall;

function overHttp2(port: number, authorization: string): Open {
  const session = connect(`http://127.0.0.1:${port}`, { maxSessionMemory: 100 });
  session.on('error', () => undefined);
  stops.push(() => session.destroy());
  return (path) => {
    const headers = { ':method': 'POST', ':path': path, te: 'trailers', 'content-type': 'application/grpc' };
    const stream = session.request({ ...headers, authorization });
    stream.on('error', () => undefined);
    return { write: (bytes) => void stream.write(bytes), read: () => void stream.resume() };
  };
}

function overWebSocket(port: number, authorization: string): Open {
  return (path) => {
    const headers = { authorization, 'sec-websocket-protocol': 'grpc-ws' };
    const webSocket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers, perMessageDeflate: false });
    webSocket.on('error', () => undefined);
    stops.push(() => webSocket.terminate());
    const opened = new Promise((resolve) => webSocket.once('open', resolve));
    void opened.then(() => webSocket.pause());
    return {
      write: (bytes) => void opened.then(() => webSocket.send(bytes)),
      read: () => webSocket.resume(),
    };
  };
}

const windowEvents = 10;
const nothing = (): void => undefined;

/** Resolves when a number has not changed for a while. */
async function standstill(look: () => number): Promise<void> {
  let [last, since] = [look(), performance.now()];
  await until(() => {
    if (look() !== last) {
      [last, since] = [look(), performance.now()];
    }
    expect(performance.now() - since).toBeGreaterThan(500);
  });
}

/** A principal that serves the agent's stream as it does; its engine acknowledges when told. */
async function start() {
  let isMapped = true;
  const agent = { events: 0, acknowledge: nothing, map: nothing };
  const principal = await playPrincipal({
    webSocket: true,
    subscribe: ({ stream }) => {
      const waiting: (() => void)[] = [];
      let isQuick = false;
      const adapter = adaptStream({
        stream,
        source: principalSource,
        logger: noLog,
        listener: {
          receive: (message) => {
            const done = () => adapter.connection.acknowledge(message);
            isQuick ? setImmediate(done) : waiting.push(done);
          },
          unreadable: () => undefined,
          acknowledged: () => undefined,
          writable: () => undefined,
        },
        receiveWindow: { maxEvents: windowEvents, maxBytes: 1024 * 1024 },
      });
      agent.acknowledge = () => {
        isQuick = true;
        for (const done of waiting.splice(0)) {
          done();
        }
      };
      agent.map = () => stream.resume('unserved');
      if (!isMapped) {
        stream.pause('unserved');
      }
      return {
        event: (event) => {
          agent.events++;
          adapter.event(event);
        },
        closed: () => undefined,
      };
    },
  });
  stops.push(principal.close);
  const { accessToken } = await principal.tokens.issue({ agent: 'one', mode: 'autonomous' });
  const unmap = () => {
    isMapped = false;
  };
  return { ...principal, agent, accessToken, unmap };
}

const attributes = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`a${index}`, 'x'.repeat(2000)]));
const heartbeat = heartbeatEvent({ source: agentSource });
const heavy = frame(eventBytes({ ...heartbeat, extensions: { ...heartbeat.extensions, ...attributes } }));
const application = (index: number) => {
  const metadata = { name: `app-${index}`, namespace: 'one', uid: `u${index}`, resourceVersion: '1' };
  return frame(
    eventBytes(
      objectEvent(targets.application, eventTypes.create, { metadata, spec: {} } as never, { source: agentSource }),
    ),
  );
};
const count = 400;

describe.each([
  ['HTTP/2', overHttp2],
  ['WebSocket', overWebSocket],
] as const)('events of a one-way stream wait (%s)', (_, transport) => {
  async function connected() {
    const principal = await start();
    const open = transport(principal.port, principal.accessToken);
    /** Opens both streams and sends everything over the second one; resolves when the principal has had time to read it. */
    const flood = async (make: (index: number) => Buffer) => {
      const events = open(paths.subscribe);
      await until(() => expect(principal.server.connectedAgents()).toEqual(['one']));
      const push = open(paths.push);
      for (let index = 0; index < count; index++) {
        push.write(make(index));
      }
      await standstill(() => principal.agent.events);
      return events;
    };
    return { ...principal, flood };
  }

  test('while the agent does not read its answers', async () => {
    const { agent, flood } = await connected();
    const events = await flood(() => heavy);
    // A busy machine may take longer for the first one than a standstill is long.
    await until(() => expect(agent.events).toBeGreaterThan(0));
    await standstill(() => agent.events);
    expect(agent.events).toBeLessThan(count / 2);
    events.read();
    await until(() => expect(agent.events).toBe(count));
  });

  test('while too many of its events are not acknowledged', async () => {
    const { agent, flood } = await connected();
    const events = await flood(application);
    await until(() => expect(agent.events).toBe(windowEvents));
    // Its cluster's Secret has come meanwhile. That is no reason to read more.
    agent.map();
    await standstill(() => agent.events);
    expect(agent.events).toBe(windowEvents);
    events.read();
    agent.acknowledge();
    await until(() => expect(agent.events).toBe(count));
  });

  test('while the agent has no cluster', async () => {
    const { agent, flood, unmap } = await connected();
    unmap();
    const events = await flood(application);
    expect(agent.events).toBe(0);
    events.read();
    agent.map();
    await until(() => expect(agent.events).toBe(windowEvents));
    agent.acknowledge();
    await until(() => expect(agent.events).toBe(count));
  });
});
