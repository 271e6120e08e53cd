import 'reflect-metadata';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { SignJWT } from 'jose';
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { AuthRequest, AuthResponse, RefreshTokenRequest } from '../../../proto/gen/authapi/auth.ts';
import {
  AuthError,
  authenticateWith,
  type ClientInfo,
  GoExpression,
  mtlsMethod,
  TokenAuthority,
} from '../../auth/index.ts';
import type { ServerCall } from '../grpc/server/server-call.ts';
import { type GrpcError, grpcStatus } from '../grpc/status.ts';
import { createSigningKey, createTestCa } from '../testing/certificates.ts';
import { AuthCalls } from './auth-calls.ts';
import type { WireServerOptions } from './server-options.ts';

// The rules of argocd-agent's principal for logins, renewals and calls, each with its answer.

const pem = createSigningKey();
let now = new Date();
const tokens = TokenAuthority.fromPem(pem, { now: () => now });
const identity = { agent: 'one', mode: 'managed' } as const;

let certificates: Record<'one' | 'two' | 'bad', X509Certificate>;
beforeAll(async () => {
  const ca = await createTestCa();
  const of = async (name: string) => new X509Certificate((await ca.issue({ subject: `CN=${name}` })).cert);
  certificates = { one: await of('one'), two: await of('two'), bad: await of('Not_A_Label') };
});

const mtls = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+)') });
let authorized: string[];
let introduced: unknown[];
let refused: string[];

beforeEach(() => {
  now = new Date();
  authorized = [];
  introduced = [];
  refused = [];
});

afterEach(() => {
  vi.useRealTimers();
});

function authCalls(change: Partial<WireServerOptions> = {}): AuthCalls {
  const nothing = () => undefined;
  return new AuthCalls({
    port: 0,
    tls: 'plaintext',
    version: '1.2.3',
    principalNamespace: 'argocd',
    tokens,
    authenticate: (request, peer) => authenticateWith(mtls, request, peer),
    authorize: ({ agent }) => void authorized.push(agent),
    authenticated: (_, request) => void introduced.push(request),
    refused: (reason) => refused.push(reason),
    subscribe: () => ({ event: nothing, closed: nothing }),
    logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    ...change,
  });
}

function peerWith(certificate?: X509Certificate, encrypted = true): ClientInfo {
  return {
    address: '10.0.0.1:1',
    encrypted,
    ...(certificate === undefined ? {} : { certificate }),
    header: () => undefined,
  };
}

const failure = (code: number, details: string): Partial<GrpcError> =>
  expect.objectContaining({ code, details }) as Partial<GrpcError>;
const revoked = () => {
  throw new AuthError('revoked', 'on the blocklist');
};

const good = { method: 'mtls', credentials: {}, mode: 'managed', version: '1.2.3', agentNamespace: 'argocd' };
const logIn = async (keeper: AuthCalls, change: object = {}, peer: ClientInfo = peerWith(certificates.one)) =>
  AuthResponse.decode((await keeper.authenticate(AuthRequest.encode({ ...good, ...change }).finish(), peer)).answer);

const failed = failure(grpcStatus.unauthenticated, 'authentication failed');

test.each([
  ['an unknown mode', { mode: 'other' }, failure(grpcStatus.unknown, 'unknown agent mode: other'), []],
  ['no mode', { mode: '' }, failure(grpcStatus.unknown, 'unknown agent mode: '), []],
  // The mode is looked at before anything else, credentials before the version.
  ['an unknown mode and method', { mode: 'x', method: 'y' }, failure(grpcStatus.unknown, 'unknown agent mode: x'), []],
  ['an unknown method', { method: 'userpass' }, failed, ['unknown-method']],
  ['no method', { method: '' }, failed, ['unknown-method']],
  ['an unknown method and no version', { method: 'x', version: '' }, failed, ['unknown-method']],
  ['no version', { version: '' }, failure(grpcStatus.invalidArgument, 'agent version is required'), []],
])('a login with %s', async (_, change, expected, reasons) => {
  await expect(logIn(authCalls(), change)).rejects.toEqual(expected);
  expect(refused).toEqual(reasons);
  expect(authorized).toEqual([]);
});

test('a login without a certificate, and with one that names no agent', async () => {
  await expect(logIn(authCalls(), {}, peerWith())).rejects.toEqual(failed);
  await expect(logIn(authCalls(), {}, peerWith(certificates.bad))).rejects.toEqual(failed);
  expect(refused).toEqual(['no-credentials', 'bad-name']);
});

test.each([
  ['the blocklist', { authorize: revoked }, failed, ['revoked']],
  ['whoever registers agents', { authenticated: revoked }, failed, ['revoked']],
  [
    'too many passwords that wait',
    {
      authenticate: () => {
        throw new AuthError('too-many-logins', '9 wait');
      },
    },
    failure(grpcStatus.unavailable, 'too many logins at once'),
    ['too-many-logins'],
  ],
  [
    'a failure of our own',
    {
      authenticate: () => {
        throw new Error('a secret');
      },
    },
    failure(grpcStatus.unavailable, 'the principal cannot check credentials now'),
    [],
  ],
])('a login that %s stops', async (_, options, expected, reasons) => {
  await expect(logIn(authCalls(options))).rejects.toEqual(expected);
  expect(refused).toEqual(reasons);
});

test("who is called like the principal's namespace cannot log in, and nothing is noted of them", async () => {
  const calls = authCalls({ authenticate: async () => ({ agent: 'argocd' }) });
  await expect(logIn(calls)).rejects.toEqual(failed);
  expect([refused, introduced, authorized]).toEqual([['bad-name'], [], []]);
  const { refreshToken } = await tokens.issue({ agent: 'argocd', mode: 'managed' });
  await expect(renew(calls, refreshToken)).rejects.toEqual(failed);
});

test('an agent that logs in too often has to wait, and no other one', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const calls = authCalls();
  for (let login = 0; login < 100; login++) {
    await logIn(calls);
  }
  await expect(logIn(calls)).rejects.toEqual(failure(grpcStatus.unavailable, 'too many logins at once'));
  expect(refused).toEqual(['too-often']);
  await logIn(calls, {}, peerWith(certificates.two));
  vi.advanceTimersByTime(500);
  await logIn(calls);
  await expect(logIn(calls)).rejects.toThrow('too many logins');
});

test('a login that holds, whatever the version', async () => {
  for (const version of ['1.2.3', '99.9.9-unreleased', 'x']) {
    const { accessToken, refreshToken, ...rest } = await logIn(authCalls(), { version });
    expect(rest).toEqual({ version: '1.2.3', principalNamespace: 'argocd' });
    expect(await tokens.verifyAccess(accessToken)).toEqual(identity);
    await tokens.refresh(refreshToken);
  }
  expect(introduced[0]).toEqual(good);
});

const renew = async (keeper: AuthCalls, refreshToken: string) =>
  AuthResponse.decode(
    await keeper.refreshToken(RefreshTokenRequest.encode({ refreshToken }).finish(), peerWith(certificates.one)),
  );

test('an agent that renews its token too often has to wait, and no other one', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const calls = authCalls();
  const { refreshToken } = await tokens.issue(identity);
  for (let renewal = 0; renewal < 100; renewal++) {
    await renew(calls, refreshToken);
  }
  await expect(renew(calls, refreshToken)).rejects.toEqual(failure(grpcStatus.unavailable, 'too many logins at once'));
  expect(refused).toEqual(['too-often']);
  await renew(calls, (await tokens.issue({ agent: 'two', mode: 'managed' })).refreshToken);
  vi.advanceTimersByTime(500);
  await renew(calls, refreshToken);
  await expect(renew(calls, refreshToken)).rejects.toThrow('too many logins');
});

test('a renewal returns only the tokens, and replaces the refresh token near its end', async () => {
  const { refreshToken } = await tokens.issue(identity);
  const first = await renew(authCalls(), refreshToken);
  expect(first).toEqual({ accessToken: expect.any(String), refreshToken: '', version: '', principalNamespace: '' });
  expect(await tokens.verifyAccess(first.accessToken)).toEqual(identity);
  now = new Date(Date.now() + (24 * 60 - 9) * 60_000);
  const last = await renew(authCalls(), refreshToken);
  expect(last.refreshToken).not.toBe('');
  expect(authorized).toEqual(['one', 'one']);
  now = new Date(Date.now() + 25 * 60 * 60_000);
  await expect(renew(authCalls(), refreshToken)).rejects.toEqual(failed);
});

test('renewals that are refused', async () => {
  const { accessToken, refreshToken } = await tokens.issue(identity);
  const foreign = await TokenAuthority.fromPem(createSigningKey()).issue(identity);
  for (const token of ['', 'nonsense', accessToken, foreign.refreshToken]) {
    await expect(renew(authCalls(), token)).rejects.toEqual(failed);
  }
  await expect(renew(authCalls({ authorize: revoked }), refreshToken)).rejects.toEqual(failed);
  expect(refused).toEqual(['bad-token', 'bad-token', 'bad-token', 'bad-token', 'revoked']);
});

function callWith(authorization: string | undefined): ServerCall {
  const header = (name: string) => (name === 'authorization' ? authorization : undefined);
  return { path: '/eventstreamapi.EventStream/Subscribe', header } as ServerCall;
}

const invalid = failure(grpcStatus.unauthenticated, 'invalid authentication data');

test('calls with a token', async () => {
  const { accessToken, refreshToken } = await tokens.issue(identity);
  const keeper = authCalls();
  const peer = peerWith(certificates.one);
  expect(await keeper.identify(callWith(accessToken), peer)).toEqual(identity);
  expect(authorized).toEqual(['one']);
  const sign = (claims: { sub: string; iss?: string; aud?: string; exp?: number }) =>
    new SignJWT({ iss: 'argocd-agent-server', aud: 'argocd-agent-server-access', exp: 2e9, ...claims })
      .setIssuedAt(now)
      .setProtectedHeader({ alg: 'RS512' })
      .sign(createPrivateKey(pem));
  const subject = '{"clientID":"one","mode":"managed"}';
  expect(await keeper.identify(callWith(await sign({ sub: subject })), peer)).toEqual(identity);
  const cases = {
    none: undefined,
    empty: '',
    nonsense: 'nonsense',
    'with a prefix': `Bearer ${accessToken}`,
    'for renewals': refreshToken,
    'for live access': await tokens.issueResourceProxy('one'),
    'of another principal': (await TokenAuthority.fromPem(createSigningKey()).issue(identity)).accessToken,
    'of another issuer': await sign({ sub: subject, iss: 'somebody' }),
    'with a subject that is no JSON': await sign({ sub: 'one' }),
    'without a client': await sign({ sub: '{"clientID":"","mode":"managed"}' }),
    'of an unknown mode': await sign({ sub: '{"clientID":"one","mode":"other"}' }),
    'that has expired': await sign({ sub: subject, exp: 1000 }),
    "of an agent named like the principal's namespace": (await tokens.issue({ ...identity, agent: 'argocd' }))
      .accessToken,
  };
  for (const [what, token] of Object.entries(cases)) {
    await expect(keeper.identify(callWith(token), peer), what).rejects.toEqual(invalid);
  }
  expect(refused).toHaveLength(Object.keys(cases).length);
  await expect(authCalls({ authorize: revoked }).identify(callWith(accessToken), peer)).rejects.toEqual(invalid);
  now = new Date(Date.now() + 5 * 60_000 + 1000);
  await expect(keeper.identify(callWith(accessToken), peer)).rejects.toEqual(invalid);
});

test.each([
  ['its own certificate', 'one', true, true],
  ["another agent's certificate", 'two', true, false],
  ['no certificate', undefined, true, false],
  ['plaintext', undefined, false, true],
] as const)('where subjects are matched, a call with %s', async (_, holder, encrypted, isTaken) => {
  const { accessToken } = await tokens.issue(identity);
  const peer = peerWith(holder === undefined ? undefined : certificates[holder], encrypted);
  const answer = authCalls({ matchCertificateSubject: true }).identify(callWith(accessToken), peer);
  if (isTaken) {
    expect(await answer).toEqual(identity);
  } else {
    await expect(answer).rejects.toEqual(invalid);
  }
  expect(refused).toEqual(isTaken ? [] : ['wrong-certificate']);
  expect(await authCalls().identify(callWith(accessToken), peer)).toEqual(identity);
});
