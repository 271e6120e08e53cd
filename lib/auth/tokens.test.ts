import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { SignJWT } from 'jose';
import { describe, expect, test } from 'vitest';
import { AuthError, TokenAuthority } from './index.ts';
import { authError } from './testing/peers.ts';

describe('tokens', () => {
  const pem = generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();
  const identity = { agent: 'agent-managed', mode: 'managed' } as const;
  let now = new Date('2026-08-21T00:00:00.900Z');
  const authority = TokenAuthority.fromPem(pem, { now: () => now });
  const at = (text: string) => {
    now = new Date(text);
  };
  const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  const headerOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString());

  test('have the form of the originals', async () => {
    at('2026-08-21T00:00:00.900Z');
    const { accessToken, refreshToken } = await authority.issue(identity);
    const seconds = Date.parse('2026-08-21T00:00:00Z') / 1000;
    expect(headerOf(accessToken)).toEqual({ alg: 'RS512', typ: 'JWT' });
    expect(claimsOf(accessToken)).toEqual({
      iss: 'argocd-agent-server',
      sub: '{"clientID":"agent-managed","mode":"managed"}',
      aud: ['argocd-agent-server-access'],
      exp: seconds + 300,
      nbf: seconds,
      iat: seconds,
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(claimsOf(refreshToken)).toMatchObject({ aud: ['argocd-agent-server-refresh'], exp: seconds + 86_400 });
    const proxy = await authority.issueResourceProxy('agent-managed');
    expect(claimsOf(proxy)).toMatchObject({ sub: 'agent-managed', aud: ['argocd-agent-server-resource-proxy'] });
    expect(claimsOf(proxy).exp).toBeUndefined();
    expect(await authority.verifyResourceProxy(proxy)).toBe('agent-managed');
    expect(await authority.verifyAccess(accessToken)).toEqual(identity);
  });

  test('a refresh token that was issued for longer is renewed before its age ends', async () => {
    at('2026-08-21T00:00:00Z');
    const issuedAt = now.getTime() / 1000;
    const long = await new SignJWT({})
      .setProtectedHeader({ alg: 'RS512', typ: 'JWT' })
      .setIssuer('argocd-agent-server')
      .setAudience(['argocd-agent-server-refresh'])
      .setSubject('{"clientID":"agent-managed","mode":"managed"}')
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + 30 * 86_400)
      .sign(createPrivateKey(pem));
    at('2026-08-21T23:55:00Z');
    expect(await authority.refresh(long)).toHaveProperty('refreshToken');
  });

  test('end when they say, and are good for one purpose', async () => {
    at('2026-08-21T00:00:00Z');
    const { accessToken, refreshToken } = await authority.issue(identity);
    at('2026-08-21T00:04:59Z');
    await authority.verifyAccess(accessToken);
    await expect(authority.verifyAccess(refreshToken)).rejects.toEqual(authError('bad-token'));
    await expect(authority.refresh(accessToken)).rejects.toEqual(authError('bad-token'));
    await expect(authority.verifyResourceProxy(accessToken)).rejects.toEqual(authError('bad-token'));
    at('2026-08-21T00:05:00Z');
    await expect(authority.verifyAccess(accessToken)).rejects.toThrow('it has expired');
    at('2026-08-20T23:59:59Z');
    await expect(authority.verifyAccess(accessToken)).rejects.toEqual(authError('bad-token'));
  });

  test('that were issued for longer live no longer than those of today', async () => {
    at('2026-08-21T00:00:00Z');
    const made = (use: 'access' | 'refresh', claims: object) =>
      new SignJWT({ iss: 'argocd-agent-server', aud: [`argocd-agent-server-${use}`], ...claims })
        .setProtectedHeader({ alg: 'RS512', typ: 'JWT' })
        .sign(createPrivateKey(pem));
    const sub = JSON.stringify({ clientID: 'agent-managed', mode: 'managed' });
    const [iat, exp] = [now.getTime() / 1000, now.getTime() / 1000 + 30 * 86_400];
    const [access, refresh] = [await made('access', { sub, iat, exp }), await made('refresh', { sub, iat, exp })];
    at('2026-08-21T00:05:00Z');
    await authority.verifyAccess(access);
    at('2026-08-21T00:05:01Z');
    await expect(authority.verifyAccess(access)).rejects.toThrow('it has expired');
    at('2026-08-22T00:00:00Z');
    await authority.refresh(refresh);
    at('2026-08-22T00:00:01Z');
    await expect(authority.refresh(refresh)).rejects.toThrow('it has expired');
    const undated = await made('access', { sub, exp });
    await expect(authority.verifyAccess(undated), 'does not tell its age').rejects.toThrow('its claim "iat"');
  });

  test('a refresh token is replaced near its end only', async () => {
    at('2026-08-21T00:00:00Z');
    const { refreshToken } = await authority.issue(identity);
    at('2026-08-21T23:49:59Z');
    const first = await authority.refresh(refreshToken);
    expect(first.refreshToken).toBeUndefined();
    expect(await authority.verifyAccess(first.accessToken)).toEqual(identity);
    at('2026-08-21T23:50:01Z');
    expect((await authority.refresh(refreshToken)).refreshToken).toBeDefined();
    const revoked = new AuthError('revoked', 'gone');
    await expect(authority.refresh(refreshToken, () => Promise.reject(revoked))).rejects.toBe(revoked);
  });

  test('forged ones are refused', async () => {
    at('2026-08-21T00:00:00Z');
    const other = TokenAuthority.fromPem(
      generateKeyPairSync('rsa', { modulusLength: 2048 })
        .privateKey.export({ type: 'pkcs8', format: 'pem' })
        .toString(),
      { now: () => now },
    );
    const { accessToken } = await other.issue(identity);
    await expect(authority.verifyAccess(accessToken)).rejects.toThrow('its signature is not of this principal');
    const [header, payload] = (await authority.issue(identity)).accessToken.split('.');
    const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`;
    for (const token of ['', 'x', `${header}.${payload}.`, none]) {
      await expect(authority.verifyAccess(token), token).rejects.toEqual(authError('bad-token'));
    }
    const sign = (subject: string) =>
      new SignJWT()
        .setProtectedHeader({ alg: 'RS512' })
        .setIssuer('argocd-agent-server')
        .setAudience('argocd-agent-server-access')
        .setIssuedAt(now)
        .setExpirationTime(new Date('2026-08-21T00:01:00Z'))
        .setSubject(subject)
        .sign(createPrivateKey(pem));
    await expect(authority.verifyAccess(await sign('cluster1'))).rejects.toThrow('is not an agent and its mode');
    await expect(authority.verifyAccess(await sign('{"clientID":"a","mode":"x"}'))).rejects.toEqual(
      authError('bad-token'),
    );
    expect(await authority.verifyAccess(await sign('{"clientID":"a","mode":"managed"}'))).toMatchObject({ agent: 'a' });
  });

  test('after a change of the key the former one counts for as long as an access token lives', async () => {
    at('2026-08-21T00:00:00Z');
    const keys = Array.from({ length: 2 }, () =>
      generateKeyPairSync('rsa', { modulusLength: 2048 })
        .privateKey.export({ type: 'pkcs8', format: 'pem' })
        .toString(),
    );
    const [first = '', second = ''] = keys;
    const own = TokenAuthority.fromPem(first, { now: () => now });
    const before = await own.issue(identity);
    expect(own.rotate(first)).toBe(false);
    expect(() => own.rotate('nonsense')).toThrow(authError('configuration'));
    expect(await own.verifyAccess(before.accessToken)).toEqual(identity);
    expect(own.rotate(second)).toBe(true);
    const after = await own.issue(identity);
    const renewed = await own.refresh(before.refreshToken);
    for (const token of [before, after, renewed]) {
      expect(await own.verifyAccess(token.accessToken)).toEqual(identity);
    }
    const others = TokenAuthority.fromPem(second, { now: () => now });
    expect(await others.verifyAccess(after.accessToken)).toEqual(identity);
    await expect(others.verifyAccess(before.accessToken)).rejects.toEqual(authError('bad-token'));
    at('2026-08-21T00:04:59Z');
    await own.refresh(before.refreshToken);
    expect(await own.isSigned(before.accessToken), 'whatever its age').toBe(true);
    at('2026-08-21T00:05:00Z');
    expect(await own.isSigned(before.accessToken)).toBe(false);
    expect(await own.isSigned(after.accessToken)).toBe(true);
    expect(await own.isSigned('nonsense')).toBe(false);
    await expect(own.refresh(before.refreshToken)).rejects.toThrow('its signature is not of this principal');
    await own.refresh(after.refreshToken);
    // Back to the first key: what it signed long ago counts again, as far as it has not ended.
    expect(own.rotate(first)).toBe(true);
    await own.refresh(before.refreshToken);
    await own.refresh(after.refreshToken);
  });

  test('what a former key signed counts until it expires, as long as that key is named', async () => {
    at('2026-08-21T00:00:00Z');
    const pairs = Array.from({ length: 2 }, () => generateKeyPairSync('rsa', { modulusLength: 2048 }));
    const [first = '', second = ''] = pairs.map(({ privateKey }) =>
      privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    );
    const former = [pairs[0]?.publicKey.export({ type: 'spki', format: 'pem' }).toString() ?? ''];
    const own = TokenAuthority.fromPem(first, { now: () => now });
    const before = await own.issue(identity);
    // Nobody has to log in anew.
    expect(own.rotate(second, former)).toBe(false);
    at('2026-08-21T12:00:00Z');
    const renewed = await own.refresh(before.refreshToken);
    const startedAnew = TokenAuthority.fromPem(second, { now: () => now, former });
    for (const one of [own, startedAnew]) {
      expect(await one.verifyAccess(renewed.accessToken)).toEqual(identity);
      await one.refresh(before.refreshToken);
      await expect(one.verifyAccess(before.accessToken)).rejects.toThrow('it has expired');
    }
    expect(own.rotate(second)).toBe(false);
    await expect(own.refresh(before.refreshToken)).rejects.toThrow('its signature is not of this principal');
  });

  test('a key that cannot sign is refused at once, without being quoted', () => {
    const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({
      type: 'pkcs8',
      format: 'pem',
    });
    const curve = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
    for (const key of [small.toString(), curve.toString(), 'secret nonsense']) {
      expect(() => TokenAuthority.fromPem(key)).toThrow(authError('configuration'));
    }
    expect(() => TokenAuthority.fromPem('secret nonsense')).toThrow(expect.not.stringContaining('secret nonsense'));
  });
});
