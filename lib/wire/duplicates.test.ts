import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { playAgent, playPrincipal, speakOn, type WirePeer, wirePeer } from '../../e2e/peer/index.ts';
import { until } from '../base/testing.ts';
import { agentSource, eventTypes, messageEvent, principalSource, targets } from './index.ts';
import { createTestCa, type TestCa, type TestCertificate } from './testing/certificates.ts';

// Two connections of one agent at the same time, as when an old pod has not gone yet and the new one is there.

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

const say = (peer: WirePeer, source: string) =>
  peer.say(messageEvent(targets.resourceResync, eventTypes.requestResourceResync, {}, { source }));
const idsOf = (peer: WirePeer) => new Set(peer.events('resourceResync').map(({ eventId }) => eventId));

test.each([
  ['grpc', 'grpc'],
  ['websocket', 'websocket'],
  ['grpc', 'websocket'],
] as const)('connections over %s and %s replace each other under traffic, and nothing is lost', async (one, other) => {
  const principal = wirePeer(principalSource);
  const agent = wirePeer(agentSource);
  let open = 0;
  let opened = 0;
  let late = 0;
  const { server, port } = await playPrincipal({
    tls: { ...serverTls, clientCa: ca.cert, requireClientCertificate: true },
    webSocket: true,
    subscribe: ({ stream }) => {
      open++;
      opened++;
      // The older one has ended before the newer one is handed over.
      expect(open).toBe(1);
      let isClosed = false;
      const { event: take } = speakOn(principal, stream);
      return {
        event: (event) => {
          if (isClosed) {
            late++;
          }
          take(event);
        },
        closed: () => {
          isClosed = true;
          open--;
        },
      };
    },
  });
  stops.push(() => server.close());
  const start = (transport: 'grpc' | 'websocket') => {
    const { stop } = playAgent(port, { peer: agent, transport, tls: () => ({ ca: ca.cert, ...agentTls }) });
    stops.push(stop);
    return stop;
  };
  const stopOld = start(one);
  start(other);
  let sent = 0;
  while (opened < 8 || sent < 300) {
    say(principal, principalSource);
    say(agent, agentSource);
    sent++;
    await turn();
    // A server that is busy all the time would take no connections.
    if (sent % 20 === 0) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
  await stopOld();
  await until(() => expect([...principal.writer.unacknowledged, ...agent.writer.unacknowledged]).toEqual([]));
  expect(idsOf(principal).size).toBe(sent);
  expect(idsOf(agent).size).toBe(sent);
  expect(late).toBe(0);
  // The one that stays may have been sent away last, and comes back.
  await until(() => expect(server.connectedAgents()).toEqual(['one']));
});
