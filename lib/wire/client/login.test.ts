import { afterEach, expect, test, vi } from 'vitest';
import type { AuthResponse } from '../../../proto/gen/authapi/auth.ts';
import type { GrpcTransport } from '../grpc/client/client.ts';
import type { ClientCall } from '../grpc/client/client-call.ts';
import { GrpcError, grpcStatus } from '../grpc/status.ts';
import { paths } from '../methods.ts';
import { LoggedIn } from './login.ts';

const minute = 60_000;
const signal = new AbortController().signal;
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

afterEach(() => vi.restoreAllMocks());

/** A login at a principal whose clock is `aheadMs` ahead of ours, with tokens that last 15 minutes. */
function setUp(aheadMs: number) {
  const start = performance.now();
  let passed = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => start + passed);
  const began = Date.now();
  vi.spyOn(Date, 'now').mockImplementation(() => began + passed);
  let logins = 0;
  const response = (): AuthResponse => {
    const iat = Math.floor((began + passed + aheadMs) / 1_000);
    const sub = JSON.stringify({ clientID: 'edge' });
    const accessToken = [part({ alg: 'none' }), part({ sub, iat, exp: iat + 15 * 60, n: logins++ }), ''].join('.');
    return { accessToken, refreshToken: '', principalNamespace: 'argocd', version: '1' } as AuthResponse;
  };
  let over: (error: GrpcError | undefined) => void = () => undefined;
  const used: string[] = [];
  const call = (path: string, headers: { authorization?: string } = {}) => {
    if (path === paths.refreshToken) {
      throw new GrpcError(grpcStatus.unauthenticated, 'no');
    }
    used.push(headers.authorization ?? '');
    return { onOver: (listener: typeof over) => (over = listener) } as unknown as ClientCall;
  };
  const login = new LoggedIn(
    { call } as unknown as GrpcTransport,
    signal,
    { response: response(), life: undefined },
    async () => response(),
  );
  return {
    login,
    used,
    pass: (ms: number) => (passed += ms),
    refuse: (code = 16) => over(new GrpcError(code as never, 'x')),
  };
}

test.each([-60, -10, 0, 10, 60])(
  'with a clock %s minutes behind a token is used while it lasts, no longer',
  async (ahead) => {
    const { login, used, pass } = setUp(ahead * minute);
    await login.call(paths.streamLogs);
    pass(14 * minute);
    await login.call(paths.streamLogs);
    expect(new Set(used).size, 'it still lasts').toBe(1);
    pass(0.75 * minute);
    await login.call(paths.streamLogs);
    expect(new Set(used).size, 'it is about to end').toBe(2);
  },
);

test('a token that was refused is renewed before the next call, once', async () => {
  const { login, used, refuse } = setUp(0);
  await login.call(paths.streamLogs);
  refuse(grpcStatus.unavailable);
  await login.call(paths.streamLogs);
  refuse(grpcStatus.unauthenticated);
  await login.call(paths.streamLogs);
  await login.call(paths.streamLogs);
  expect(used.map((token) => used.indexOf(token))).toEqual([0, 0, 2, 2]);
});
