import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { SignJWT } from 'jose';
import { expect, test } from 'vitest';
import { verifySession } from './session-tokens.ts';

const key = 'the-key-that-argo-cd-signs-its-sessions-with';
const argo = {
  settings: {
    'accounts.alice': 'login, apiKey',
    'accounts.robot': 'apiKey',
    'accounts.gone': 'login',
    'accounts.gone.enabled': 'false',
    'accounts.odd': 'login',
    'accounts.odd.enabled': 'perhaps',
  },
  secrets: {
    'server.secretkey': key,
    'accounts.alice.passwordMtime': '2026-01-01T00:00:00Z',
    'accounts.alice.tokens': JSON.stringify([{ id: 'kept', iat: 1 }]),
    'accounts.robot.tokens': JSON.stringify([{ id: 'kept', iat: 1 }]),
  },
};
const never = async () => false;
const now = Math.floor(Date.now() / 1000);

/** A token as Argo CD makes it, with changes. */
function token(
  claims: Readonly<Record<string, unknown>> = {},
  header: Readonly<Record<string, unknown>> = {},
  signingKey = key,
): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const all = { iss: 'argocd', sub: 'alice:login', iat: now, nbf: now, exp: now + 3_600, jti: 'some-id', ...claims };
  const text = `${part({ alg: 'HS256', typ: 'JWT', ...header })}.${part(all)}`;
  return `${text}.${createHmac('sha256', signingKey).update(text).digest('base64url')}`;
}

const verified = (text: string, over: Partial<typeof argo> = {}) => verifySession(text, { ...argo, ...over }, never);

test('sessions and API tokens of accounts that may have them', async () => {
  expect(await verified(token())).toEqual({ account: 'alice', expires: new Date((now + 3_600) * 1000) });
  expect(await verified(token({ sub: 'admin:login' }))).toMatchObject({ account: 'admin' });
  expect(await verified(token({ sub: 'robot:apiKey', jti: 'kept', exp: undefined }))).toEqual({
    account: 'robot',
    expires: undefined,
  });
  // Older versions of Argo CD do not say what an API token is for.
  expect(await verified(token({ sub: 'robot', jti: 'kept' }))).toMatchObject({ account: 'robot' });
});

test.each<[string, string]>([
  ['no signature', token().replace(/[^.]+$/, '')],
  ['alg none', `${token({}, { alg: 'none' }).replace(/[^.]+$/, '')}`],
  ['alg none, in other letters', token({}, { alg: 'nOnE' })],
  ['another HMAC', token({}, { alg: 'HS384' })],
  ['RS256 with the key as the public one', token({}, { alg: 'RS256' })],
  ['another key', token({}, {}, 'another-key-another-key-another-key')],
  ['an empty key', token({}, {}, '')],
  ['a key in the header', token({}, { jwk: { kty: 'oct', k: Buffer.from(key).toString('base64url') } }, 'mine')],
  ['a critical extension', token({}, { crit: ['b64'], b64: false })],
  ['expired', token({ exp: now - 1 })],
  ['not valid yet', token({ nbf: now + 600 })],
  ['another issuer', token({ iss: 'https://dex.example.com' })],
  ['a list of issuers', token({ iss: ['argocd'] })],
  ['no issuer', token({ iss: undefined })],
  ['no account', token({ sub: undefined })],
  ['an account that is no text', token({ sub: { name: 'admin' } })],
  ['no identifier', token({ jti: undefined })],
  ['an empty identifier', token({ jti: '' })],
  ['no time of issue', token({ iat: undefined })],
  ['a project role', token({ sub: 'proj:default:reader' })],
  ['an unknown account', token({ sub: 'mallory:login' })],
  ['a name of the language', token({ sub: '__proto__:login' })],
  ['a field of another account', token({ sub: 'alice.enabled:login' })],
  ['a disabled account', token({ sub: 'gone:login' })],
  ['an account with a setting that cannot be read', token({ sub: 'odd:login' })],
  ['a session of an account that may not log in', token({ sub: 'robot:login' })],
  ['an API token of an account that may have none', token({ sub: 'admin:apiKey', jti: 'kept' })],
  ['an API token that was deleted', token({ sub: 'robot:apiKey', jti: 'other' })],
  ['from before the password changed', token({ iat: Date.parse('2025-12-31T00:00:00Z') / 1000 })],
  ['no token', ''],
  ['something else', 'a.b.c'],
  ['too long', token({ more: 'x'.repeat(9_000) })],
])('refused: %s', async (_name, text) => {
  await expect(verified(text)).rejects.toMatchObject({ name: 'TokenRefusedError' });
});

test('a token that is signed by a real key of another kind is refused', async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const rs256 = await new SignJWT({ sub: 'admin:login', jti: 'x' })
    .setProtectedHeader({ alg: 'RS256' })
    .setIssuer('argocd')
    .setIssuedAt()
    .sign(privateKey);
  await expect(verified(rs256)).rejects.toMatchObject({ name: 'TokenRefusedError' });
  expect(sign('sha256', Buffer.from('x'), privateKey).length).toBe(256);
});

test('revoked, or not known to be not revoked', async () => {
  const asked: string[] = [];
  const isRevoked = async (id: string) => asked.push(id) > 0;
  await expect(verifySession(token(), argo, isRevoked)).rejects.toThrow('the token is revoked');
  expect(asked).toEqual(['some-id']);
  const broken = () => Promise.reject(new Error('no connection'));
  await expect(verifySession(token(), argo, broken)).rejects.toThrow('Redis does not say');
});

test('a key that everybody knows signs nothing', async () => {
  for (const weak of ['', 'short']) {
    const secrets = { ...argo.secrets, 'server.secretkey': weak };
    await expect(verified(token({}, {}, weak), { secrets })).rejects.toThrow('no usable server.secretkey');
  }
  await expect(verified(token({}, {}, ''), { secrets: {} as never })).rejects.toThrow('no usable server.secretkey');
});
