import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { request as httpsRequest } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { Attacker, frame } from '../e2e/hostile/index.ts';
import { createSigningRequest } from '../e2e/ocm/signing-request.ts';
import { createAuthMethod, fingerprintOf, parseAuth, TokenAuthority } from '../lib/auth/index.ts';
import { until } from '../lib/base/testing.ts';
import { OpenConnections } from '../lib/credentials/index.ts';
import { createLogger, parseKeyPair, parseTrust, Reloadable, type TextFields } from '../lib/ops/index.ts';
import { createAuthority, issueCertificate, type KeyCertificate } from '../lib/pki/index.ts';
import {
  eventTypes,
  LogStreamData,
  messageEvent,
  type ServerTls,
  TerminalStreamData,
  targets,
  type WireEvent,
} from '../lib/wire/index.ts';
import { RenewRequest } from '../proto/gen/enrolmentapi/enrolment.ts';
import type { SigningKey } from './credentials.ts';
import { servePages } from './fleet-page/page-server.ts';
import { replicationAccess } from './ha/access.ts';
import { LiveAccess } from './live/live-access.ts';
import { serveRedisProxy } from './live/redis/proxy.ts';
import { FakeLiveStream, FakeStream } from './live/testing/fake-stream.ts';
import { createPeerIdentity, type PeerIdentity } from './peers/peer-identity.ts';
import { servePeers } from './peers/peer-server.ts';
import type { Peer } from './replicas/index.ts';
import { serveAgents } from './sessions/agent-server.ts';

// What proved a client is withdrawn while everything is open that it may have open, at every port that authenticates: on real
// sockets, with TLS. Whoever has other credentials keeps what is open.

const logger = createLogger({ level: 'fatal' });
const nothing = () => undefined;
const endOf = ({ certificate }: KeyCertificate) => new X509Certificate(certificate).validToDate.getTime();
/** What is ended is closed within this time. */
const atOnceMs = 1_000;

const withdrawals = [
  'blocked',
  'authority gone',
  'expired',
  'cluster Secret gone',
  'token key gone',
  "replica's Lease gone",
] as const;
type Withdrawal = (typeof withdrawals)[number];
const certificateGoes: readonly Withdrawal[] = ['blocked', 'authority gone', 'expired'];
const agentGoes: readonly Withdrawal[] = [...certificateGoes, 'cluster Secret gone', 'token key gone'];

/** What a client has open, and which withdrawals end it. Others leave it alone. */
const kinds: Readonly<Record<string, readonly Withdrawal[]>> = {
  'agents: event stream': agentGoes,
  'agents: one-way stream': agentGoes,
  'agents: log stream': agentGoes,
  'agents: terminal stream': agentGoes,
  'agents: idle connection': certificateGoes,
  'agents: connection without a login': certificateGoes,
  'agents: HTTP/1.1 connection': certificateGoes,
  'replication: event stream': certificateGoes,
  'resource proxy: watch': [...certificateGoes, 'cluster Secret gone'],
  'resource proxy: watch by token': agentGoes,
  'resource proxy: upload': [...certificateGoes, 'cluster Secret gone'],
  'resource proxy: terminal': [...certificateGoes, 'cluster Secret gone'],
  'resource proxy: idle connection': certificateGoes,
  "fleet page: proxy's stream": certificateGoes,
  // Redis asks for its password, and for no certificate.
  'Redis proxy: connection': [],
  // No authority vouches for a replica: its Lease names its certificate.
  'replicas: request under way': ["replica's Lease gone"],
  'replicas: idle connection': ["replica's Lease gone"],
};

interface Client {
  readonly agent: string;
  readonly own: KeyCertificate;
  readonly standby: KeyCertificate;
  readonly replica: PeerIdentity;
  readonly tokens: TokenAuthority;
}

/** When something was closed, by its kind. */
type Closings = Map<string, number | undefined>;

async function startPrincipal() {
  const [first, second] = await Promise.all(['first', 'second'].map((commonName) => createAuthority({ commonName })));
  const authority = { first: first as KeyCertificate, second: second as KeyCertificate };
  const server = await issueCertificate({
    authority: authority.second,
    commonName: 'principal',
    usages: ['server'],
    hosts: ['127.0.0.1'],
  });
  const reloadable = <T>(parse: (fields: TextFields) => T, fields: TextFields) => {
    const value = new Reloadable({ origin: 'x', parse, logger });
    value.offer(fields);
    return value;
  };
  const trusted = (...all: KeyCertificate[]) => ({ 'ca.crt': all.map(({ certificate }) => certificate).join('\n') });
  const keys = [1, 2].map(() => generateKeyPairSync('rsa', { modulusLength: 2048 }));
  const pem = (which: number) => `${keys[which]?.privateKey.export({ type: 'pkcs8', format: 'pem' })}`;
  const former = `${keys[0]?.publicKey.export({ type: 'spki', format: 'pem' })}`;
  const clientTrust = reloadable(
    (fields) => parseTrust(fields, ['ca.crt']),
    trusted(authority.first, authority.second),
  );
  const signingKey = reloadable<SigningKey>(
    (fields) => ({ key: fields.key ?? '', former: fields.former === undefined ? [] : [fields.former] }),
    { key: pem(1), former },
  );
  const blocked = new Set<string>();
  const isBlocked = (fingerprint: string) => blocked.has(fingerprint);
  const connections = new OpenConnections({ isBlocked, logger });
  const method = await createAuthMethod(parseAuth('mtls:subject:CN=([^,]+)'), { isRevoked: isBlocked });
  const issued: string[] = [];
  const stop = new AbortController();
  const live = playedCluster();
  const { server: agents, tokens } = await serveAgents({
    settings: {
      tls: { from: 'secrets', requireClientCertificate: true, settings: {} },
      flags: {
        namespace: 'argocd',
        'listen-host': '127.0.0.1',
        'listen-port': 0,
        'grpc-max-message-size': 1_000_000,
        'keepalive-min-interval': 0,
        'enable-websocket': true,
        'client-cert-subject-match': true,
      },
    },
    credentials: {
      server: reloadable(parseKeyPair, { 'tls.crt': server.certificate, 'tls.key': server.key }),
      clientTrust,
      signingKey,
    },
    method,
    connections,
    modes: { agents: { has: () => true, clustersOf: () => [] }, recorded: nothing },
    introductions: { record: nothing },
    refused: nothing,
    called: nothing,
    loggedIn: nothing,
    sessions: { subscribe: () => ({ event: nothing, unreadable: nothing, closed: nothing }) },
    live: {
      logs: () => ({ message: nothing, closed: nothing }),
      terminal: () => ({ message: nothing, closed: nothing }),
    },
    enrolment: {
      renew: async (agent: string) => {
        issued.push(agent);
        return { certificate: 'x', authorities: 'y' };
      },
      loggedIn: nothing,
    },
    pair: {
      refuse: nothing,
      replication: {
        authorize: replicationAccess({
          method,
          isBlocked,
          isAgent: () => false,
          allowed: ['hub2', 'hub3'],
          peerHost: undefined,
          logger,
        }),
        subscribe: () => ({ acknowledged: nothing, closed: nothing }),
      },
    },
    logger,
    signal: stop.signal,
  } as never);
  const tls = (clientCa: string): ServerTls => ({ cert: server.certificate, key: server.key, clientCa });
  const resources = await live.serveResources({
    address: { host: '127.0.0.1', port: 0 },
    tls: tls(clientTrust.value ?? ''),
    tokens,
    connections,
    terminalIdleMs: 0,
    mostAnswerBytes: 1024 * 1024,
    metrics: { request: nothing, failed: nothing },
    audit: undefined,
    logger,
  });
  const page = await servePages({
    address: { host: '127.0.0.1', port: 0 },
    path: '/',
    tls: tls(clientTrust.value ?? ''),
    handler: async ({ caller }, response) => {
      response.writeHead(caller.certificate === undefined ? 401 : 200).write('\n');
      return undefined;
    },
    certified: connections.port('fleet page'),
    logger,
  });
  const redis = createTcpServer((socket) => onTestFinished(() => void socket.destroy())).listen(0, '127.0.0.1');
  await once(redis, 'listening');
  const redisProxy = await serveRedisProxy({
    host: '127.0.0.1',
    port: 0,
    tls: { cert: server.certificate, key: server.key },
    upstream: { host: '127.0.0.1', port: (redis.address() as AddressInfo).port, tls: () => undefined },
    cache: { get: async () => undefined, subscribe: async () => true, ping: async () => undefined },
    agentOf: nothing,
    keyPrefix: '',
    logger,
  });
  const livePeers: Peer[] = [];
  let peersChanged: () => void = nothing;
  const replicas = await servePeers({
    host: '127.0.0.1',
    port: 0,
    identity: await createPeerIdentity(),
    metrics: { refused: nothing, received: nothing } as never,
    logger,
  });
  replicas.admit(
    {
      identity: 'this',
      holderOf: () => 'here',
      peers: () => livePeers,
      subscribe: (changed) => {
        peersChanged = () => changed('edge');
        return nothing;
      },
    },
    { request: (_call, _request, response) => void response.writeHead(200).write('\n'), upgrade: nothing },
  );
  clientTrust.subscribe(() => {
    resources.setTls(tls(clientTrust.value ?? ''));
    page.setTls(tls(clientTrust.value ?? ''));
  });
  onTestFinished(async () => {
    stop.abort();
    await Promise.all([agents.close(), resources.close(), page.close(), redisProxy.close(), replicas.close()]);
    redis.close();
  });
  const signers = [0, 1].map((which) => TokenAuthority.fromPem(pem(which)));
  const client = async (
    agent: string,
    standby: string,
    signed: KeyCertificate,
    lifetimeMs?: number,
  ): Promise<Client> => {
    const life = lifetimeMs === undefined ? {} : { lifetimeMs };
    const issue = () =>
      Promise.all([
        issueCertificate({ authority: signed, commonName: agent, usages: ['client'], ...life }),
        issueCertificate({ authority: signed, commonName: standby, usages: ['server', 'client'], ...life }),
      ]);
    let [own, other] = await issue();
    // They end in the same second.
    while (endOf(own) !== endOf(other)) {
      [own, other] = await issue();
    }
    const signer = signers[signed === authority.first ? 0 : 1] as TokenAuthority;
    const replica = await createPeerIdentity();
    livePeers.push({ identity: standby, address: '127.0.0.1:1', fingerprint: replica.fingerprint });
    return { agent, own, standby: other, replica, tokens: signer };
  };
  const withdraw: Readonly<Record<Withdrawal, (from: Client) => Promise<number>>> = {
    blocked: async ({ own, standby, replica }) => {
      for (const { certificate } of [own, standby, replica]) {
        blocked.add(fingerprintOf(new X509Certificate(certificate)));
      }
      connections.blocklistChanged();
      return performance.now();
    },
    'authority gone': async () => {
      clientTrust.offer(trusted(authority.second));
      return performance.now();
    },
    expired: async ({ own }) => performance.now() + endOf(own) - Date.now(),
    'cluster Secret gone': async ({ agent }) => {
      connections.agentGone(agent);
      return performance.now();
    },
    'token key gone': async () => {
      signingKey.offer({ key: pem(1) });
      return performance.now();
    },
    "replica's Lease gone": async ({ replica: { fingerprint } }) => {
      livePeers.splice(
        livePeers.findIndex((peer) => peer.fingerprint === fingerprint),
        1,
      );
      peersChanged();
      return performance.now();
    },
  };
  const ports = {
    agents: agents.port,
    resources: resources.port,
    page: page.port,
    redis: redisProxy.port,
    replicas: replicas.port,
  };
  return { authority, ports, ca: authority.second.certificate, client, withdraw, issued };
}

/** Clusters that answer every watch with a stream, and open every terminal. */
function playedCluster(): LiveAccess {
  const live: LiveAccess = new LiveAccess({
    isConnected: () => true,
    send: (agent: string, event: WireEvent) => {
      setImmediate(() => answer(agent, event));
      return true;
    },
  });
  const answer = (agent: string, { eventId: uuid, target }: WireEvent) => {
    if (target === targets.terminal) {
      const handlers = new FakeLiveStream<TerminalStreamData>(agent).servedBy(live.streams.terminal);
      handlers.message(TerminalStreamData.fromPartial({ requestUuid: uuid }));
      return;
    }
    const handlers = new FakeStream(agent).servedBy(live.streams.logs);
    const response = { uuid, status: 200, contentType: 'application/json', streamed: true };
    const ids = { resourceId: uuid, eventId: uuid };
    live.answered(agent, messageEvent(targets.resource, eventTypes.response, response, { source: '' }, ids));
    handlers.message(LogStreamData.fromPartial({ requestUuid: uuid, data: Buffer.from('{"type":"ADDED"}\n') }));
  };
  return live;
}

/** Opens everything that a client may have open. */
async function openAll(principal: Awaited<ReturnType<typeof startPrincipal>>, client: Client): Promise<Closings> {
  const { ports, ca } = principal;
  const { agent, own, standby, replica: replicaIdentity, tokens } = client;
  const closings: Closings = new Map(Object.keys(kinds).map((kind) => [kind, undefined]));
  const closed = (kind: string) => closings.set(kind, closings.get(kind) ?? performance.now());
  const attacker = (certificate: KeyCertificate) => Attacker.connect({ port: ports.agents, ca, certificate });
  const over = (kind: string, end: Promise<unknown>) => void end.then(() => closed(kind));
  const { accessToken } = await tokens.issue({ agent, mode: 'managed' });

  const [streams, idle, stranger, replica] = await Promise.all([own, own, own, standby].map(attacker));
  onTestFinished(() => [streams, idle, stranger, replica].forEach((one) => void one?.close()));
  const events = (streams as Attacker).subscribe(accessToken);
  over('agents: event stream', events.end);
  await once(events.stream, 'response');
  for (const [kind, path] of [
    ['agents: one-way stream', '/eventstreamapi.EventStream/Push'],
    ['agents: log stream', '/principal.apis.logstreamapi.LogStreamService/StreamLogs'],
    ['agents: terminal stream', '/terminalstreamapi.TerminalStreamService/StreamTerminal'],
  ] as const) {
    over(kind, (streams as Attacker).call(path, { authorization: accessToken }).end);
  }
  expect((await idle?.login())?.code).toBe(0);
  idle?.session.on('close', () => closed('agents: idle connection'));
  stranger?.session.on('close', () => closed('agents: connection without a login'));
  const subscription = replica?.call('/replicationapi.Replication/Subscribe');
  subscription?.stream.write(frame(new Uint8Array()));
  over('replication: event stream', subscription?.end ?? Promise.resolve());

  const raw = (port: number, alpn?: string[], pair = own): Promise<TLSSocket> =>
    new Promise((resolve, reject) => {
      const socket = connect({
        host: '127.0.0.1',
        port,
        ca,
        cert: pair.certificate,
        key: pair.key,
        // A replica knows another by its fingerprint.
        rejectUnauthorized: pair !== replicaIdentity,
        ...(alpn && { ALPNProtocols: alpn }),
      });
      onTestFinished(() => void socket.destroy());
      socket.on('error', reject);
      socket.on('secureConnect', () => resolve(socket));
    });
  const http1 = await raw(ports.agents, ['http/1.1']);
  http1.resume().on('close', () => closed('agents: HTTP/1.1 connection'));
  const http = async (kind: string, port: number, path: string, options: object = {}, body?: string, pair = own) => {
    const socket = await raw(port, undefined, pair);
    socket.on('close', () => closed(kind));
    const request = httpsRequest({ path, createConnection: () => socket, headers: { host: 'x' }, ...options });
    request.on('error', nothing);
    if (body === undefined) {
      request.end();
    } else {
      request.write(body);
      return;
    }
    const status = await new Promise((resolve) => request.on('response', (got) => resolve(got.resume().statusCode)));
    expect(status, kind).toBe(200);
  };
  const watch = '/api/v1/namespaces/shop/pods?watch=1';
  const bearer = `Bearer ${await tokens.issueResourceProxy(agent)}`;
  await http('resource proxy: watch', ports.resources, watch);
  await http('resource proxy: watch by token', ports.resources, watch, {
    headers: { host: 'x', authorization: bearer },
  });
  const posted = { method: 'POST', headers: { host: 'x', 'content-type': 'application/json', 'content-length': 100 } };
  await http('resource proxy: upload', ports.resources, '/api/v1/namespaces/shop/pods', posted, '{');
  const unused = await raw(ports.resources);
  unused.resume().on('close', () => closed('resource proxy: idle connection'));
  const terminal = await raw(ports.resources);
  terminal.on('close', () => closed('resource proxy: terminal'));
  const upgraded = new Promise<string>((resolve) => terminal.once('data', (bytes) => resolve(`${bytes}`)));
  terminal.write(
    [
      'GET /api/v1/namespaces/shop/pods/web/exec?command=sh&stdin=true&stdout=true&tty=true HTTP/1.1',
      'Host: x',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n',
    ].join('\r\n'),
  );
  expect(await upgraded).toContain(' 101 ');
  terminal.resume();
  await http("fleet page: proxy's stream", ports.page, '/');
  for (const [kind, port, pair] of [
    ['Redis proxy: connection', ports.redis, own],
    ['replicas: idle connection', ports.replicas, replicaIdentity],
  ] as const) {
    (await raw(port, undefined, pair)).resume().on('close', () => closed(kind));
  }
  await http('replicas: request under way', ports.replicas, '/', {}, undefined, replicaIdentity);
  return closings;
}

test.each(withdrawals)(
  'everything that a withdrawn credential keeps open is ended at once: %s',
  async (withdrawal) => {
    const principal = await startPrincipal();
    const { authority, client } = principal;
    const other = await client('other', 'hub3', authority.second);
    const began = performance.now();
    const others = await openAll(principal, other);
    // Long enough to open as much again, however busy the machine is.
    const lifetimeMs = withdrawal === 'expired' ? 4_000 + 2 * (performance.now() - began) : undefined;
    const edge = await client('edge', 'hub2', authority.first, lifetimeMs);
    const closings = await openAll(principal, edge);
    const early = [...closings, ...others].filter(([, at]) => at !== undefined);
    expect(early, 'nothing is closed before').toEqual([]);
    const since = await principal.withdraw[withdrawal](edge);
    const ended = Object.keys(kinds).filter((kind) => kinds[kind]?.includes(withdrawal));
    await new Promise((resolve) => setTimeout(resolve, since - performance.now()));
    await until(() => expect(ended.filter((kind) => closings.get(kind) === undefined)).toEqual([])).catch(nothing);
    const took = Object.keys(kinds).map((kind) => {
      const at = closings.get(kind);
      return [kind, at === undefined ? undefined : Math.round(at - since)] as const;
    });
    for (const [kind, ms] of took) {
      const expected = ended.includes(kind) ? '' : ' (it does not depend on that)';
      console.log(`${withdrawal.padEnd(20)} ${kind.padEnd(36)} ${ms === undefined ? 'open' : `${ms} ms`}${expected}`);
    }
    expect(took.filter(([, ms]) => ms !== undefined).map(([kind]) => kind)).toEqual(ended);
    expect(took.filter(([, ms]) => ms !== undefined && (ms > atOnceMs || ms < -50))).toEqual([]);
    expect(
      [...others].filter(([, at]) => at !== undefined),
      'of others',
    ).toEqual([]);
  },
  60_000,
);

test.each(certificateGoes)('a connection whose certificate is withdrawn gets no new one: %s', async (withdrawal) => {
  const principal = await startPrincipal();
  const lifetimeMs = withdrawal === 'expired' ? 4_000 : undefined;
  const edge = await principal.client('edge', 'hub2', principal.authority.first, lifetimeMs);
  const { ports, ca } = principal;
  const open = await Attacker.connect({ port: ports.agents, ca, certificate: edge.own });
  onTestFinished(() => open.close());
  const { accessToken } = await open.login();
  const { request } = await createSigningRequest({ commonName: 'edge' });
  const renewal = () =>
    open.unary('/enrolmentapi.Enrolment/Renew', RenewRequest.encode({ request }).finish(), {
      authorization: accessToken,
    });
  expect((await renewal()).code).toBe(0);
  // Its request has begun, and is complete only when the certificate does not count any more.
  const late = open.call('/enrolmentapi.Enrolment/Renew', { authorization: accessToken });
  const since = await principal.withdraw[withdrawal](edge);
  await new Promise((resolve) => setTimeout(resolve, since + 50 - performance.now()));
  late.stream.end(frame(RenewRequest.encode({ request }).finish()));
  expect((await late.end).code).not.toBe(0);
  expect(principal.issued).toEqual(['edge']);
});
