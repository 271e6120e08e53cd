import { X509Certificate } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { TokenAuthority } from '../../../lib/auth/index.ts';
import type { CertificateProblem } from '../../../lib/credentials/index.ts';
import { createAuthority, generateJwtKey, issueCertificate, type KeyCertificate } from '../../../lib/pki/index.ts';
import { CallerNames } from './callers.ts';

let authority: KeyCertificate;
let tokens: TokenAuthority;
beforeAll(async () => {
  authority = await createAuthority({ commonName: 'ca' });
  tokens = TokenAuthority.fromPem(await generateJwtKey(2048));
});

const certificateOf = async (commonName: string) => ({
  certificate: new X509Certificate((await issueCertificate({ authority, commonName, usages: ['client'] })).certificate),
  problem: (): CertificateProblem | undefined => undefined,
});

test("a certificate's name is the agent's; a token names another one, and a bad token none", async () => {
  const callers = new CallerNames(tokens);
  const certified = await certificateOf('edge-1');
  const agentOf = (authorization?: string) => callers.agentOf({ authorization, certified });
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
  const open = new CallerNames(tokens);
  await expect(open.agentOf({ authorization, certified: undefined })).rejects.toMatchObject({ status: 401 });
  const certified = { ...(await certificateOf('edge-1')), problem: () => ({ code: 'revoked', reason: 'x' }) as const };
  await expect(open.agentOf({ authorization, certified })).rejects.toMatchObject({ status: 401 });
});

test.each(['a.b', 'A', 'a/b', '-a', 'a'.repeat(64), 'system:admin'])('%s names no agent', async (name) => {
  const callers = new CallerNames(tokens);
  const certified = await certificateOf(name);
  await expect(callers.agentOf({ authorization: undefined, certified })).rejects.toMatchObject({ status: 400 });
});

test('a query that names another agent than the credentials is refused with an explanation', async () => {
  const callers = new CallerNames(tokens);
  const certified = await certificateOf('edge-1');
  const agentOf = (url: string) => callers.agentOf({ authorization: undefined, certified, url });
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
