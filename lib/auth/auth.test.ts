import 'reflect-metadata';
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { X509CertificateGenerator } from '@peculiar/x509';
import { hash } from 'bcryptjs';
import { SignJWT } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  AuthError,
  type AuthRequest,
  authenticateWith,
  checkPairing,
  checkTokenHolder,
  commonNameOf,
  createAuthMethod,
  fingerprintOf,
  GoExpression,
  headerMethod,
  isDnsLabel,
  mtlsMethod,
  type PeerInfo,
  parseAuth,
  parseUserDatabase,
  subjectOf,
  TokenAuthority,
  userpassMethod,
} from './index.ts';
import { PasswordChecker } from './password-checker.ts';
import { userFile } from './user-file.ts';

const request: AuthRequest = {
  method: 'mtls',
  credentials: {},
  mode: 'managed',
  version: '1',
  agentNamespace: 'argocd',
};

function peer(options: { certificate?: X509Certificate; headers?: Record<string, string> } = {}): PeerInfo {
  const { certificate, headers } = options;
  return {
    address: '127.0.0.1:1',
    encrypted: true,
    ...(certificate === undefined ? undefined : { certificate }),
    header: (name) => headers?.[name],
  };
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

async function certificateOf(subject: Record<string, string[]>[], uris: string[] = []): Promise<X509Certificate> {
  const { SubjectAlternativeNameExtension } = await import('@peculiar/x509');
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: subject,
    keys,
    signingAlgorithm: algorithm,
    extensions:
      uris.length === 0 ? [] : [new SubjectAlternativeNameExtension(uris.map((value) => ({ type: 'url', value })))],
  });
  return new X509Certificate(certificate.toString('pem'));
}

const refusal = (code: string) => expect.objectContaining({ name: 'AuthError', code });

describe('--auth', () => {
  test.each([
    ['mtls:subject:CN=([^,]+)', { method: 'mtls', source: 'subject', pattern: new GoExpression('CN=([^,]+)') }],
    ['mtls:CN=([^,]+)', { method: 'mtls', source: 'subject', pattern: new GoExpression('CN=([^,]+)') }],
    [
      'mtls:uri:spiffe://[^/]+/(.+)',
      { method: 'mtls', source: 'uri', pattern: new GoExpression('spiffe://[^/]+/(.+)') },
    ],
    [
      'mtls:(?i)cn=(?P<name>[[:alnum:]-]+)\\z',
      { method: 'mtls', source: 'subject', pattern: new GoExpression('(?i)cn=(?P<name>[[:alnum:]-]+)\\z') },
    ],
    ['userpass:/etc/users:x', { method: 'userpass', file: '/etc/users:x' }],
    [
      'header: X-Forwarded-User : ^(.*)$',
      { method: 'header', header: 'x-forwarded-user', pattern: new GoExpression('^(.*)$') },
    ],
  ])('%s', (text, choice) => {
    expect(parseAuth(text)).toEqual(choice);
  });

  test.each([
    ['', 'invalid auth string'],
    ['mtls', 'invalid auth string'],
    ['oidc:x', 'unknown auth method: oidc'],
    ['mtls:CN=[', 'is not a regular expression'],
    ['mtls:', 'no group'],
    ['mtls:subject:CN=.*', 'no group'],
    ['header:name', 'header:<name>:<re>'],
    ['userpass:', 'path of a file'],
  ])('%s is refused', (text, message) => {
    expect(() => parseAuth(text)).toThrow(
      expect.objectContaining({ code: 'configuration', message: expect.stringContaining(message) }),
    );
  });

  test.each([
    ['(?i)cn=(?P<name>[[:alnum:]-]+)\\z', 'CN=edge-1', 'edge-1'],
    ['(?i:cn)=(?<name>\\pL+)', 'O=x,CN=Zürich', 'Zürich'],
    ['\\QCN=(\\E([^)]+)', 'CN=(edge)', 'edge'],
    ['(?U)CN=(.+),', 'CN=a,O=b,C=c', 'a'],
    ['CN=(.+)$', 'CN=a\n', undefined],
    ['(?m)^CN=(.+)$', 'O=x\nCN=a\n', 'a'],
    ['CN=(x)?', 'CN=a', undefined],
  ])('%s means what it means to Go', (source, text, found) => {
    expect(new GoExpression(source).firstGroup(text)).toBe(found);
  });

  test.each(['(?=a)(b)', '(?<!a)(b)', '(a)\\1', '(a){1001}'])('%s is refused, as by Go', (source) => {
    expect(() => parseAuth(`mtls:${source}`)).toThrow(expect.objectContaining({ code: 'configuration' }));
  });

  test('no text makes an expression take long', async () => {
    const method = await createAuthMethod(parseAuth('header:x-agent:^(([a-z]+)+)$'));
    for (const value of [`${'a'.repeat(4_000)}!`, 'a'.repeat(100_000)]) {
      await expect(method.authenticate(request, peer({ headers: { 'x-agent': value } }))).rejects.toEqual(
        refusal('bad-credentials'),
      );
    }
  });

  test('a method must fit the listener', () => {
    expect(() => checkPairing(parseAuth('mtls:(.*)'), { plaintext: true })).toThrow(AuthError);
    expect(() => checkPairing(parseAuth('header:a:(.*)'), { plaintext: false })).toThrow(AuthError);
    expect(() => checkPairing(parseAuth('userpass:f'), { plaintext: true })).not.toThrow();
  });
});

describe('client certificates', () => {
  test('the subject reads as Go prints it', async () => {
    const certificate = await certificateOf([
      { C: ['DE'] },
      { '1.2.3.4': ['odd'] },
      { O: ['A, B'] },
      { CN: ['first'] },
      { O: ['C'] },
      { OU: [' x#'] },
      { CN: ['cluster1'] },
      { '2.5.4.5': ['7'] },
    ]);
    expect(subjectOf(certificate)).toBe('SERIALNUMBER=7,CN=cluster1,OU=\\ x#,O=A\\, B+O=C,C=DE,1.2.3.4=#13036f6464');
  });

  test.each([0, 1, 100, 127, 128, 300])(
    'a subject is found in a certificate whatever its length (%i)',
    async (length) => {
      const long = 'x'.repeat(length);
      const certificate = await certificateOf(
        [...(length === 0 ? [] : [{ O: [long] }]), { CN: ['cluster1'] }],
        ['https://x/'],
      );
      expect(subjectOf(certificate)).toBe(length === 0 ? 'CN=cluster1' : `CN=cluster1,O=${long}`);
      expect(commonNameOf(certificate)).toBe('cluster1');
    },
  );

  test('the first group of the expression is the agent', async () => {
    const certificate = await certificateOf([{ O: ['fleet'] }, { CN: ['cluster1'] }], ['https://x/', 'spiffe://td/c2']);
    const bySubject = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+),O=fleet') });
    expect(await bySubject.authenticate(request, peer({ certificate }))).toBe('cluster1');
    const byUri = mtlsMethod({ source: 'uri', pattern: new GoExpression('^spiffe://td/(.+)$') });
    expect(await byUri.authenticate(request, peer({ certificate }))).toBe('c2');
    await expect(bySubject.authenticate(request, peer())).rejects.toEqual(refusal('no-credentials'));
    const elsewhere = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+),O=other') });
    await expect(elsewhere.authenticate(request, peer({ certificate }))).rejects.toEqual(refusal('bad-credentials'));
    const whole = mtlsMethod({ source: 'subject', pattern: new GoExpression('(.*)') });
    await expect(whole.authenticate(request, peer({ certificate }))).rejects.toEqual(refusal('bad-name'));
  });

  test('a blocked certificate is refused', async () => {
    const certificate = await certificateOf([{ CN: ['cluster1'] }]);
    const blocked = new Set([fingerprintOf(certificate)]);
    expect([...blocked][0]).toMatch(/^[0-9A-F]{64}$/);
    const method = mtlsMethod({
      source: 'subject',
      pattern: new GoExpression('CN=([^,]+)'),
      isRevoked: (fingerprint) => blocked.has(fingerprint),
    });
    await expect(method.authenticate(request, peer({ certificate }))).rejects.toEqual(refusal('revoked'));
    blocked.clear();
    expect(await method.authenticate(request, peer({ certificate }))).toBe('cluster1');
  });

  test('another method than the configured one is refused', async () => {
    const method = await createAuthMethod(parseAuth('mtls:CN=(.*)'));
    await expect(authenticateWith(method, { ...request, method: 'userpass' }, peer())).rejects.toEqual(
      refusal('unknown-method'),
    );
  });
});

describe('names and passwords', () => {
  let good: string;
  beforeAll(async () => {
    good = await hash('secret', 4);
  });

  test('the database keeps good lines and says what is wrong with others', () => {
    const users = parseUserDatabase(
      `# x\n// y\n\ncluster1:${good}\nnocolon\nBad_Name:${good}\nplain:secret\ncluster1:${good}\n`,
    );
    expect([...users.hashes.keys()]).toEqual(['cluster1']);
    expect(users.warnings).toEqual([
      'line 5 has no colon',
      'line 6: "Bad_Name" is no DNS label',
      'line 7: the password of "plain" is no bcrypt hash',
      'line 8: "cluster1" was there before, the last one counts',
    ]);
  });

  test('right, wrong and missing credentials', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'users-'));
    try {
      await writeFile(join(folder, 'users'), `cluster1:${good}\n`);
      const method = await createAuthMethod({ method: 'userpass', file: join(folder, 'users') });
      const login = (credentials: Record<string, string>) => method.authenticate({ ...request, credentials }, peer());
      expect(await login({ clientid: 'cluster1', clientsecret: 'secret' })).toBe('cluster1');
      await expect(login({ clientid: 'cluster1', clientsecret: 'wrong' })).rejects.toEqual(refusal('bad-credentials'));
      await expect(login({ clientid: 'nobody', clientsecret: 'secret' })).rejects.toEqual(refusal('bad-credentials'));
      await expect(login({})).rejects.toEqual(refusal('no-credentials'));
      await expect(createAuthMethod({ method: 'userpass', file: join(folder, 'none') })).rejects.toEqual(
        refusal('configuration'),
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('a user database that changes is read anew, and one that is gone is remembered', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'users-'));
    try {
      const file = join(folder, 'users');
      await writeFile(file, `cluster1:${good}\n`);
      const warnings: string[] = [];
      let time = 0;
      const users = await userFile(
        file,
        (message) => warnings.push(message),
        () => time,
      );
      const method = userpassMethod(users);
      const login = (clientid: string, clientsecret = 'secret') =>
        method.authenticate({ ...request, credentials: { clientid, clientsecret } }, peer());
      expect(await login('cluster1')).toBe('cluster1');
      const other = await hash('other', 4);
      await writeFile(file, `cluster1:${other}\ncluster2:${good}\nnonsense\n`);
      expect(await login('cluster1')).toBe('cluster1');
      await expect(login('cluster2')).rejects.toEqual(refusal('bad-credentials'));
      time = 5000;
      expect(await login('cluster2')).toBe('cluster2');
      await expect(login('cluster1')).rejects.toEqual(refusal('bad-credentials'));
      expect(await login('cluster1', 'other')).toBe('cluster1');
      expect(warnings).toEqual([expect.stringContaining('line 3 has no colon')]);
      await rm(file);
      for (time of [10_000, 20_000]) expect(await login('cluster2')).toBe('cluster2');
      expect(warnings).toHaveLength(2);
      expect(warnings[1]).toContain('the users stay as they were');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  /** A checker that records what it is asked, and says yes. */
  function recordingChecker() {
    const asked: string[] = [];
    const checker = new PasswordChecker();
    checker.compare = async ({ hash }) => {
      asked.push(hash);
      return true;
    };
    return { checker, asked };
  }
  const withPassword = (clientid: string, clientsecret: string) => ({
    ...request,
    credentials: { clientid, clientsecret },
  });

  test('an unknown name costs a comparison like a known one, always the same, and is never let in', async () => {
    const hashes = new Map(Array.from({ length: 50 }, (_, index) => [`c${index}`, `$2b$10$${index}`]));
    const { checker, asked } = recordingChecker();
    const method = userpassMethod({ hashes, warnings: [] }, checker);
    for (const name of ['x', 'x', 'y', 'z', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7']) {
      await expect(method.authenticate(withPassword(name, 'p'), peer())).rejects.toEqual(refusal('bad-credentials'));
    }
    expect(asked[0]).toBe(asked[1]);
    for (const used of asked) expect([...hashes.values()]).toContain(used);
    expect(new Set(asked).size).toBeGreaterThan(2);
    const empty = userpassMethod({ hashes: new Map(), warnings: [] }, checker);
    await expect(empty.authenticate(withPassword('x', 'p'), peer())).rejects.toEqual(refusal('bad-credentials'));
    expect(asked).toHaveLength(11);
  });

  test('a password that was right is not compared again; a wrong one always is', async () => {
    const { checker, asked } = recordingChecker();
    const method = userpassMethod({ hashes: new Map([['c1', good]]), warnings: [] }, checker);
    for (let login = 0; login < 3; login++)
      expect(await method.authenticate(withPassword('c1', 's'), peer())).toBe('c1');
    expect(asked).toHaveLength(1);
    checker.compare = async () => {
      asked.push('wrong');
      return false;
    };
    for (let login = 0; login < 2; login++) {
      await expect(method.authenticate(withPassword('c1', 'wrong'), peer())).rejects.toEqual(
        refusal('bad-credentials'),
      );
    }
    expect(asked).toEqual([good, 'wrong', 'wrong']);
    expect(await method.authenticate(withPassword('c1', 's'), peer())).toBe('c1');
  });

  test.each(['$2a$', '$2b$', '$2x$', '$2y$'])('hashes of revision %s count', async (revision) => {
    const checker = new PasswordChecker();
    const changed = good.replace(/^\$2.\$/, revision);
    expect(await checker.compare({ password: 'secret', hash: changed }, '10.0.0.1:1')).toBe(true);
    expect(await checker.compare({ password: 'wrong', hash: changed }, '10.0.0.1:1')).toBe(false);
    expect(await checker.compare({ password: 'secret', hash: '$2b$10$short' }, '10.0.0.1:1')).toBe(false);
  });

  test('whoever guesses waits behind himself, in bounded numbers, and the program goes on', async () => {
    const slow = await hash('secret', 8);
    const checker = new PasswordChecker({ threads: 1, maxWaiting: 30, maxWaitingPerAddress: 20 });
    const order: string[] = [];
    const ask = (from: string, isWanted?: () => boolean) =>
      checker.compare({ password: 'x', hash: slow }, from, isWanted).then(() => order.push(from));
    const guesses = Array.from({ length: 21 }, (_, port) => ask(`10.0.0.1:${port}`));
    expect(() => ask('10.0.0.1:99')).toThrow(refusal('too-many-logins'));
    const left = ask('10.0.0.3:1', () => false).catch((error: AuthError) => error.code);
    const agent = ask('10.0.0.2:1');
    let turns = 0;
    const ticker = setInterval(() => turns++, 1);
    await agent;
    clearInterval(ticker);
    // One was under way, and one of the other address may have had its turn.
    expect(order.indexOf('10.0.0.2:1')).toBeLessThanOrEqual(2);
    expect(turns).toBeGreaterThan(3);
    await Promise.all(guesses);
    expect(order).toHaveLength(22);
    expect(await left).toBe('too-many-logins');
  });
});

test('a header that a proxy sets', async () => {
  const method = await createAuthMethod(parseAuth('header:X-Client:^agent-(.+)$'));
  expect(await method.authenticate(request, peer({ headers: { 'x-client': 'agent-c1' } }))).toBe('c1');
  await expect(method.authenticate(request, peer())).rejects.toEqual(refusal('no-credentials'));
  await expect(method.authenticate(request, peer({ headers: { 'x-client': 'c1' } }))).rejects.toEqual(
    refusal('bad-credentials'),
  );
  await expect(method.authenticate(request, peer({ headers: { 'x-client': 'agent-C1' } }))).rejects.toEqual(
    refusal('bad-name'),
  );
});

test.each([
  ['a', true],
  ['a-1', true],
  ['-a', false],
  ['a.b', false],
  ['A', false],
  ['', false],
  ['a'.repeat(64), false],
])('DNS label %s: %s', (name, is) => {
  expect(isDnsLabel(name)).toBe(is);
});

test('a token counts only on a connection that is not somebody else', async () => {
  const token = { agent: 'one', mode: 'managed' } as const;
  const mtls = mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+)') });
  const holder = (name: string) => certificateOf([{ CN: [name] }]);
  checkTokenHolder(mtls, token, peer({ certificate: await holder('one') }));
  const other = peer({ certificate: await holder('two') });
  expect(() => checkTokenHolder(mtls, token, other)).toThrow(refusal('wrong-certificate'));
  expect(() => checkTokenHolder(mtls, token, other)).toThrow(
    'The token is of agent one, the client certificate of agent two',
  );
  expect(() => checkTokenHolder(mtls, token, peer())).toThrow(refusal('no-credentials'));

  const header = headerMethod({ header: 'x-agent', pattern: new GoExpression('^(.+)$') });
  checkTokenHolder(header, token, peer({ headers: { 'x-agent': 'one' } }));
  checkTokenHolder(header, token, peer());
  expect(() => checkTokenHolder(header, token, peer({ headers: { 'x-agent': 'two' } }))).toThrow(
    refusal('wrong-certificate'),
  );
  checkTokenHolder(userpassMethod(parseUserDatabase('')), token, peer());
});

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

  test('end when they say, and are good for one purpose', async () => {
    at('2026-08-21T00:00:00Z');
    const { accessToken, refreshToken } = await authority.issue(identity);
    at('2026-08-21T00:04:59Z');
    await authority.verifyAccess(accessToken);
    await expect(authority.verifyAccess(refreshToken)).rejects.toEqual(refusal('bad-token'));
    await expect(authority.refresh(accessToken)).rejects.toEqual(refusal('bad-token'));
    await expect(authority.verifyResourceProxy(accessToken)).rejects.toEqual(refusal('bad-token'));
    at('2026-08-21T00:05:00Z');
    await expect(authority.verifyAccess(accessToken)).rejects.toThrow('it has expired');
    at('2026-08-20T23:59:59Z');
    await expect(authority.verifyAccess(accessToken)).rejects.toEqual(refusal('bad-token'));
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
      await expect(authority.verifyAccess(token), token).rejects.toEqual(refusal('bad-token'));
    }
    const sign = (subject: string) =>
      new SignJWT()
        .setProtectedHeader({ alg: 'RS512' })
        .setIssuer('argocd-agent-server')
        .setAudience('argocd-agent-server-access')
        .setExpirationTime(new Date('2026-08-21T00:01:00Z'))
        .setSubject(subject)
        .sign(createPrivateKey(pem));
    await expect(authority.verifyAccess(await sign('cluster1'))).rejects.toThrow('is not an agent and its mode');
    await expect(authority.verifyAccess(await sign('{"clientID":"a","mode":"x"}'))).rejects.toEqual(
      refusal('bad-token'),
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
    expect(() => own.rotate('nonsense')).toThrow(refusal('configuration'));
    expect(await own.verifyAccess(before.accessToken)).toEqual(identity);
    expect(own.rotate(second)).toBe(true);
    const after = await own.issue(identity);
    const renewed = await own.refresh(before.refreshToken);
    for (const token of [before, after, renewed]) expect(await own.verifyAccess(token.accessToken)).toEqual(identity);
    const others = TokenAuthority.fromPem(second, { now: () => now });
    expect(await others.verifyAccess(after.accessToken)).toEqual(identity);
    await expect(others.verifyAccess(before.accessToken)).rejects.toEqual(refusal('bad-token'));
    at('2026-08-21T00:04:59Z');
    await own.refresh(before.refreshToken);
    at('2026-08-21T00:05:00Z');
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
      expect(() => TokenAuthority.fromPem(key)).toThrow(refusal('configuration'));
    }
    expect(() => TokenAuthority.fromPem('secret nonsense')).toThrow(expect.not.stringContaining('secret nonsense'));
  });
});
