import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { authenticateWith, GoExpression, mtlsMethod, TokenAuthority } from '../auth/index.ts';
import { until } from '../base/testing.ts';
import {
  acknowledgement,
  agentSource,
  type EventStream,
  eventTypes,
  isAcknowledgement,
  messageEvent,
  principalSource,
  runWireClient,
  serveWire,
  targets,
  type WireEvent,
} from './index.ts';
import { createSigningKey, createTestCa, type TestCa, type TestCertificate } from './testing/certificates.ts';

// Two connections of one agent at the same time, as when an old pod has not gone yet and the new one is there.

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

let ca: TestCa;
let serverTls: TestCertificate;
let agentTls: TestCertificate;

beforeAll(async () => {
  ca = await createTestCa();
  serverTls = await ca.issue({ subject: 'CN=principal', names: ['127.0.0.1'], usage: 'server' });
  agentTls = await ca.issue({ subject: 'CN=one' });
});

let stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.reverse()) {
    await stop();
  }
  stops = [];
});

/** One side: sends until acknowledged, on the newest stream, and acknowledges each received event. */
class Side {
  readonly pending = new Map<string, WireEvent>();
  readonly received = new Set<string>();
  readonly #source: string;
  #stream: EventStream | undefined;

  constructor(source: string) {
    this.#source = source;
  }

  add(): void {
    const event = messageEvent(targets.resourceResync, eventTypes.requestResourceResync, {}, { source: this.#source });
    this.pending.set(event.eventId, event);
    this.#stream?.send(event);
  }

  opened(stream: EventStream): void {
    this.#stream = stream;
    for (const event of this.pending.values()) {
      stream.send(event);
    }
  }

  event(stream: EventStream, event: WireEvent): void {
    if (isAcknowledgement(event)) {
      this.pending.delete(event.eventId);
    } else {
      this.received.add(event.eventId);
      stream.send(acknowledgement(event, this.#source));
    }
  }
}

test.each([
  ['grpc', 'grpc'],
  ['websocket', 'websocket'],
  ['grpc', 'websocket'],
] as const)('connections over %s and %s replace each other under traffic, and nothing is lost', async (one, other) => {
  const principal = new Side(principalSource);
  const agent = new Side(agentSource);
  let open = 0;
  let opened = 0;
  let late = 0;
  const server = await serveWire({
    address: '127.0.0.1',
    port: 0,
    tls: { ...serverTls, clientCa: ca.cert, requireClientCertificate: true },
    webSocket: true,
    version: '1',
    principalNamespace: 'argocd',
    tokens: TokenAuthority.fromPem(createSigningKey()),
    authenticate: (request, peer) =>
      authenticateWith(mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=(.+)') }), request, peer),
    subscribe: ({ stream }) => {
      open++;
      opened++;
      // The older one has ended before the newer one is handed over.
      expect(open).toBe(1);
      let isClosed = false;
      principal.opened(stream);
      return {
        event: (event) => {
          if (isClosed) {
            late++;
          }
          principal.event(stream, event);
        },
        closed: () => {
          isClosed = true;
          open--;
        },
      };
    },
    logger: silent,
  });
  stops.push(() => server.close());
  const start = (transport: 'grpc' | 'websocket') => {
    const abort = new AbortController();
    const done = runWireClient({
      server: `127.0.0.1:${server.port}`,
      transport,
      environment: {},
      tls: () => ({ ca: ca.cert, ...agentTls }),
      credentials: () => ({ method: 'mtls', credentials: {} }),
      mode: 'managed',
      version: '1',
      agentNamespace: 'argocd',
      onConnected: (stream) => {
        agent.opened(stream);
        return { event: (event) => agent.event(stream, event), closed: () => undefined };
      },
      signal: abort.signal,
      backoff: { initialMs: 20, maxMs: 50 },
      logger: silent,
    });
    const stop = async () => {
      abort.abort();
      await done;
    };
    stops.push(stop);
    return stop;
  };
  const stopOld = start(one);
  start(other);
  let sent = 0;
  while (opened < 8 || sent < 300) {
    principal.add();
    agent.add();
    sent++;
    await turn();
    // A server that is busy all the time would take no connections.
    if (sent % 20 === 0) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
  await stopOld();
  await until(() => expect(principal.pending.size + agent.pending.size).toBe(0));
  expect(principal.received.size).toBe(sent);
  expect(agent.received.size).toBe(sent);
  expect(late).toBe(0);
  // The one that stays may have been sent away last, and comes back.
  await until(() => expect(server.connectedAgents()).toEqual(['one']));
});
