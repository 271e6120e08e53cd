import { X509Certificate } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { TokenAuthority } from '../../../lib/auth/index.ts';
import { createAuthority, generateJwtKey, issueCertificate, type KeyCertificate } from '../../../lib/pki/index.ts';
import { CallerNames } from './callers.ts';

let authority: KeyCertificate;
let tokens: TokenAuthority;
beforeAll(async () => {
  authority = await createAuthority({ commonName: 'ca' });
  tokens = TokenAuthority.fromPem(await generateJwtKey(2048));
});

const certificateOf = async (commonName: string) =>
  new X509Certificate((await issueCertificate({ authority, commonName, usages: ['client'] })).certificate);

test("a certificate's name is the agent's; a token names another one, and a bad token none", async () => {
  const callers = new CallerNames(tokens, () => false);
  const certificate = await certificateOf('edge-1');
  const agentOf = (authorization?: string) => callers.agentOf({ authorization, certificate });
  expect(await agentOf()).toBe('edge-1');
  expect(await agentOf('Basic abc')).toBe('edge-1');
  expect(await agentOf(`Bearer ${await tokens.issueResourceProxy('edge-2')}`)).toBe('edge-2');
  const { accessToken, refreshToken } = await tokens.issue({ agent: 'edge-3', mode: 'managed' });
  for (const token of ['', 'nonsense', accessToken, refreshToken]) {
    await expect(agentOf(`Bearer ${token}`)).rejects.toMatchObject({ status: 401 });
  }
});

test('a caller without a certificate, or with a blocked one, is refused, whatever its token is', async () => {
  const authorization = `Bearer ${await tokens.issueResourceProxy('edge-2')}`;
  const open = new CallerNames(tokens, () => false);
  await expect(open.agentOf({ authorization, certificate: undefined })).rejects.toMatchObject({ status: 401 });
  const blocking = new CallerNames(tokens, () => true);
  const certificate = await certificateOf('edge-1');
  await expect(blocking.agentOf({ authorization, certificate })).rejects.toMatchObject({ status: 401 });
});

test.each(['a.b', 'A', 'a/b', '-a', 'a'.repeat(64), 'system:admin'])('%s names no agent', async (name) => {
  const callers = new CallerNames(tokens, () => false);
  const certificate = await certificateOf(name);
  await expect(callers.agentOf({ authorization: undefined, certificate })).rejects.toMatchObject({ status: 400 });
});

test('a query that names another agent than the credentials is refused with an explanation', async () => {
  const callers = new CallerNames(tokens, () => false);
  const certificate = await certificateOf('edge-1');
  const agentOf = (url: string) => callers.agentOf({ authorization: undefined, certificate, url });
  for (const url of [
    '/api',
    '/api?agentName=edge-1',
    '/api?limit=1&agentName=edge-1&agentName=edge-1',
    '/agentName=b',
  ]) {
    expect(await agentOf(url)).toBe('edge-1');
  }
  for (const url of [
    '/api?agentName=edge-2',
    '/api?agentName=',
    '/api?agentName=edge-1&agentName=edge-2',
    '/?agent%4eame=x',
  ]) {
    await expect(agentOf(url)).rejects.toMatchObject({ status: 403, message: expect.stringContaining('agent edge-1') });
  }
});
