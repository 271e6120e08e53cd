import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { connect as connectTls } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { noLog, playPrincipal } from '../../e2e/peer/index.ts';
import { until } from '../base/testing.ts';
import { createTestCa } from './testing/certificates.ts';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

test('calls of one client wait on all its connections together, a thousand at most', async () => {
  const ca = await createTestCa();
  const serverTls = await ca.issue({ subject: 'CN=principal', names: ['127.0.0.1'], usage: 'server' });
  const said: string[] = [];
  const { port, tokens, close } = await playPrincipal({
    tls: { ...serverTls, clientCa: ca.cert, requireClientCertificate: true },
    logger: { ...noLog, warn: (_, text) => void said.push(text) },
  });
  stops.push(close);
  /** A session that may have as many calls as it likes. */
  const open = async (own: { readonly cert: string; readonly key: string }, authorization: string) => {
    const to = { host: '127.0.0.1', port, ca: ca.cert, ALPNProtocols: ['h2'], ...own };
    const session = connect('https://127.0.0.1', { createConnection: () => connectTls(to) });
    session.on('error', () => undefined);
    stops.push(() => session.destroy());
    await once(session, 'remoteSettings');
    const raised = once(session, 'remoteSettings');
    await call(session, authorization);
    await raised;
    return session;
  };
  /** Its status when it has ended. */
  const call = async (session: ClientHttp2Session, authorization: string): Promise<string> => {
    const path = '/eventstreamapi.EventStream/Ping';
    const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
    const stream = session.request({ ...headers, authorization });
    stream.on('error', () => undefined);
    stream.end();
    const [answer] = (await once(stream, 'response')) as [Record<string, string>];
    stream.resume();
    return answer['grpc-message'] ?? '';
  };
  const playAgent = async (agent: string) => ({
    tls: await ca.issue({ subject: `CN=${agent}` }),
    token: (await tokens.issue({ agent, mode: 'managed' })).accessToken,
  });
  const [crowd, other] = [await playAgent('one'), await playAgent('two')];
  const sessions = await Promise.all(Array.from({ length: 4 }, () => open(crowd.tls, crowd.token)));
  const calm = await open(other.tls, other.token);
  const answers: string[] = [];
  for (const session of sessions) {
    for (let index = 0; index < 900; index++) {
      // Some have no answer yet when the test ends.
      void call(session, crowd.token).then(
        (answer) => answers.push(answer),
        () => undefined,
      );
    }
  }
  await until(() => expect(answers).toContain('too many calls wait for their turn'));
  expect(await call(calm, other.token)).toBe('method Ping not implemented');
  expect(said).toEqual(['The server for agents ends a call: too many of its client wait already']);
});
