import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { connect as connectTls } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { noLog, playPrincipal } from '../../e2e/peer/index.ts';
import { authenticateWith, GoExpression, mtlsMethod } from '../auth/index.ts';
import { until } from '../base/testing.ts';
import { createTestCa } from './testing/certificates.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

const strangers = 100;
/** Calls of one connection that has not logged in. */
const callsEach = 8;

test.each([
  ['one address', () => '127.0.0.2'],
  ['as many addresses', (index: number) => `127.0.1.${index + 1}`],
])('calls of strangers from %s do not stand in front of an agent that calls after them', async (_, addressOf) => {
  const ca = await createTestCa();
  const serverTls = await ca.issue({ subject: 'CN=principal', names: ['127.0.0.1'], usage: 'server' });
  const agentTls = await ca.issue({ subject: 'CN=cluster1' });
  const mtls = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+)') });
  let turnedAway = 0;
  let before: number | undefined;
  const principal = await playPrincipal({
    tls: { ...serverTls, clientCa: ca.cert, requireClientCertificate: true },
    authenticate: (request, peer) => authenticateWith(mtls, request, peer),
    refused: () => turnedAway++,
    called: ({ method }) => {
      before ??= method === 'Version' ? turnedAway : undefined;
    },
  });
  stops.push(principal.close);
  const open = async (
    localAddress: string,
    own: { readonly cert?: string; readonly key?: string },
  ): Promise<ClientHttp2Session> => {
    const { port } = principal;
    const to = { host: '127.0.0.1', port, ca: ca.cert, ALPNProtocols: ['h2'], localAddress, ...own };
    const socket = connectTls(to);
    const session = connect('https://127.0.0.1', { createConnection: () => socket });
    session.on('error', () => undefined);
    stops.push(() => session.destroy());
    await once(session, 'remoteSettings');
    return session;
  };
  const call = (session: ClientHttp2Session, path: string): ClientHttp2Stream => {
    const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
    const stream = session.request(headers);
    stream.on('error', () => undefined);
    stream.resume();
    stream.end();
    return stream;
  };
  const agent = await open('127.0.0.1', { cert: agentTls.cert, key: agentTls.key });
  const crowd: ClientHttp2Session[] = [];
  for (let index = 0; index < strangers; index++) {
    crowd.push(await open(addressOf(index), {}));
  }
  for (const session of crowd) {
    for (let index = 0; index < callsEach; index++) {
      call(session, '/a');
    }
  }
  call(agent, '/versionapi.Version/Version');
  await until(() => expect(turnedAway).toBe(strangers * callsEach));
  expect(before).toBeLessThan(100);
});

test('a stranger whose certificate is larger than any agent needs is cut off before it is checked', async () => {
  const ca = await createTestCa();
  const serverTls = await ca.issue({ subject: 'CN=principal', names: ['127.0.0.1'], usage: 'server' });
  const names = Array.from({ length: 2_000 }, (_, index) => `name-${index}.example`);
  const stranger = await (await createTestCa('other')).issue({ subject: 'CN=cluster1', names });
  const lines: string[] = [];
  const principal = await playPrincipal({
    tls: { ...serverTls, clientCa: ca.cert, requireClientCertificate: true },
    logger: { ...noLog, warn: (_fields: object, line: string) => lines.push(line) },
  });
  stops.push(principal.close);
  const socket = connectTls({
    host: '127.0.0.1',
    port: principal.port,
    ca: ca.cert,
    ALPNProtocols: ['h2'],
    ...stranger,
  });
  stops.push(() => socket.destroy());
  socket.on('error', () => undefined);
  socket.resume();
  await once(socket, 'close');
  expect(lines).toContain('The server for agents ends a connection: its handshake is too large');
});
