import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { authenticateWith, GoExpression, mtlsMethod } from '../../lib/auth/index.ts';
import { until } from '../../lib/base/testing.ts';
import type { Session, WireEvent, WireServer } from '../../lib/wire/index.ts';
import { playAgent, playPrincipal } from '../peer/index.ts';
import { messageBytes, recordedLines } from '../recordings/index.ts';
import { readEvent } from './go-event.ts';
import { dataFrame, type GrpcWsFrame, goMetadataFrame, halfClose, readGrpcWs } from './grpc-ws.ts';
import { makeMaterial, type PeerCertificates } from './material.ts';
import { readMessage, writeMessage } from './protobuf.ts';
import { recordedEvents } from './recordings.ts';
import { authResponse, methods } from './schemas.ts';
import { movedToken } from './tokens.ts';

// gRPC over WebSocket against ends that are written from the description of the original's library, with recorded messages.

const agent = 'agent-managed';

let material: PeerCertificates;
let stops: (() => unknown)[] = [];
beforeAll(async () => {
  material = await makeMaterial();
});
afterEach(async () => {
  for (const stop of stops.reverse()) {
    await stop();
  }
  stops = [];
});

const recordedMessage = (rpc: string, dir: string) => {
  const line = recordedLines('websocket').find(
    (each) => each.rpc === rpc && each.dir === dir && each.bytes !== undefined && each.decoded?.mode !== 'autonomous',
  );
  if (line === undefined) {
    throw new Error(`no ${rpc} is recorded`);
  }
  return messageBytes(line);
};
const eventsOf = (dir: string) => recordedEvents('websocket', agent).filter(({ line }) => line.dir === dir);

describe('over WebSocket', () => {
  test('our client: recorded metadata on a WebSocket of its own for each call, frames as described', async () => {
    const requests: IncomingMessage[] = [];
    const received: { path: string; frames: GrpcWsFrame[]; socket: WebSocket }[] = [];
    const webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, handleProtocols: () => false });
    const { cert, key, ca } = material.server;
    const server: Server = createServer({ cert, key, ca, requestCert: true, rejectUnauthorized: true });
    server.on('upgrade', (request, socket, head) => {
      requests.push(request);
      // As strict as the original's library: one word each, and exactly this subprotocol, which is not echoed.
      const { connection = '', upgrade = '', 'sec-websocket-protocol': protocol } = request.headers;
      if (connection.toLowerCase() !== 'upgrade' || upgrade.toLowerCase() !== 'websocket' || protocol !== 'grpc-ws') {
        socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
        return;
      }
      webSockets.handleUpgrade(request, socket, head, (webSocket) => serve(request.url ?? '', webSocket));
    });
    const serve = (path: string, webSocket: WebSocket) => {
      const call = { path, frames: [] as GrpcWsFrame[], socket: webSocket };
      received.push(call);
      webSocket.on('message', (message: Buffer, isBinary) => {
        expect(isBinary).toBe(true);
        call.frames.push(readGrpcWs(message));
        if (path === methods.subscribe || !message.equals(halfClose)) {
          return;
        }
        const answer = readMessage(authResponse, recordedMessage(path, 'principal->agent'));
        const identity = { clientID: agent, mode: 'managed' };
        const fresh = (token: unknown) => movedToken(String(token), new Date(), identity);
        const tokens = { accessToken: fresh(answer.accessToken), refreshToken: fresh(answer.refreshToken) };
        webSocket.send(goMetadataFrame({ 'Content-Type': 'application/grpc' }));
        webSocket.send(dataFrame(writeMessage(authResponse, { ...answer, ...tokens })));
        webSocket.send(goMetadataFrame({ 'Grpc-Status': '0', 'Grpc-Message': '' }));
        webSocket.close();
      });
    };
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    stops.push(
      () => server.closeAllConnections(),
      () => server.close(),
    );

    const tls = await material.client(agent);
    const { stop } = playAgent((server.address() as AddressInfo).port, {
      transport: 'websocket',
      tls: () => ({ ca: tls.ca, cert: tls.cert, key: tls.key }),
      version: '99.9.9-unreleased',
      agentNamespace: 'argocd-managed',
      onConnected: (stream) => ({
        event: (event) => void stream.send({ ...event, source: 'agent://agent-managed' }),
        closed: () => undefined,
      }),
    });
    stops.push(stop);
    await until(() => expect(received.map(({ path }) => path)).toEqual([methods.authenticate, methods.subscribe]));
    expect(received[0]?.frames[0]).toEqual({
      is: 'data',
      bytes: recordedMessage(methods.authenticate, 'agent->principal'),
    });

    const stream = received[1] as (typeof received)[number];
    const sent = eventsOf('principal->agent');
    stream.socket.send(goMetadataFrame({ 'Content-Type': 'application/grpc' }));
    for (const { line } of sent) {
      stream.socket.send(dataFrame(messageBytes(line)));
    }
    await until(() => expect(stream.frames).toHaveLength(sent.length));
    const echoed = stream.frames.map((frame) => frame.is === 'data' && readEvent(frame.bytes));
    expect(echoed).toEqual(sent.map(({ event }) => ({ ...event, source: 'agent://agent-managed' })));

    for (const request of requests) {
      const recorded = recordedLines<{ transport: string; rpc: string; dir: string; headers: Record<string, string> }>(
        'headers',
      ).find((line) => line.transport === 'websocket' && line.rpc === request.url && line.dir === 'agent->principal');
      // `accept-encoding` is Go's HTTP client asking for compressed answers, which a WebSocket has none of.
      const { ':authority': authority = '', 'accept-encoding': _, ...fields } = recorded?.headers ?? {};
      expect(request.headers.host).toMatch(/^127\.0\.0\.1:\d+$/);
      expect(authority).toMatch(/^127\.0\.0\.1:\d+$/);
      expect(request.headers).toMatchObject({
        ...fields,
        'user-agent': expect.stringMatching(/^argocd-agent\/v0\.0\.1 /),
        'grpc-accept-encoding': expect.stringMatching(/(^|,)gzip(,|$)/),
        ...(fields.authorization === undefined ? {} : { authorization: expect.stringMatching(/^ey/) }),
      });
      expect(request.headers.authorization === undefined).toBe(fields.authorization === undefined);
      expect(request.headers['sec-websocket-extensions']).toBeUndefined();
    }
  });

  describe('our server', () => {
    let server: WireServer;
    let sessions: Session[];
    let received: WireEvent[];

    async function start() {
      const mtls = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+)') });
      const { cert, key, ca } = material.server;
      ({ server, sessions, received } = await playPrincipal({
        webSocket: true,
        tls: { cert, key, clientCa: ca, requireClientCertificate: true },
        version: '99.9.9-unreleased',
        principalNamespace: 'argocd-principal',
        authenticate: (request, peer) => authenticateWith(mtls, request, peer),
        matchCertificateSubject: true,
      }));
      stops.push(() => server.close());
      const { cert: clientCert, key: clientKey } = await material.client(agent);
      return (path: string, authorization?: string) => {
        const frames: GrpcWsFrame[] = [];
        // Set as a header: the library's own way of naming a subprotocol insists on an echo, which there is none of.
        const headers = {
          'sec-websocket-protocol': 'grpc-ws',
          'content-type': 'application/grpc',
          te: 'trailers',
          'user-agent': 'argocd-agent/v0.0.1 grpc-go/1.83.0',
          ...(authorization === undefined ? {} : { authorization }),
        };
        const socket = new WebSocket(`wss://127.0.0.1:${server.port}${path}`, {
          headers,
          ca,
          cert: clientCert,
          key: clientKey,
          perMessageDeflate: false,
        });
        const opened = new Promise<void>((resolve, reject) => socket.once('open', resolve).once('error', reject));
        const closed = new Promise<number>((resolve) => socket.once('close', resolve));
        socket.on('message', (message: Buffer) => frames.push(readGrpcWs(message)));
        stops.push(() => socket.terminate());
        return { socket, frames, opened, closed };
      };
    }

    test('answers, sends and ends in frames as described', async () => {
      const open = await start();
      const login = open(methods.authenticate);
      await login.opened;
      expect(login.socket.protocol).toBe('');
      login.socket.send(dataFrame(recordedMessage(methods.authenticate, 'agent->principal')));
      login.socket.send(halfClose);
      expect(await login.closed).toBe(1000);
      const [header, data, trailer, ...rest] = login.frames;
      expect(rest).toEqual([]);
      expect(header).toMatchObject({ is: 'metadata', fields: { 'Content-Type': 'application/grpc' } });
      expect(trailer).toMatchObject({ is: 'metadata', fields: { 'Grpc-Status': '0' } });
      const answer = readMessage(authResponse, (data as { bytes: Buffer }).bytes);
      expect(answer).toMatchObject({ version: '99.9.9-unreleased', principalNamespace: 'argocd-principal' });

      const stream = open(methods.subscribe, String(answer.accessToken));
      await stream.opened;
      await until(() => expect(sessions).toHaveLength(1));
      const sent = eventsOf('agent->principal');
      for (const { line } of sent) {
        stream.socket.send(dataFrame(messageBytes(line)));
      }
      await until(() => expect(received).toHaveLength(sent.length));
      for (const event of received) {
        sessions[0]?.stream.send({ ...event, source: '' });
      }
      const messages = () => stream.frames.filter((frame) => frame.is === 'data');
      await until(() => expect(messages()).toHaveLength(sent.length));
      expect(messages().map(({ bytes }) => readEvent(bytes))).toEqual(
        sent.map(({ event }) => ({ ...event, source: '' })),
      );
      stream.socket.send(halfClose);
      expect(await stream.closed).toBe(1000);
      expect(stream.frames.at(-1)).toMatchObject({ is: 'metadata', fields: { 'Grpc-Status': '0' } });
    });

    test('refuses in one frame that holds the status', async () => {
      const open = await start();
      const refused = open(methods.subscribe, 'nonsense');
      await refused.opened;
      expect(await refused.closed).toBe(1000);
      const fields = { 'Grpc-Status': '16', 'Grpc-Message': 'invalid authentication data' };
      expect(refused.frames).toEqual([{ is: 'metadata', fields: expect.objectContaining(fields) }]);
    });
  });
});
