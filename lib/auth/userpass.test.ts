import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hash } from 'bcryptjs';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  type AgentIdentity,
  type AuthError,
  checkToken,
  createAuthMethod,
  parseUserDatabase,
  TokenAuthority,
  userpassMethod,
} from './index.ts';
import { PasswordChecker } from './password-checker.ts';
import { authError, peer, request } from './testing/peers.ts';
import { userFile } from './user-file.ts';

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
      expect(await login({ clientid: 'cluster1', clientsecret: 'secret' })).toMatchObject({ agent: 'cluster1' });
      await expect(login({ clientid: 'cluster1', clientsecret: 'wrong' })).rejects.toEqual(
        authError('bad-credentials'),
      );
      await expect(login({ clientid: 'nobody', clientsecret: 'secret' })).rejects.toEqual(authError('bad-credentials'));
      await expect(login({})).rejects.toEqual(authError('no-credentials'));
      await expect(createAuthMethod({ method: 'userpass', file: join(folder, 'none') })).rejects.toEqual(
        authError('configuration'),
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
      expect(await login('cluster1')).toMatchObject({ agent: 'cluster1' });
      const other = await hash('other', 4);
      await writeFile(file, `cluster1:${other}\ncluster2:${good}\nnonsense\n`);
      expect(await login('cluster1')).toMatchObject({ agent: 'cluster1' });
      await expect(login('cluster2')).rejects.toEqual(authError('bad-credentials'));
      time = 5000;
      expect(await login('cluster2')).toMatchObject({ agent: 'cluster2' });
      await expect(login('cluster1')).rejects.toEqual(authError('bad-credentials'));
      expect(await login('cluster1', 'other')).toMatchObject({ agent: 'cluster1' });
      expect(warnings).toEqual([expect.stringContaining('line 3 has no colon')]);
      await rm(file);
      for (time of [10_000, 20_000]) {
        expect(await login('cluster2')).toMatchObject({ agent: 'cluster2' });
      }
      expect(warnings).toHaveLength(2);
      expect(warnings[1]).toContain('the users stay as they were');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('tokens of a name end when it is removed or its password changes', async () => {
    const other = await hash('other', 4);
    let users = parseUserDatabase(`cluster1:${good}\ncluster2:${good.replace(/.$/, 'x')}\n`);
    const method = userpassMethod(async () => users);
    let now = Date.parse('2026-08-21T00:00:00Z');
    const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
    const tokens = TokenAuthority.fromPem(key.export({ type: 'pkcs8', format: 'pem' }).toString(), {
      now: () => new Date(now),
    });
    const credentials = { clientid: 'cluster1', clientsecret: 'secret' };
    const login = await method.authenticate({ ...request, credentials }, peer());
    let { accessToken, refreshToken } = await tokens.issue({ ...login, mode: 'managed' });
    const check = (identity: AgentIdentity) => checkToken(method, identity, peer());
    // Also with a refresh token of a refresh token.
    for (let day = 0; day < 3; day++) {
      now += 86_395_000;
      const pair = await tokens.refresh(refreshToken, check);
      ({ accessToken, refreshToken } = { refreshToken, ...pair });
      await check(await tokens.verifyAccess(accessToken));
    }
    users = parseUserDatabase(`cluster1:${other}\n`);
    await expect(tokens.refresh(refreshToken, check)).rejects.toEqual(authError('bad-token'));
    await expect(check(await tokens.verifyAccess(accessToken))).rejects.toThrow('password of "cluster1" was changed');
    users = parseUserDatabase(`cluster2:${good}\n`);
    await expect(tokens.refresh(refreshToken, check)).rejects.toEqual(authError('bad-credentials'));
    await expect(check(await tokens.verifyAccess(accessToken))).rejects.toThrow('no longer in the user database');
    users = parseUserDatabase(`cluster1:${good}\n`);
    await check(await tokens.verifyAccess(accessToken));
    // Tokens of earlier versions do not say what they rest on.
    const old = await tokens.issue({ agent: 'cluster1', mode: 'managed' });
    await expect(tokens.refresh(old.refreshToken, check)).rejects.toEqual(authError('bad-token'));
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
      await expect(method.authenticate(withPassword(name, 'p'), peer())).rejects.toEqual(authError('bad-credentials'));
    }
    expect(asked[0]).toBe(asked[1]);
    for (const used of asked) {
      expect([...hashes.values()]).toContain(used);
    }
    expect(new Set(asked).size).toBeGreaterThan(2);
    const empty = userpassMethod({ hashes: new Map(), warnings: [] }, checker);
    await expect(empty.authenticate(withPassword('x', 'p'), peer())).rejects.toEqual(authError('bad-credentials'));
    expect(asked).toHaveLength(11);
  });

  test('a password that was right is not compared again; a wrong one always is', async () => {
    const { checker, asked } = recordingChecker();
    const method = userpassMethod({ hashes: new Map([['c1', good]]), warnings: [] }, checker);
    for (let login = 0; login < 3; login++) {
      expect(await method.authenticate(withPassword('c1', 's'), peer())).toMatchObject({ agent: 'c1' });
    }
    expect(asked).toHaveLength(1);
    checker.compare = async () => {
      asked.push('wrong');
      return false;
    };
    for (let login = 0; login < 2; login++) {
      await expect(method.authenticate(withPassword('c1', 'wrong'), peer())).rejects.toEqual(
        authError('bad-credentials'),
      );
    }
    expect(asked).toEqual([good, 'wrong', 'wrong']);
    expect(await method.authenticate(withPassword('c1', 's'), peer())).toMatchObject({ agent: 'c1' });
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
    expect(() => ask('10.0.0.1:99')).toThrow(authError('too-many-logins'));
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
