import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { authenticateWith, GoExpression, mtlsMethod } from '../../lib/auth/index.ts';
import { until } from '../../lib/base/testing.ts';
import type { Session, WireEvent, WireServer } from '../../lib/wire/index.ts';
import { playPrincipal } from '../peer/index.ts';
import { messageBytes, type RecordedLine, recordedJson, recordedLines } from '../recordings/index.ts';
import type { GoCall } from './go-calls.ts';
import { extensionOf, readEvent, writeEvent } from './go-event.ts';
import { GoPeer } from './go-peer.ts';
import { makeMaterial, type PeerCertificates } from './material.ts';
import { readMessage, writeMessage } from './protobuf.ts';
import { firstMessage, headerLines, recordedLogin } from './recorded-calls.ts';
import { recordedEvents } from './recordings.ts';
import * as schemas from './schemas.ts';
import { readToken, type Token } from './tokens.ts';

// Our server against a client of grpc-go with the recorded messages of the originals; the programs are not involved.

const { methods } = schemas;

let go: GoPeer;
let material: PeerCertificates;

beforeAll(async () => {
  [go, material] = await Promise.all([GoPeer.start(), makeMaterial()]);
});
afterAll(() => go?.stop());

let stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.reverse()) {
    await stop();
  }
  stops = [];
});

describe('our server and a Go agent', () => {
  let server: WireServer;
  let sessions: Session[];
  let received: WireEvent[];
  let closed: (Error | undefined)[];

  beforeEach(async () => {
    const mtls = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+)') });
    const { cert, key, ca } = material.server;
    ({ server, sessions, received, closed } = await playPrincipal({
      tls: { cert, key, clientCa: ca, requireClientCertificate: true, minVersion: 'TLSv1.3' },
      version: '99.9.9-unreleased',
      principalNamespace: 'argocd-principal',
      authenticate: (request, peer) => authenticateWith(mtls, request, peer),
      matchCertificateSubject: true,
    }));
    stops.push(() => server.close());
  });

  async function connect(agent: string, options: { gzip?: boolean } = {}) {
    const tls = await material.client(agent);
    const connection = go.dial({ address: `127.0.0.1:${server.port}`, tls, ...options });
    stops.push(() => connection.close());
    const login = recordedLogin(agent.replace('agent-', ''));
    const answer = await connection.unary(methods.authenticate, login);
    const tokens = readMessage(schemas.authResponse, answer.bytes);
    const authorization = String(tokens.accessToken);
    return { connection, answer, tokens, authorization };
  }

  async function subscribe(agent: string, options: { gzip?: boolean } = {}) {
    const opened = await connect(agent, options);
    const messages: Buffer[] = [];
    const { authorization } = opened;
    const call: GoCall = opened.connection.open(
      methods.subscribe,
      { authorization },
      { message: (bytes) => messages.push(bytes) },
    );
    const count = sessions.length;
    await until(() => expect(sessions.length).toBeGreaterThan(count));
    return { ...opened, call, messages, session: sessions.at(-1) as Session };
  }

  test('answers a recorded login in the recorded form, and Version too', async () => {
    for (const agent of ['agent-managed', 'agent-autonomous']) {
      const { connection, answer, tokens, authorization } = await connect(agent);
      expect(answer).toMatchObject({ code: 'OK', trailer: {} });
      const recorded = recordedLines('connect').filter(
        ({ rpc, dir }) => rpc === methods.authenticate && dir === 'principal->agent',
      );
      const theirs = readMessage(schemas.authResponse, messageBytes(recorded[0] as RecordedLine));
      const free = { accessToken: expect.any(String), refreshToken: expect.any(String) };
      expect(tokens).toEqual({ ...theirs, ...free });

      const version = await connection.unary(methods.version, Buffer.alloc(0), { authorization });
      const recordedVersion = firstMessage(
        'connect',
        ({ rpc, dir }) => rpc === methods.version && dir === 'principal->agent',
      );
      expect(version.bytes).toEqual(recordedVersion);
    }
  });

  test('issues tokens of the recorded shape, for both modes and purposes, also on renewal', async () => {
    interface RecordedToken extends Token {
      readonly rpc: string;
      readonly token: string;
    }
    const recorded = recordedJson<RecordedToken[]>('jwt-claims');
    let compared = 0;
    for (const { rpc, token, header, claims } of recorded) {
      const { clientID, mode } = JSON.parse(String(claims.sub));
      const { connection, tokens } = await connect(clientID);
      let answer = tokens;
      if (rpc === methods.refreshToken) {
        const request = writeMessage(schemas.refreshTokenRequest, { refreshToken: tokens.refreshToken });
        answer = readMessage(schemas.authResponse, (await connection.unary(rpc, request)).bytes);
        // The recorded renewal gave an access token only; ours may not give more, or a Go agent would take it over.
        expect(Object.keys(answer)).toEqual(['accessToken']);
      }
      const ours = readToken(String(answer[token]));
      expect(ours.header).toEqual(header);
      const life = (of: Token['claims']) => Number(of.exp) - Number(of.iat);
      expect(ours.claims).toEqual({
        ...claims,
        sub: JSON.stringify({ clientID, mode }),
        // When it was issued is free, how long it lives is not.
        iat: expect.any(Number),
        nbf: ours.claims.iat,
        exp: Number(ours.claims.iat) + life(claims),
        jti: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      });
      expect(Object.keys(ours.claims).sort()).toEqual(Object.keys(claims).sort());
      compared += 1;
    }
    expect(compared).toBe(recorded.length);
  });

  test('adds no metadata of its own to answers, as recorded', async () => {
    // What HTTP/2 and gRPC add themselves is not in the recording; Go agents look at none of it.
    const transport = ['content-type', 'date', 'grpc-accept-encoding'];
    const plain = headerLines().filter(({ transport, dir }) => transport === 'default' && dir === 'principal->agent');
    expect(plain.every(({ headers }) => Object.keys(headers).length === 0)).toBe(true);
    const { answer } = await connect('agent-managed');
    expect(Object.keys(answer.metadata).filter((name) => !transport.includes(name))).toEqual([]);
    expect(answer.trailer).toEqual({});
  });

  test('takes every recorded event of a Go agent and acknowledges in bytes that Go reads', async () => {
    const { call, session, messages } = await subscribe('agent-managed');
    const sent = recordedEvents('app-managed', 'agent-managed').filter(({ line }) => line.dir === 'agent->principal');
    for (const { line } of sent) {
      call.send(messageBytes(line));
    }
    await until(() => expect(received).toHaveLength(sent.length));
    expect(received.map(({ eventId }) => eventId)).toEqual(sent.map(({ event }) => extensionOf(event, 'eventid')));
    for (const event of received) {
      session.stream.send({ ...event, source: '' });
    }
    await until(() => expect(messages).toHaveLength(sent.length));
    expect(messages.map((bytes) => readEvent(bytes))).toEqual(sent.map(({ event }) => ({ ...event, source: '' })));
  });

  test('speaks gzip with an agent that does, in both directions', async () => {
    const { call, session, messages } = await subscribe('agent-managed', { gzip: true });
    const [first] = recordedEvents('compression', 'agent-managed').filter(
      ({ line }) => line.dir === 'agent->principal',
    );
    const big = {
      ...first?.event,
      binaryData: Buffer.from(JSON.stringify({ text: randomBytes(600_000).toString('hex') })),
    };
    call.send(writeEvent(big as never));
    await until(() => expect(received).toHaveLength(1));
    session.stream.send(received[0] as WireEvent);
    await until(() => expect(messages).toHaveLength(1));
    expect(Buffer.compare(readEvent(messages[0] as Buffer).binaryData as Buffer, big.binaryData)).toBe(0);
  });

  test('bears messages close to the limit, both ways', async () => {
    const { call, session, messages } = await subscribe('agent-managed');
    const [first] = recordedEvents('app-managed', 'agent-managed');
    const binaryData = Buffer.alloc(15 * 1024 * 1024, '"');
    call.send(writeEvent({ ...first?.event, binaryData } as never));
    await until(() => expect(received).toHaveLength(1));
    session.stream.send(received[0] as WireEvent);
    await until(() => expect(messages).toHaveLength(1));
    expect(messages[0]?.length).toBeGreaterThan(binaryData.length);
  });

  test('ends streams with a status that Go agents come back from, and notices theirs', async () => {
    const first = await subscribe('agent-managed');
    server.disconnect('agent-managed', 'enough');
    expect(await first.call.ended).toMatchObject({ code: 'Unavailable', message: 'enough' });
    const second = await subscribe('agent-managed');
    const third = await subscribe('agent-managed');
    // A newer stream replaces the older one, which the originals leave open.
    expect(await second.call.ended).toMatchObject({ code: 'Unavailable' });
    third.connection.close();
    await until(() => expect(closed).toHaveLength(3));
    const fourth = await subscribe('agent-managed');
    fourth.call.closeSend();
    expect(await fourth.call.ended).toMatchObject({ code: 'OK' });
    const fifth = await subscribe('agent-managed');
    await server.close();
    expect((await fifth.call.ended).code).toBe('Unavailable');
  });

  test('refuses recorded logs and terminals that nobody asked for, and the event stream goes on', async () => {
    const { connection, authorization, session, call } = await subscribe('agent-managed');
    for (const [recording, method] of [
      ['logs', methods.streamLogs],
      ['terminal', methods.streamTerminal],
    ] as const) {
      const lines = recordedLines(recording).filter((line) => line.rpc === method && line.dir === 'agent->principal');
      const live = connection.open(method, { authorization }, { message: () => undefined });
      for (const line of lines.slice(0, 5)) {
        live.send(messageBytes(line));
      }
      // Neither makes a Go agent believe that its connection is bad, as other codes do.
      expect(['NotFound', 'Unimplemented']).toContain((await live.ended).code);
    }
    const [first] = recordedEvents('app-managed', 'agent-managed');
    call.send(writeEvent(first?.event as never));
    await until(() => expect(received).toHaveLength(1));
    expect(session.stream.ended).toBe(false);
  });

  test('refuses what the originals refuse, in their words', async () => {
    const { connection, tokens, authorization } = await connect('agent-managed');
    const login = readMessage(schemas.authRequest, recordedLogin('managed'));
    const authenticate = (change: object) =>
      connection.unary(methods.authenticate, writeMessage(schemas.authRequest, { ...login, ...change }));
    expect(await authenticate({ mode: 'other' })).toMatchObject({
      code: 'Unknown',
      message: expect.stringContaining('other'),
    });
    expect(await authenticate({ version: '' })).toMatchObject({
      code: 'InvalidArgument',
      message: 'agent version is required',
    });
    const userpass = recordedLines('auth-errors').filter(
      ({ decoded, rpc }) => rpc === methods.authenticate && decoded?.method === 'userpass',
    );
    expect(userpass.length).toBeGreaterThan(0);
    for (const line of userpass) {
      const recorded = recordedLines('auth-errors').find(
        ({ call, status }) => call === line.call && status !== undefined,
      )?.status;
      expect(await connection.unary(methods.authenticate, messageBytes(line))).toMatchObject({ ...recorded });
    }
    const invalid = { code: 'Unauthenticated', message: 'invalid authentication data' };
    for (const metadata of [
      {},
      { authorization: '' },
      { authorization: `Bearer ${authorization}` },
      { authorization: String(tokens.refreshToken) },
    ]) {
      const call = connection.open(methods.subscribe, metadata, { message: () => undefined });
      expect(await call.ended).toMatchObject(invalid);
    }
    const refresh = (refreshToken: unknown) =>
      connection.unary(methods.refreshToken, writeMessage(schemas.refreshTokenRequest, { refreshToken }));
    for (const token of ['', 'x', authorization]) {
      expect(await refresh(token)).toMatchObject({ code: 'Unauthenticated', message: 'authentication failed' });
    }
    const ping = await connection.unary('/eventstreamapi.EventStream/Ping', Buffer.alloc(0), { authorization });
    expect(ping).toMatchObject({ code: 'Unimplemented', message: 'method Ping not implemented' });
    expect(await connection.unary('/no.Such/Method', Buffer.alloc(0))).toMatchObject({ code: 'Unimplemented' });
    expect(sessions).toEqual([]);
  });
});
