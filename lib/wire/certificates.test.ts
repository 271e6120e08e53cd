import { afterEach, beforeAll, expect, test } from 'vitest';
import { type PlayedPrincipal, playAgent, playPrincipal } from '../../e2e/peer/index.ts';
import { AuthError } from '../auth/index.ts';
import { type CertificateService, type ClientTls, requestCertificate } from './index.ts';
import { createTestCa, type TestCa, type TestCertificate } from './testing/certificates.ts';

// Certificates for agents: with a token, without a certificate; and renewed over a login.

let ca: TestCa;
let serverTls: TestCertificate;
let agentTls: TestCertificate;
let principal: PlayedPrincipal | undefined;
beforeAll(async () => {
  ca = await createTestCa('fleet CA');
  serverTls = await ca.issue({ subject: 'CN=principal', names: ['127.0.0.1'], usage: 'server' });
  agentTls = await ca.issue({ subject: 'CN=edge' });
});
afterEach(() => principal?.close());

async function start(enrolment: CertificateService | undefined, webSocket = false): Promise<string> {
  principal = await playPrincipal({
    tls: { ...serverTls, clientCa: ca.cert, requireClientCertificate: true },
    enrolment,
    webSocket,
  });
  return `127.0.0.1:${principal.port}`;
}

/** A service that answers with what it was asked. */
const echo: CertificateService = {
  enroll: async (token, request) => ({ certificate: `${token} ${request}`, authorities: 'ca' }),
  renew: async (agent, request) => ({ certificate: `${agent} ${request}`, authorities: 'ca' }),
};

const ask = (server: string, options: { tls?: ClientTls; request?: string; transport?: 'websocket' } = {}) =>
  requestCertificate({
    server,
    tls: { ca: ca.cert },
    token: 'token',
    request: 'request',
    signal: AbortSignal.timeout(20_000),
    ...options,
  });

test.each([undefined, 'websocket' as const])(
  'a client without a certificate exchanges a token (%s)',
  async (transport) => {
    const server = await start(echo, transport !== undefined);
    const answer = await ask(server, transport === undefined ? {} : { transport });
    expect(answer).toEqual({ certificate: 'token request', authorities: 'ca' });
  },
);

test('who gives no certificates says so, as argocd-agent does', async () => {
  const server = await start(undefined);
  const unserved = { code: 'not-accepting', hint: expect.stringContaining('--certificate=generate') };
  await expect(ask(server)).rejects.toMatchObject(unserved);
  await expect(ask(server, { tls: { ca: ca.cert, ...agentTls } })).rejects.toMatchObject(unserved);
});

test('a refusal says what its owner may know', async () => {
  const answers = ['its token has expired', undefined];
  const server = await start({
    ...echo,
    enroll: async () => {
      const answer = answers.shift();
      throw new AuthError('bad-enrolment', 'for the log', answer === undefined ? {} : { answer });
    },
  });
  await expect(ask(server)).rejects.toMatchObject({
    code: 'unauthenticated',
    message: expect.stringMatching(/gives us no certificate: enrolment refused: its token has expired$/),
    hint: expect.stringContaining('argocd-agent enroll NAME --again'),
  });
  await expect(ask(server)).rejects.toThrow(/enrolment refused$/);
});

test('a request has a bounded size', async () => {
  const server = await start(echo);
  await expect(ask(server, { request: 'x'.repeat(100_000) })).rejects.toMatchObject({ code: 'too-large' });
});

test("the token is not told to a server that is not the hub's", async () => {
  const server = await start(echo);
  const other = await createTestCa('another CA');
  await expect(ask(server, { tls: { ca: other.cert } })).rejects.toMatchObject({ code: 'server-untrusted' });
});

test('only an agent that has logged in renews, and only its own', async () => {
  const server = await start(echo);
  const agent = playAgent(server, { tls: () => ({ ca: ca.cert, ...agentTls }) });
  const calls = await agent.calls;
  expect(await calls.renewCertificate('request')).toEqual({ certificate: 'edge request', authorities: 'ca' });
  await agent.stop();
});
