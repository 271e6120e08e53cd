import { expect, test } from 'vitest';
import { checkToken, createAuthMethod, GoExpression, parseAuth, spiffeJwtMethod } from './index.ts';
import { authError, peer, request } from './testing/peers.ts';

const key = 'k'.repeat(43);

/** A method at second 1,000 whose judge takes tokens of the form `ID expiry`. */
function method(pattern = '^spiffe://near/agent/([^/]+)$') {
  const state = { seconds: 1_000, isTrusted: true };
  const one = spiffeJwtMethod({
    pattern: new GoExpression(pattern),
    svids: {
      judge: async (token) => {
        const [id = '', expires] = token.split(' ');
        if (expires === undefined) {
          throw new Error('it is malformed');
        }
        return { id, expires: Number(expires), key };
      },
      trusts: (digest) => state.isTrusted && digest === key,
    },
    now: () => state.seconds * 1_000,
  });
  const logIn = (token?: string) =>
    one.authenticate({ ...request, method: 'spiffe-jwt', credentials: token === undefined ? {} : { token } }, peer());
  return { state, one, logIn };
}

test('the first group of the expression in the SPIFFE ID is the agent', async () => {
  const { logIn } = method();
  expect(await logIn('spiffe://near/agent/a 1300')).toEqual({ agent: 'a', credential: `4600.${key}` });
  expect(await logIn('spiffe://near/agent/a 9000')).toEqual({ agent: 'a', credential: `9000.${key}` });
  await expect(logIn()).rejects.toEqual(authError('no-credentials'));
  await expect(logIn('')).rejects.toEqual(authError('no-credentials'));
  await expect(logIn('nonsense')).rejects.toThrow('The JWT-SVID was refused: it is malformed');
  // A bundle that is trusted counts only where the expression admits its trust domain.
  await expect(logIn('spiffe://far/agent/a 1300')).rejects.toEqual(authError('bad-credentials'));
  await expect(method('spiffe://[^/]+/(.+)').logIn('spiffe://near/agent/a 1300')).rejects.toEqual(
    authError('bad-name'),
  );
});

test('a login ends with its JWT-SVID or after an hour, and with the key that has signed it', async () => {
  const { state, one, logIn } = method();
  const identity = { ...(await logIn('spiffe://near/agent/a 1300')), mode: 'managed' } as const;
  state.seconds = 4_599;
  await checkToken(one, identity, peer());
  state.isTrusted = false;
  await expect(checkToken(one, identity, peer())).rejects.toThrow('is not trusted any more');
  state.isTrusted = true;
  state.seconds = 4_600;
  await expect(checkToken(one, identity, peer())).rejects.toThrow('The login of "a" has ended');
  await expect(checkToken(one, { agent: 'a', mode: 'managed' }, peer())).rejects.toEqual(authError('bad-token'));
});

test('the method needs somebody who judges JWT-SVIDs', async () => {
  await expect(createAuthMethod(parseAuth('spiffe-jwt:^spiffe://near/(.+)$'))).rejects.toThrow(
    'set --spire-agent-socket',
  );
});
