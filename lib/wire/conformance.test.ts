import {
  Client,
  compressionAlgorithms,
  credentials,
  type handleUnaryCall,
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { livingFor, noLog, playAgent, playPrincipal } from '../../e2e/peer/index.ts';
import { messageBytes, recordedLines } from '../../e2e/recordings/index.ts';
import { AuthRequest, AuthResponse, RefreshTokenRequest } from '../../proto/gen/authapi/auth.ts';
import { Event, PushSummary } from '../../proto/gen/eventstreamapi/eventstream.ts';
import { VersionRequest, VersionResponse } from '../../proto/gen/versionapi/version.ts';
import { authenticateWith, GoExpression, mtlsMethod, TokenAuthority } from '../auth/index.ts';
import { until } from '../base/testing.ts';
import {
  agentSource,
  decodeEvent,
  encodeEvent,
  eventTypes,
  heartbeatEvent,
  messageEvent,
  principalSource,
  type Session,
  targets,
  type WireEvent,
  type WireServer,
} from './index.ts';
import { createSigningKey, createTestCa, type TestCa, type TestCertificate } from './testing/certificates.ts';

// Our server against another gRPC implementation's client, our client against its server.

const signingKey = createSigningKey();
const identity = <T>(value: T) => value;
const heartbeat = heartbeatEvent({ source: agentSource });

/** How a generated message is written and read. */
interface Codec<T> {
  encode(message: T): { finish(): Uint8Array };
  decode(bytes: Uint8Array): T;
}

/** The definition of a method for grpc-js. The programs' generated code has none: they do without that library. */
function method<I, O>(
  path: string,
  request: Codec<I>,
  response: Codec<O>,
  streams: { requestStream?: boolean; responseStream?: boolean } = {},
): MethodDefinition<I, O> {
  return {
    path,
    requestStream: streams.requestStream ?? false,
    responseStream: streams.responseStream ?? false,
    requestSerialize: (message) => Buffer.from(request.encode(message).finish()),
    requestDeserialize: (bytes) => request.decode(bytes),
    responseSerialize: (message) => Buffer.from(response.encode(message).finish()),
    responseDeserialize: (bytes) => response.decode(bytes),
  };
}

const authenticationService = {
  authenticate: method('/authapi.Authentication/Authenticate', AuthRequest, AuthResponse),
  refreshToken: method('/authapi.Authentication/RefreshToken', RefreshTokenRequest, AuthResponse),
};
const versionService = { version: method('/versionapi.Version/Version', VersionRequest, VersionResponse) };
const subscribeMethod = method('/eventstreamapi.EventStream/Subscribe', Event, Event, {
  requestStream: true,
  responseStream: true,
});
const pushMethod = method('/eventstreamapi.EventStream/Push', Event, PushSummary, { requestStream: true });

let ca: TestCa;
let serverTls: TestCertificate;
let agentTls: TestCertificate;
let otherTls: TestCertificate;

beforeAll(async () => {
  ca = await createTestCa();
  serverTls = await ca.issue({ subject: 'CN=principal', names: ['127.0.0.1'], usage: 'server' });
  agentTls = await ca.issue({ subject: 'CN=agent-managed' });
  otherTls = await ca.issue({ subject: 'CN=agent-autonomous' });
});

let stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.reverse()) {
    await stop();
  }
  stops = [];
});

describe('our server and a foreign client', () => {
  let server: WireServer;
  let sessions: Session[];
  let received: WireEvent[];
  let refusals: string[];
  let now: Date;
  let tokens: TokenAuthority;

  beforeEach(async () => {
    refusals = [];
    now = new Date();
    tokens = TokenAuthority.fromPem(signingKey, { now: () => now });
    const mtls = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+)') });
    ({ server, sessions, received } = await playPrincipal({
      tls: { ...serverTls, clientCa: ca.cert, requireClientCertificate: true },
      version: '99.9.9-unreleased',
      tokens,
      authenticate: (request, peer) => authenticateWith(mtls, request, peer),
      matchCertificateSubject: true,
      logger: { ...noLog, warn: (_, message) => refusals.push(message) },
    }));
    stops.push(() => server.close());
  });

  function connect(tls: TestCertificate = agentTls, options: object = {}): Client {
    const buffer = (pem: string) => Buffer.from(pem);
    const channel = credentials.createSsl(buffer(ca.cert), buffer(tls.key), buffer(tls.cert));
    const client = new Client(`127.0.0.1:${server.port}`, channel, options);
    stops.push(() => client.close());
    return client;
  }

  function unary(client: Client, path: string, request: Uint8Array, token?: string): Promise<Buffer> {
    const metadata = new Metadata();
    if (token !== undefined) {
      metadata.set('authorization', token);
    }
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        (bytes: Uint8Array) => Buffer.from(bytes),
        identity<Buffer>,
        request,
        metadata,
        (error, response) => {
          if (error) {
            reject(error);
          } else {
            resolve(response ?? Buffer.alloc(0));
          }
        },
      );
    });
  }

  const request = {
    method: 'mtls',
    credentials: {},
    mode: 'managed',
    version: '99.9.9-unreleased',
    agentNamespace: 'argocd',
  };

  async function logIn(client: Client, change: Partial<AuthRequest> = {}): Promise<AuthResponse> {
    const bytes = AuthRequest.encode({ ...request, ...change }).finish();
    return AuthResponse.decode(await unary(client, '/authapi.Authentication/Authenticate', bytes));
  }

  function subscribe(client: Client, token: string | undefined) {
    const metadata = new Metadata();
    if (token !== undefined) {
      metadata.set('authorization', token);
    }
    const { path, requestSerialize, responseDeserialize } = subscribeMethod;
    const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
    const events: WireEvent[] = [];
    const ends: Pick<ServiceError, 'code' | 'details'>[] = [];
    call.on('data', (message: Event) => events.push(decodeEvent(message.event)));
    call.on('error', () => undefined);
    call.on('status', ({ code, details }) => ends.push({ code, details }));
    return { call, events, ends };
  }

  const failure = (code: status, details: string) => expect.objectContaining({ code, details });

  test('login, version and events both ways, with and without gzip', async () => {
    for (const algorithm of [compressionAlgorithms.identity, compressionAlgorithms.gzip]) {
      const client = connect(agentTls, { 'grpc.default_compression_algorithm': algorithm });
      const login = await logIn(client);
      expect(login).toMatchObject({ version: '99.9.9-unreleased', principalNamespace: 'argocd' });
      const version = await unary(client, '/versionapi.Version/Version', Buffer.alloc(0), login.accessToken);
      expect(VersionResponse.decode(version)).toEqual({ version: 'argocd-agent-99.9.9-unreleased' });

      const count = sessions.length;
      const { call, events } = subscribe(client, login.accessToken);
      await until(() => expect(sessions).toHaveLength(count + 1));
      const big = { text: 'abc'.repeat(100_000) };
      const event = messageEvent(targets.resourceResync, eventTypes.requestResourceResync, big, {
        source: agentSource,
      });
      call.write({ event: encodeEvent(event) });
      await until(() => expect(received.at(-1)?.eventId).toBe(event.eventId));
      expect(isSameData(received.at(-1), event)).toBe(true);
      sessions.at(-1)?.stream.send(event);
      await until(() => expect(events).toHaveLength(1));
      expect(isSameData(events[0], event)).toBe(true);
      call.end();
      await until(() => expect(server.connectedAgents()).toEqual([]));
    }
  });

  test('the checks of a call with a token', async () => {
    const client = connect();
    const { accessToken, refreshToken } = await logIn(client);
    const refused = { code: status.UNAUTHENTICATED, details: 'invalid authentication data' };
    const inNamespace = await tokens.issue({ agent: 'argocd', mode: 'managed' });
    for (const token of [undefined, 'nonsense', refreshToken, `Bearer ${accessToken}`, inNamespace.accessToken]) {
      const { ends } = subscribe(client, token);
      await until(() => expect(ends).toEqual([refused]));
    }
    now = new Date(Date.now() + 6 * 60_000);
    const { ends } = subscribe(client, accessToken);
    await until(() => expect(ends).toEqual([refused]));
    expect(sessions).toEqual([]);
    expect(refusals).toHaveLength(6);
  });

  test('a token of another agent is refused, and the log names both', async () => {
    const { accessToken } = await logIn(connect());
    const { ends } = subscribe(connect(otherTls), accessToken);
    await until(() => expect(ends).toEqual([{ code: status.UNAUTHENTICATED, details: 'invalid authentication data' }]));
    expect(refusals).toEqual([
      'An agent is refused: The token is of agent agent-managed, the client certificate of "agent-autonomous"',
    ]);
  });

  test('refused logins have the codes and texts of the originals', async () => {
    const client = connect();
    await expect(logIn(client, { mode: 'other' })).rejects.toEqual(
      failure(status.UNKNOWN, 'unknown agent mode: other'),
    );
    await expect(logIn(client, { method: 'userpass' })).rejects.toEqual(
      failure(status.UNAUTHENTICATED, 'authentication failed'),
    );
    await expect(logIn(client, { version: '' })).rejects.toEqual(
      failure(status.INVALID_ARGUMENT, 'agent version is required'),
    );
    expect(await logIn(client, { version: 'something else' })).toMatchObject({ version: '99.9.9-unreleased' });
  });

  test('a refresh token gives an access token', async () => {
    const client = connect();
    const { refreshToken, accessToken } = await logIn(client);
    const refresh = async (token: string) =>
      AuthResponse.decode(
        await unary(
          client,
          '/authapi.Authentication/RefreshToken',
          RefreshTokenRequest.encode({ refreshToken: token }).finish(),
        ),
      );
    expect(await refresh(refreshToken)).toEqual({
      accessToken: expect.stringMatching(/^ey/),
      refreshToken: '',
      version: '',
      principalNamespace: '',
    });
    for (const token of ['', 'x', accessToken]) {
      await expect(refresh(token)).rejects.toEqual(failure(status.UNAUTHENTICATED, 'authentication failed'));
    }
  });

  test('Push, Ping and unknown methods', async () => {
    const client = connect();
    const { accessToken } = await logIn(client);
    const metadata = new Metadata();
    metadata.set('authorization', accessToken);
    subscribe(client, accessToken);
    await until(() => expect(sessions).toHaveLength(1));
    const { path, requestSerialize, responseDeserialize } = pushMethod;
    const summary = new Promise<PushSummary | undefined>((resolve, reject) => {
      const call = client.makeClientStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        metadata,
        (error, response) => (error ? reject(error) : resolve(response)),
      );
      for (let i = 0; i < 3; i++) {
        call.write({ event: encodeEvent(heartbeat) });
      }
      call.end();
    });
    expect(await summary).toEqual({ result: '', received: 3, processed: 0 });
    expect(received).toHaveLength(3);
    const nothing = Buffer.alloc(0);
    await expect(unary(client, '/eventstreamapi.EventStream/Ping', nothing, accessToken)).rejects.toEqual(
      failure(status.UNIMPLEMENTED, 'method Ping not implemented'),
    );
    await expect(unary(client, '/eventstreamapi.EventStream/Nope', nothing)).rejects.toEqual(
      failure(status.UNIMPLEMENTED, 'unknown method Nope for service eventstreamapi.EventStream'),
    );
    await expect(unary(client, '/replicationapi.Replication/Status', nothing)).rejects.toEqual(
      failure(status.UNIMPLEMENTED, 'unknown service replicationapi.Replication'),
    );
  });

  test('defect 45: a message that is not an event is skipped, the stream goes on', async () => {
    const client = connect();
    const { accessToken } = await logIn(client);
    const { call, ends } = subscribe(client, accessToken);
    call.write({ event: undefined });
    call.write({ event: { ...encodeEvent(heartbeat), attributes: { x: {} } } });
    call.write({ event: encodeEvent(heartbeat) });
    await until(() => expect(received).toEqual([heartbeat]));
    expect(refusals).toHaveLength(2);
    expect(ends).toEqual([]);
  });

  test('streams end with a code that agents of the original understand', async () => {
    const client = connect();
    const { accessToken } = await logIn(client);
    const first = subscribe(client, accessToken);
    await until(() => expect(sessions).toHaveLength(1));
    server.disconnect('agent-managed', 'über');
    await until(() => expect(first.ends).toEqual([{ code: status.UNAVAILABLE, details: 'über' }]));
    const second = subscribe(client, accessToken);
    await until(() => expect(sessions).toHaveLength(2));
    second.call.end();
    await until(() => expect(second.ends).toEqual([{ code: status.OK, details: '' }]));
  });

  test('recorded logins get the recorded answers', async () => {
    const logins = recordedLines('auth-errors').filter((line) => line.rpc === '/authapi.Authentication/Authenticate');
    const answers = new Map(logins.filter((line) => line.dir === 'principal->agent').map((line) => [line.call, line]));
    let compared = 0;
    for (const line of logins.filter((login) => login.dir === 'agent->principal')) {
      const client = connect(line.decoded?.mode === 'managed' ? agentTls : otherTls);
      const answer = answers.get(line.call);
      const ours = unary(client, '/authapi.Authentication/Authenticate', messageBytes(line));
      if (answer?.status) {
        await expect(ours).rejects.toEqual(failure(status.UNAUTHENTICATED, answer.status.message));
        expect(answer.status.code).toBe('Unauthenticated');
      } else {
        const { accessToken, refreshToken, ...rest } = AuthResponse.decode(await ours);
        const { accessToken: theirAccess, refreshToken: theirRefresh, ...theirs } = answer?.decoded ?? {};
        expect({ ...rest, principalNamespace: theirs.principalNamespace }).toEqual(theirs);
        expect(subjectOf(accessToken)).toBe(subjectOf(String(theirAccess)));
        expect(subjectOf(refreshToken)).toBe(subjectOf(String(theirRefresh)));
      }
      compared++;
    }
    expect(compared).toBeGreaterThan(5);
  });
});

/** Comparing large arrays element by element takes seconds. */
function isSameData(a: WireEvent | undefined, b: WireEvent): boolean {
  return a !== undefined && Buffer.compare(a.data, b.data) === 0;
}

function subjectOf(token: string): string {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).sub;
}

describe('our client and a foreign server', () => {
  /** A principal that insists on its version, as originals do. */
  async function startPrincipal(version: string, { seconds = 300, renews = true } = {}) {
    const requests: AuthRequest[] = [];
    const seen = { refreshes: 0, tokens: [] as unknown[], events: [] as WireEvent[], userAgents: [] as unknown[] };
    const server = new Server({ 'grpc.max_receive_message_length': -1 });
    const authenticate: handleUnaryCall<AuthRequest, AuthResponse> = async (call, callback) => {
      requests.push(call.request);
      seen.userAgents.push(call.metadata.get('user-agent')[0]);
      if (call.request.version !== version) {
        callback({ code: status.FAILED_PRECONDITION, details: 'version mismatch' });
      } else {
        const pair = await TokenAuthority.fromPem(signingKey).issue({ agent: 'agent-managed', mode: 'managed' });
        const accessToken = livingFor(pair.accessToken, seconds);
        callback(null, { ...pair, accessToken, version, principalNamespace: 'argocd' });
      }
    };
    const refreshToken: handleUnaryCall<RefreshTokenRequest, AuthResponse> = async (call, callback) => {
      seen.refreshes++;
      if (!renews) {
        return callback({ code: status.UNAUTHENTICATED, details: 'authentication failed' });
      }
      const pair = await TokenAuthority.fromPem(signingKey).refresh(call.request.refreshToken);
      callback(null, { accessToken: pair.accessToken, refreshToken: '', version: '', principalNamespace: '' });
    };
    server.addService(authenticationService, { authenticate, refreshToken });
    const answerVersion: handleUnaryCall<VersionRequest, VersionResponse> = (_, callback) =>
      callback(null, { version: `argocd-agent-${version}` });
    server.addService(versionService, { version: answerVersion });
    server.addService(
      { subscribe: subscribeMethod },
      {
        subscribe(call: ServerDuplexStream<Event, Event>) {
          seen.tokens.push(call.metadata.get('authorization')[0]);
          call.on('data', (message: Event) => {
            seen.events.push(decodeEvent(message.event));
            call.write(message);
          });
          call.on('end', () => call.end());
        },
      },
    );
    const port = await new Promise<number>((resolve, reject) => {
      const tls = ServerCredentials.createSsl(
        Buffer.from(ca.cert),
        [{ cert_chain: Buffer.from(serverTls.cert), private_key: Buffer.from(serverTls.key) }],
        true,
      );
      server.bindAsync('127.0.0.1:0', tls, (error, bound) => (error ? reject(error) : resolve(bound)));
    });
    stops.push(() => server.forceShutdown());
    return { port, requests, seen };
  }

  function startAgent(port: number, options: { compression?: boolean; tls?: TestCertificate } = {}) {
    const agent = playAgent(port, {
      tls: () => ({ ca: ca.cert, ...(options.tls ?? agentTls) }),
      version: '0.1.0',
      compression: options.compression ?? false,
    });
    stops.push(agent.stop);
    return agent;
  }

  test('a principal that requires its own version gets that version', async () => {
    const principal = await startPrincipal('99.9.9-unreleased');
    const agent = startAgent(principal.port);
    await until(() => expect(agent.streams).toHaveLength(1));
    expect(principal.requests.map((request) => request.version)).toEqual(['0.1.0', '99.9.9-unreleased']);
    agent.streams[0]?.close();
    await until(() => expect(agent.streams).toHaveLength(2));
    expect(principal.requests.map((request) => request.version)).toEqual([
      '0.1.0',
      '99.9.9-unreleased',
      '99.9.9-unreleased',
    ]);
    expect(principal.seen.userAgents[0]).toMatch(/^argocd-agent\//);
  });

  test('events both ways, with and without gzip', async () => {
    for (const compression of [false, true]) {
      const principal = await startPrincipal('0.1.0');
      const agent = startAgent(principal.port, { compression });
      await until(() => expect(agent.streams).toHaveLength(1));
      const event = messageEvent(
        targets.resourceResync,
        eventTypes.requestResourceResync,
        { text: 'abc'.repeat(50_000) },
        { source: principalSource },
      );
      agent.streams[0]?.send(event);
      await until(() => expect(agent.received).toHaveLength(1));
      expect(isSameData(agent.received[0], event)).toBe(true);
      expect(isSameData(principal.seen.events[0], event)).toBe(true);
      expect(principal.seen.tokens[0]).toMatch(/^ey/);
    }
  });

  test('a token that is about to end is renewed before it is used', async () => {
    const principal = await startPrincipal('0.1.0', { seconds: 20 });
    const agent = startAgent(principal.port);
    await until(() => expect(agent.streams).toHaveLength(1));
    await until(() => expect(principal.seen.tokens).toHaveLength(1));
    expect(principal.seen.refreshes).toBe(1);
  });

  test('when the refresh token has expired too, the agent logs in again', async () => {
    const principal = await startPrincipal('0.1.0', { seconds: 20, renews: false });
    const agent = startAgent(principal.port);
    await until(() => expect(agent.streams).toHaveLength(1));
    await until(() => expect(principal.seen.tokens).toHaveLength(1));
    expect(principal.seen.refreshes).toBe(1);
    expect(principal.requests).toHaveLength(2);
  });

  test('a server that ends the TLS session over our certificate', async () => {
    const foreign = await (await createTestCa('foreign')).issue({ subject: 'CN=agent-managed' });
    const principal = await startPrincipal('0.1.0');
    const agent = startAgent(principal.port, { tls: foreign });
    await until(() => expect(agent.failures.length).toBeGreaterThan(0));
    expect(agent.failures[0]?.code).toMatch(/certificate-rejected|unreachable/);
    expect(agent.streams).toEqual([]);
  });
});
