import { generateKeyPairSync } from 'node:crypto';
import { isMainThread, parentPort } from 'node:worker_threads';
import { TurnMeter } from '../../../e2e/random/meters.ts';
import { TokenAuthority } from '../../../lib/auth/index.ts';
import { effort } from '../../../lib/base/testing.ts';
import { eventOf, receiveWindowLimits } from '../../../lib/bridge/index.ts';
import { grpcStatus, serveWire } from '../../../lib/wire/index.ts';
import { Bodies } from '../../live/agent-bodies.ts';
import { LiveAccess } from '../../live/live-access.ts';
import { OpenSessions } from '../open-sessions.ts';
import { Sessions, type SessionsOptions } from '../sessions.ts';

// The principal's server for agents in a thread of its own, so that its time and memory can be measured. The engine behind it
// acknowledges everything, and answers the agent `good` with Applications that nobody else may see.

/** What the server reports, the worst since its start. */
export interface ServerReport {
  /** CPU time of the thread in one turn of the event loop, in ms. Unlike a delay it does not depend on other programs. */
  readonly turnMs: number;
  /** Memory of the heap and of buffers, in bytes. */
  readonly bytes: number;
  /** Messages that were read. */
  readonly read: number;
  /** Bytes that reached the reader of another agent's body. */
  readonly misplaced: number;
}

/** The server's first message. */
export interface ServerStart {
  readonly port: number;
  readonly good: string;
  /** Tokens of hostile agents, of each one for both modes. Each agent may open only so many streams. */
  readonly evil: readonly (readonly [managed: string, autonomous: string])[];
}

/** A text that only `good` may receive, and the UUID of a body that only `good` may send. */
export const secret = 'only-for-good-7f1c';
/** The UUIDs of bodies that are expected, by agent. */
export const expectedUuids = { good: 'uuid-of-good', evil: 'uuid-of-evil' } as const;

async function serve(port: NonNullable<typeof parentPort>): Promise<void> {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const tokens = TokenAuthority.fromPem(String(privateKey.export({ type: 'pkcs8', format: 'pem' })));
  const silent = () => undefined;
  const logger = { debug: silent, info: silent, warn: silent, error: silent, child: () => logger };
  const nothing = new Proxy({}, { get: () => silent });
  const connections = new Map<string, Parameters<SessionsOptions['sync']['connected']>[2]>();
  let sent = 0;
  let read = 0;
  const sync = {
    ...{ disconnected: silent, forgetAgent: silent, acknowledged: silent, writable: silent },
    connected: (agent: string, _mode: string, connection: Parameters<SessionsOptions['sync']['connected']>[2]) =>
      connections.set(agent, connection),
    unreadable: () => undefined,
    receive: (agent: string, message: Parameters<SessionsOptions['sync']['receive']>[1]) => {
      setImmediate(() => connections.get(agent)?.acknowledge(message));
    },
  };
  const open = new OpenSessions(() => true);
  const live = new LiveAccess({ send: () => false, isConnected: () => true });
  const sessions = new Sessions({
    ...{ open, sync, live, logger, eventLogger: logger, tracer: undefined, detail: { has: () => false } },
    ...{
      introductions: nothing,
      records: { connected: () => true, disconnected: silent },
      clusterInfos: nothing,
      metrics: nothing,
    },
    ...{ isMapped: () => true, clusterChanged: silent, pinnedMode: silent },
    receiveWindow: receiveWindowLimits({}, silent),
  } as unknown as SessionsOptions);
  const bodies = new Bodies();
  let misplaced = 0;
  const expect = (agent: string) => {
    const again = () => expect(agent);
    const isGood = agent === 'good';
    bodies.expect(agent, isGood ? expectedUuids.good : expectedUuids.evil, {
      data: (bytes) => {
        misplaced += isGood ? bytes.length : 0;
        return true;
      },
      ended: again,
      lost: silent,
    });
  };
  expect('good');
  const evil = Array.from({ length: effort(2, 400) }, (_, index) => `evil-${index}`);
  for (const agent of evil) {
    expect(agent);
  }
  const server = await serveWire({
    address: '127.0.0.1',
    port: 0,
    tls: 'plaintext',
    version: '1',
    principalNamespace: 'argocd',
    tokens,
    authenticate: async () => {
      throw new Error('the agents have their tokens');
    },
    called: ({ message }) => {
      read += message === 'received' ? 1 : 0;
    },
    subscribe: (session) => sessions.subscribe(session),
    live: {
      logs: (stream) => bodies.serve(stream),
      terminal: (stream) => ({
        message: () => stream.finish(grpcStatus.notFound, 'unknown request id'),
        closed: silent,
      }),
    },
    webSocket: true,
    logger,
  });
  const accessToken = async (agent: string, mode: 'managed' | 'autonomous') =>
    (await tokens.issue({ agent, mode })).accessToken;
  const start: ServerStart = {
    port: server.port,
    good: await accessToken('good', 'managed'),
    evil: await Promise.all(
      evil.map(async (agent) => [await accessToken(agent, 'managed'), await accessToken(agent, 'autonomous')] as const),
    ),
  };
  port.postMessage(start);

  setInterval(() => {
    const metadata = { name: secret, namespace: 'argocd', uid: secret, resourceVersion: String(++sent) };
    const ids = { resourceId: secret, eventId: String(sent) };
    const message = { target: 'application', type: 'spec-update', ...ids, object: { metadata, spec: {} } } as const;
    open.send('good', eventOf(message, ''));
  }, 20);

  const meter = new TurnMeter();
  port.on('message', () => {
    const report: ServerReport = { turnMs: meter.longestMs, bytes: meter.mostBytes, read, misplaced };
    port.postMessage(report);
  });
}

if (!isMainThread && parentPort !== null) {
  await serve(parentPort);
}
