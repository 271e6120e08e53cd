import { randomBytes, type X509Certificate } from 'node:crypto';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { playAgent, playPrincipal, wirePeer } from '../../e2e/peer/index.ts';
import { AuthError, type AuthRequest, type ClientInfo, TokenAuthority } from '../auth/index.ts';
import { until } from '../base/testing.ts';
import {
  agentSource,
  eventTypes,
  messageEvent,
  objectEvent,
  principalSource,
  targets,
  type WireClientOptions,
  type WireError,
  type WireServerOptions,
} from './index.ts';
import { createSigningKey, createTestCa, type TestCa, type TestCertificate } from './testing/certificates.ts';

type Entry = { level: string; message: string } & Record<string, unknown>;

function recordingLogger() {
  const entries: Entry[] = [];
  const at = (level: string) => (fields: object, message: string) => {
    entries.push({ ...fields, level, message });
  };
  return { entries, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

let ca: TestCa;
let otherCa: TestCa;
let serverTls: TestCertificate;
let agentTls: TestCertificate;
const signingKey = createSigningKey();

beforeAll(async () => {
  [ca, otherCa] = await Promise.all([createTestCa('fleet CA'), createTestCa('foreign CA')]);
  serverTls = await ca.issue({ subject: 'CN=principal', names: ['localhost', '127.0.0.1'], usage: 'server' });
  agentTls = await ca.issue({ subject: 'CN=cluster1' });
});

/** A principal that acknowledges everything, and what it saw besides. */
async function testPrincipal(options: Partial<WireServerOptions> = {}) {
  const log = recordingLogger();
  const requests: AuthRequest[] = [];
  const peer = wirePeer(principalSource);
  const principal = await playPrincipal({
    tls: { ...serverTls, clientCa: ca.cert, requireClientCertificate: true },
    async authenticate(request: AuthRequest, { certificate }: ClientInfo) {
      requests.push(request);
      const name = certificate?.subject.replace('CN=', '') ?? request.credentials.name;
      if (name === undefined) {
        throw new AuthError('no-credentials', 'nobody');
      }
      if (name === 'stranger') {
        throw new AuthError('bad-credentials', 'no cluster of this name', { agent: name });
      }
      return { agent: name };
    },
    matchCertificateSubject: true,
    peer: () => peer,
    logger: log,
    ...options,
  });
  return { ...principal, log, requests, received: peer.received };
}
type TestPrincipal = Awaited<ReturnType<typeof testPrincipal>>;

/** An agent that acknowledges everything. */
function testAgent(port: number, options: Partial<WireClientOptions> = {}) {
  const log = recordingLogger();
  const peer = wirePeer(agentSource);
  const tls = () => ({ ca: ca.cert, ...agentTls });
  const agent = playAgent(port, { peer, tls, version: '2.0.0', logger: log, ...options });
  return { ...agent, log, received: peer.received };
}
type TestAgent = ReturnType<typeof testAgent>;

let stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.reverse()) {
    await stop();
  }
  stops = [];
});

const application = {
  metadata: { name: 'guestbook', namespace: 'cluster1', uid: 'uid-1', resourceVersion: '42' },
  spec: { project: 'default' },
};
const created = objectEvent(targets.application, eventTypes.create, application, {
  source: principalSource,
  principalUid: 'p-1',
});

describe.each([
  { over: 'HTTP/2', webSocket: false, transport: 'grpc' as const },
  { over: 'HTTP/2 beside WebSocket', webSocket: true, transport: 'grpc' as const },
  { over: 'WebSocket', webSocket: true, transport: 'websocket' as const },
])('over $over', ({ webSocket, transport }) => {
  async function startPrincipal(options: Partial<WireServerOptions> = {}): Promise<TestPrincipal> {
    const principal = await testPrincipal({ webSocket, ...options });
    stops.push(() => principal.server.close());
    return principal;
  }

  function startAgent(port: number, options: Partial<WireClientOptions> = {}): TestAgent {
    const agent = testAgent(port, { transport, ...options });
    stops.push(() => agent.stop());
    return agent;
  }

  describe('agent and principal over mutual TLS', () => {
    test('log in, exchange events both ways and acknowledge them', async () => {
      const principal = await startPrincipal();
      const agent = startAgent(principal.server.port);
      await until(() => expect(principal.sessions).toHaveLength(1));
      const [session] = principal.sessions;
      expect(session).toMatchObject({ agent: 'cluster1', mode: 'managed' });
      expect(principal.requests).toMatchObject([{ method: 'mtls', version: '2.0.0', agentNamespace: 'argocd' }]);
      await until(() => expect(agent.principals).toHaveLength(1));
      expect(agent.principals).toEqual([{ agent: 'cluster1', principalNamespace: 'argocd', version: '1.0.0' }]);

      expect(session?.stream.send(created)).toBe(true);
      await until(() => expect(principal.received).toHaveLength(1));
      const [received] = agent.received;
      expect(received).toMatchObject({ ...created, data: expect.anything(), extensions: { ...created.extensions } });
      expect(JSON.parse(Buffer.from(received?.data ?? []).toString())).toEqual(application);
      expect(received?.extensions.sentat).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      expect(principal.received[0]).toMatchObject({
        type: eventTypes.processed,
        target: 'eventProcessed',
        resourceId: 'guestbook_uid-1',
        eventId: 'guestbook_uid-1_42',
        extensions: received?.extensions,
      });

      agent.streams[0]?.send(
        messageEvent(targets.resourceResync, eventTypes.requestResourceResync, {}, { source: agentSource }),
      );
      await until(() => expect(agent.received.at(-1)?.type).toBe(eventTypes.processed));
      expect(principal.server.connectedAgents()).toEqual(['cluster1']);
    });

    test('a newer connection of an agent replaces the older one', async () => {
      const principal = await startPrincipal();
      const first = startAgent(principal.server.port, { backoff: { initialMs: 60_000, maxMs: 60_000 } });
      await until(() => expect(principal.sessions).toHaveLength(1));
      startAgent(principal.server.port);
      await until(() => expect(principal.sessions).toHaveLength(2));
      await until(() => expect(first.closed).toHaveLength(1));
      expect(first.closed[0]?.message).toContain('replaced by a newer connection');
      expect(principal.closed).toHaveLength(1);
      expect(principal.sessions.map(({ stream }) => stream.ended)).toEqual([true, false]);
      expect(principal.sessions[0]?.stream.send(created)).toBe(false);
      expect(principal.sessions[1]?.stream.send(created)).toBe(true);
    });

    test('an agent comes back after the principal was gone, and its log distinguishes this from an orderly end', async () => {
      const principal = await startPrincipal();
      const { port } = principal.server;
      const agent = startAgent(port);
      await until(() => expect(agent.streams).toHaveLength(1));
      await principal.server.close();
      await until(() => expect(agent.closed).toHaveLength(1));
      const again = await startPrincipal({ port });
      await until(() => expect(again.sessions).toHaveLength(1));
      await until(() => expect(agent.streams).toHaveLength(2));
    });

    test('a forced disconnect lets the agent return', async () => {
      const principal = await startPrincipal();
      const agent = startAgent(principal.server.port);
      await until(() => expect(principal.sessions).toHaveLength(1));
      expect(principal.server.disconnect('cluster1', 'its certificate was revoked')).toBe(true);
      expect(principal.server.disconnect('nobody', '')).toBe(false);
      await until(() => expect(principal.sessions).toHaveLength(2));
      expect(agent.closed[0]?.message).toContain('its certificate was revoked');
    });

    test('a new token key: agents log in again, calls with tokens of the former one go on', async () => {
      const tokens = TokenAuthority.fromPem(signingKey);
      const principal = await startPrincipal({ tokens });
      const agent = startAgent(principal.server.port);
      await until(() => expect(agent.streams).toHaveLength(1));
      tokens.rotate(createSigningKey());
      principal.server.renewLogins(50);
      await until(() => expect(agent.streams).toHaveLength(2));
      expect(principal.requests).toHaveLength(2);
      expect(agent.failures.map(({ message }) => message)).toEqual([expect.stringContaining('log in anew')]);
    });

    test('ten thousand events in one go arrive in order, and a full connection reports it', async () => {
      const principal = await startPrincipal();
      const agent = startAgent(principal.server.port);
      await until(() => expect(principal.sessions).toHaveLength(1));
      const [session] = principal.sessions;
      const count = 10_000;
      let next = 0;
      let fullTimes = 0;
      const fill = () => {
        while (next < count) {
          const object = { metadata: { name: `a${next++}`, uid: 'u', resourceVersion: '1' }, spec: 'x'.repeat(500) };
          const isWritable = session?.stream.send(
            objectEvent(targets.application, eventTypes.specUpdate, object, { source: principalSource }),
          );
          if (!isWritable) {
            fullTimes++;
            return;
          }
        }
      };
      session?.stream.onDrain(fill);
      fill();
      await until(() => expect(principal.received).toHaveLength(count));
      expect(agent.received.map((event) => event.resourceId)).toEqual(
        Array.from({ length: count }, (_, index) => `a${index}_u`),
      );
      expect(fullTimes).toBeGreaterThan(0);
    });

    test('an event of 8 MB passes, one over the limit is refused at the sender', async () => {
      const principal = await startPrincipal({ maxMessageBytes: 10_000_000 });
      const agent = startAgent(principal.server.port, { compression: true });
      await until(() => expect(principal.sessions).toHaveLength(1));
      const big = (size: number) => {
        const object = {
          metadata: { name: 'big', uid: 'u', resourceVersion: '1' },
          spec: randomBytes(size / 2).toString('hex'),
        };
        return objectEvent(targets.application, eventTypes.create, object, { source: principalSource });
      };
      principal.sessions[0]?.stream.send(big(8_000_000));
      await until(() => expect(agent.received).toHaveLength(1));
      expect(agent.received[0]?.data.length).toBeGreaterThan(8_000_000);
      agent.streams[0]?.send(big(8_000_000));
      await until(() => expect(principal.received.at(-1)?.data.length).toBeGreaterThan(8_000_000));
      expect(() => principal.sessions[0]?.stream.send(big(11_000_000))).toThrow(
        expect.objectContaining({ code: 'too-large' }),
      );
    });

    test('plaintext works too, with credentials in the request', async () => {
      const principal = await startPrincipal({ tls: 'plaintext' });
      startAgent(principal.server.port, {
        tls: () => 'plaintext',
        credentials: () => ({ method: 'userpass', credentials: { name: 'cluster7' } }),
      });
      await until(() => expect(principal.sessions[0]?.agent).toBe('cluster7'));
    });

    test('a check of the certificate takes the place of that of the host name', async () => {
      const elsewhere = await ca.issue({ subject: 'CN=principal', names: ['elsewhere.example'], usage: 'server' });
      const principal = await startPrincipal({ tls: { ...elsewhere, clientCa: ca.cert } });
      const own = await ca.issue({ subject: 'CN=cluster1' });
      const shown: string[] = [];
      const checkServer = (chain: readonly X509Certificate[]) => {
        shown.push(...chain.map(({ subject }) => subject));
        if (shown.length === chain.length) {
          throw new Error('it is somebody else');
        }
      };
      const agent = startAgent(principal.server.port, { tls: () => ({ ca: ca.cert, ...own, checkServer }) });
      await until(() => expect(principal.sessions[0]?.agent).toBe('cluster1'));
      expect(shown[0]).toBe('CN=principal');
      expect(agent.failures).toEqual([expect.objectContaining({ code: 'server-untrusted' })]);
      expect(agent.failures[0]?.message).toMatch('it is somebody else');
    });

    test('new TLS material is used for new connections, open ones stay', async () => {
      const principal = await startPrincipal();
      const first = startAgent(principal.server.port);
      await until(() => expect(principal.sessions).toHaveLength(1));
      const renewed = await otherCa.issue({ subject: 'CN=principal', names: ['127.0.0.1'], usage: 'server' });
      principal.server.setTls({ ...renewed, clientCa: ca.cert, requireClientCertificate: true });
      const other = await ca.issue({ subject: 'CN=cluster2' });
      startAgent(principal.server.port, { tls: () => ({ ca: otherCa.cert, ...other }) });
      await until(() => expect(principal.sessions).toHaveLength(2));
      expect(first.closed).toEqual([]);
      expect(() => principal.server.setTls({ cert: 'nonsense', key: 'nonsense' })).toThrow();
    });
  });

  describe('an agent whose certificate was renewed', () => {
    const lookMs = 60_000;
    let current: TestCertificate;
    let renewed: TestCertificate;
    beforeEach(async () => {
      // In the last tenth of its life.
      current = await ca.issue({ subject: 'CN=cluster1', notAfter: new Date(Date.now() + 3_600_000) });
      renewed = await ca.issue({ subject: 'CN=cluster1' });
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    });
    afterEach(() => {
      vi.useRealTimers();
    });

    test('is logged in on its next connection before it leaves the one that it has', async () => {
      const endedAtLogin: number[] = [];
      let principal: TestPrincipal | undefined;
      principal = await startPrincipal({
        authenticate: async () => {
          endedAtLogin.push(principal?.closed.length ?? -1);
          return { agent: 'cluster1' };
        },
      });
      const agent = startAgent(principal.server.port, { tls: () => ({ ca: ca.cert, ...current }) });
      await until(() => expect(agent.streams).toHaveLength(1));
      vi.advanceTimersByTime(lookMs);
      expect(agent.streams).toHaveLength(1);
      current = renewed;
      vi.advanceTimersByTime(lookMs);
      await until(() => expect(agent.streams).toHaveLength(2));
      expect(endedAtLogin).toEqual([0, 0]);
      expect(agent.closed).toEqual([undefined]);
      expect(agent.failures).toEqual([]);
      expect(principal.server.connectedAgents()).toEqual(['cluster1']);
      principal.sessions.at(-1)?.stream.send(created);
      await until(() => expect(agent.received).toHaveLength(1));
    });

    test('keeps its connection until another certificate exists', async () => {
      const principal = await startPrincipal();
      const agent = startAgent(principal.server.port, { tls: () => ({ ca: ca.cert, ...current }) });
      await until(() => expect(agent.streams).toHaveLength(1));
      current = await otherCa.issue({ subject: 'CN=cluster1' });
      vi.advanceTimersByTime(lookMs);
      const complaints = () =>
        agent.log.entries.filter(({ message }) => message.startsWith('No connection that takes'));
      await until(() => expect(complaints()).toHaveLength(1));
      expect(agent.closed).toEqual([]);
      principal.sessions[0]?.stream.send(created);
      await until(() => expect(agent.received).toHaveLength(1));
      current = renewed;
      vi.advanceTimersByTime(lookMs);
      await until(() => expect(agent.streams).toHaveLength(2));
      expect(agent.failures).toEqual([]);
    });
  });

  describe('what an operator reads when an agent cannot connect', () => {
    let principal: TestPrincipal;
    beforeEach(async () => {
      principal = await startPrincipal();
    });
    const failureOf = async (agent: TestAgent): Promise<WireError> => {
      await until(() => expect(agent.failures.length).toBeGreaterThan(0));
      return agent.failures[0] as WireError;
    };
    const logged = (level: string, pattern: RegExp) =>
      until(() => {
        const messages = principal.log.entries.filter((entry) => entry.level === level).map((entry) => entry.message);
        expect(messages).toContainEqual(expect.stringMatching(pattern));
      });

    test('a client certificate of another CA', async () => {
      const foreign = await otherCa.issue({ subject: 'CN=cluster1' });
      const error = await failureOf(startAgent(principal.server.port, { tls: () => ({ ca: ca.cert, ...foreign }) }));
      expect(error.code).toBe('certificate-rejected');
      expect(error.message).toMatch(
        /"CN=cluster1" was issued by "CN=foreign CA", which is not a CA that this principal trusts/,
      );
      await logged('warn', /turned away: .*foreign CA/);
      expect(principal.requests).toEqual([]);
    });

    test('a client certificate of a CA without a name, and itself without one, as SPIFFE IDs are mostly in', async () => {
      const nameless = await createTestCa('');
      const foreign = await nameless.issue({ subject: '' });
      const error = await failureOf(startAgent(principal.server.port, { tls: () => ({ ca: ca.cert, ...foreign }) }));
      expect(error.code).toBe('certificate-rejected');
      expect(error.message).toMatch(
        /the certificate of "" was issued by "", which is not a CA that this principal trusts/,
      );
    });

    test('an expired client certificate', async () => {
      const expired = await ca.issue({ subject: 'CN=cluster1', notAfter: new Date(Date.now() - 60_000) });
      const error = await failureOf(startAgent(principal.server.port, { tls: () => ({ ca: ca.cert, ...expired }) }));
      expect(error.code).toBe('certificate-rejected');
      expect(error.message).toMatch(/certificate of "CN=cluster1" expired on/);
      await logged('warn', /turned away: .*expired on/);
    });

    test('no client certificate', async () => {
      const error = await failureOf(startAgent(principal.server.port, { tls: () => ({ ca: ca.cert }) }));
      expect(error).toMatchObject({
        code: 'certificate-rejected',
        message: expect.stringContaining('presented no certificate'),
      });
    });

    test('a name that the principal does not know', async () => {
      const unknown = await ca.issue({ subject: 'CN=stranger' });
      const error = await failureOf(startAgent(principal.server.port, { tls: () => ({ ca: ca.cert, ...unknown }) }));
      expect(error.code).toBe('unauthenticated');
      expect(error.message).toContain('authentication failed');
      expect(error.hint).toContain('unknown or revoked');
      await logged('warn', /refused: no cluster of this name/);
    });

    test("a principal's certificate of another CA", async () => {
      const error = await failureOf(
        startAgent(principal.server.port, { tls: () => ({ ca: otherCa.cert, ...agentTls }) }),
      );
      expect(error.code).toBe('server-untrusted');
      expect(error.message).toContain('not issued by a CA that we trust');
      // Agents of the original, with WebSocket, look at the certificate on a connection without a call.
      await logged(webSocket ? 'debug' : 'info', /left without a call.*trust this principal's certificate/);
    });

    test("a principal's certificate for another name", async () => {
      const elsewhere = await ca.issue({ subject: 'CN=principal', names: ['hub.example'], usage: 'server' });
      principal.server.setTls({ ...elsewhere, clientCa: ca.cert, requireClientCertificate: true });
      const error = await failureOf(startAgent(principal.server.port));
      expect(error).toMatchObject({ code: 'server-untrusted', message: expect.stringContaining('for another name') });
    });

    test('nobody listens, not TLS, no address', async () => {
      const { port } = principal.server;
      await principal.server.close();
      expect(await failureOf(startAgent(port))).toMatchObject({
        code: 'unreachable',
        message: `The principal at 127.0.0.1:${port} cannot be reached: nothing listens there`,
      });
      const plain = await startPrincipal({ tls: 'plaintext' });
      expect((await failureOf(startAgent(plain.server.port))).message).toMatch(/plaintext port|reset|closed/);
      expect((await failureOf(startAgent(1, { server: 'nonsense' }))).message).toContain('host:port');
    });

    test('a principal that takes no agents now', async () => {
      const standby = await startPrincipal({ refuse: () => 'not accepting connections in state replicating' });
      const agent = startAgent(standby.server.port);
      expect(await failureOf(agent)).toMatchObject({ code: 'not-accepting' });
      expect(standby.sessions).toEqual([]);
      expect(agent.streams).toEqual([]);
      expect(agent.log.entries.map(({ message }) => message)).not.toContain('Connected to the principal');
      expect(standby.log.entries.map(({ message }) => message)).toContainEqual(
        expect.stringMatching(/state replicating/),
      );
    });

    test('failing attempts grow apart instead of hammering', async () => {
      const unknown = await ca.issue({ subject: 'CN=stranger' });
      const waits: number[] = [];
      startAgent(principal.server.port, {
        tls: () => ({ ca: ca.cert, ...unknown }),
        backoff: { initialMs: 10, maxMs: 80 },
        onDisconnected: (_, retryInMs) => waits.push(retryInMs),
      });
      await until(() => expect(waits.length).toBeGreaterThanOrEqual(5));
      const bounds = [10, 20, 40, 80, 80];
      for (const [index, bound] of bounds.entries()) {
        expect(waits[index]).toBeGreaterThanOrEqual(bound / 2);
        expect(waits[index]).toBeLessThanOrEqual(bound);
      }
    });
  });
});
