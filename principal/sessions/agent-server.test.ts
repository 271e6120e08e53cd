import { connect } from 'node:tls';
import { hash as bcrypt } from 'bcryptjs';
import { expect, test } from 'vitest';
import { Attacker } from '../../e2e/hostile/index.ts';
import { parseUserDatabase, userpassMethod } from '../../lib/auth/index.ts';
import { until } from '../../lib/base/testing.ts';
import { OpenConnections } from '../../lib/credentials/index.ts';
import { createLogger, parseKeyPair, Reloadable, type TlsKeyPair } from '../../lib/ops/index.ts';
import { createAuthority, issueCertificate } from '../../lib/pki/index.ts';
import { serveAgents } from './agent-server.ts';
import { type OpenSession, OpenSessions } from './open-sessions.ts';
import { Sessions } from './sessions.ts';

const logger = createLogger({ level: 'fatal' });

/** Serves agents without client certificates on a free port. */
async function serve(options: object, listenHost = '127.0.0.1') {
  const authority = await createAuthority({ commonName: 'authority' });
  const issued = await issueCertificate({ authority, commonName: 'x', hosts: ['127.0.0.1'], usages: ['server'] });
  const server = new Reloadable<TlsKeyPair>({ origin: 'Secret argocd/x', parse: parseKeyPair, logger });
  server.offer({ 'tls.crt': issued.certificate, 'tls.key': issued.key });
  const served = await serveAgents({
    settings: {
      tls: { from: 'secrets', requireClientCertificate: false, settings: {} },
      flags: {
        namespace: 'argocd',
        'listen-host': listenHost,
        'listen-port': 0,
        'grpc-max-message-size': 1_000_000,
        'keepalive-min-interval': 0,
      },
    },
    credentials: { server, clientTrust: undefined, signingKey: undefined },
    method: { name: 'any' },
    modes: { agents: { has: () => false, clustersOf: () => [] }, recorded: () => undefined },
    introductions: { record: () => undefined },
    refused: () => undefined,
    called: () => undefined,
    loggedIn: () => undefined,
    connections: new OpenConnections({ logger }),
    logger,
    ...options,
  } as never);
  return { ...served, attack: { port: served.server.port, ca: authority.certificate } };
}

test('an agent is looked at again when it opens its stream: it may have lost its cluster Secret since it logged in', async () => {
  const events: string[] = [];
  const { server, tokens, attack } = await serve({
    loggedIn: (agent: string) => events.push(`looked at ${agent}`),
    sessions: {
      subscribe: ({ agent }: { agent: string }) => {
        events.push(`stream of ${agent}`);
        return { event: () => undefined, closed: () => undefined };
      },
    },
    signal: new AbortController().signal,
  });
  try {
    const { accessToken } = await tokens.issue({ agent: 'edge', mode: 'managed' });
    const attacker = await Attacker.connect(attack);
    attacker.subscribe(accessToken);
    await until(() => expect(events).toContain('stream of edge'));
    expect(events).toContain('looked at edge');
    attacker.close();
  } finally {
    await server.close();
  }
});

test('a user that is removed loses its stream and its tokens, the others keep theirs', async () => {
  const stop = new AbortController();
  const hash = await bcrypt('x', 4);
  let users = parseUserDatabase(`edge:${hash}\nother:${hash}`);
  const open = new OpenSessions(() => true);
  const sessions = new Sessions({ open, logger } as never);
  sessions.subscribe = (session) => {
    open.add({ session, adapter: undefined as never, since: new Date(), isServed: true });
    return { event: () => undefined, closed: () => void open.remove(open.get(session.agent) as OpenSession) };
  };
  const { server, attack } = await serve({
    method: userpassMethod(async () => users),
    sessions,
    loginCheckMs: 10,
    signal: stop.signal,
  });
  try {
    const attackers = await Promise.all(['edge', 'other'].map(() => Attacker.connect(attack)));
    const logins = await Promise.all(
      ['edge', 'other'].map((clientid, index) =>
        attackers[index]?.login('managed', { method: 'userpass', credentials: { clientid, clientsecret: 'x' } }),
      ),
    );
    const streams = attackers.map((attacker, index) => attacker.subscribe(logins[index]?.accessToken));
    await until(() => expect(open.all()).toHaveLength(2));
    users = parseUserDatabase(`other:${hash}`);
    expect(await streams[0]?.end).toMatchObject({ message: 'the credentials of this agent were withdrawn' });
    expect(open.all().map(({ session }) => session.agent)).toEqual(['other']);
    const again = attackers[0]?.subscribe(logins[0]?.accessToken);
    expect(await again?.end).toMatchObject({ code: 16 });
    expect(await attackers[0]?.refresh(logins[0]?.refreshToken ?? '')).toMatchObject({ code: 16 });
    expect(await attackers[1]?.refresh(logins[1]?.refreshToken ?? '')).toMatchObject({ code: 0 });
    for (const attacker of attackers) {
      attacker.close();
    }
  } finally {
    stop.abort();
    await server.close();
  }
});

test.each([
  ['', true],
  ['0.0.0.0', true],
  ['[::]', true],
  ['[::1]', false],
])(
  'agents reach a principal that listens on %j over IPv6, and over IPv4: %s',
  { tags: 'ipv6' },
  async (listenHost, isIpv4Served) => {
    const stop = new AbortController();
    const { server, attack } = await serve({ signal: stop.signal }, listenHost);
    const reach = (host: string) =>
      new Promise<boolean>((resolve) => {
        const socket = connect({ host, port: server.port, ca: attack.ca, servername: '', ALPNProtocols: ['h2'] });
        socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
        socket.on('secureConnect', () => {
          socket.destroy();
          resolve(true);
        });
      });
    try {
      expect(await reach('::1')).toBe(true);
      expect(await reach('127.0.0.1')).toBe(isIpv4Served);
    } finally {
      stop.abort();
      await server.close();
    }
  },
);
