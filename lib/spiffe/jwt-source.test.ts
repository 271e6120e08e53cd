import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../base/testing.ts';
import { createAuthority } from '../pki/index.ts';
import { fetchJwtSvid, jwtSource } from './index.ts';
import { parseJwtBundle } from './jwt-bundle.ts';
import { judgeJwtSvid } from './jwt-svid.ts';
import { createJwtSigner, issueSvid, startWorkloadEndpoint } from './testing.ts';

const ignore = () => undefined;
const [own, other] = await Promise.all([createJwtSigner('one'), createJwtSigner('one')]);
const audience = ['argocd-agent-principal'];
const id = 'spiffe://near/agent/a';

async function started() {
  const folder = await mkdtemp(join(tmpdir(), 'spiffe-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const endpoint = await startWorkloadEndpoint(join(folder, 'api.sock'));
  onTestFinished(() => endpoint.stop());
  const authority = await createAuthority({ commonName: 'near' });
  const svid = { id, ...(await issueSvid(authority, id)), bundle: [authority.certificate] };
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  return { endpoint, svid, signal: stop.signal };
}

test('a JWT-SVID is fetched, judged by the bundles of the moment, and its key withdrawn', async () => {
  const { endpoint, svid, signal } = await started();
  endpoint.give({ ...svid, signer: own, jwtBundles: { 'spiffe://near': [own], 'spiffe://far': [other] } });
  const logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };
  const source = jwtSource({ endpoint: endpoint.address, logger, signal });
  await until('the bundles are there', () => source.bundles.value?.size === 2);
  const token = await fetchJwtSvid(endpoint.address, { audience: 'argocd-agent-principal', signal });
  const judged = await source.judge(token, 'argocd-agent-principal');
  expect(judged).toEqual({ id, expires: expect.any(Number), key: expect.stringMatching(/^[\w-]{43}$/) });
  expect(source.trusts(judged.key)).toBe(true);
  const far = await other.sign({ id: 'spiffe://far/agent/a', audience });
  expect((await source.judge(far, 'argocd-agent-principal')).id).toBe('spiffe://far/agent/a');
  // Same key ID, another trust domain's key.
  await expect(source.judge(await other.sign({ id, audience }), 'argocd-agent-principal')).rejects.toThrow(
    'is not signed by the key that it names',
  );
  endpoint.give({ ...svid, signer: own, jwtBundles: { 'spiffe://near': [other] } });
  await until('one bundle is left', () => source.bundles.value?.size === 1);
  expect(source.trusts(judged.key)).toBe(false);
  await expect(source.judge(token, 'argocd-agent-principal')).rejects.toThrow('is not signed by');
  await expect(source.judge(far, 'argocd-agent-principal')).rejects.toThrow('no bundle of the trust domain of');
});

test('an endpoint without JWT-SVIDs, or without an answer, is named', async () => {
  const { endpoint, svid, signal } = await started();
  endpoint.give(svid);
  const fetched = (address: string) => fetchJwtSvid(address, { audience: 'x', signal });
  await expect(fetched(endpoint.address)).rejects.toThrow(
    `the SPIFFE Workload API ${endpoint.address} gives no JWT-SVID: no identity is registered`,
  );
  await expect(fetched(`${endpoint.address}.none`)).rejects.toThrow(/gives no JWT-SVID: .*ENOENT/);
});

const bundles = new Map([['near', parseJwtBundle('near', JSON.stringify({ keys: [own.jwk] }))]]);
const judge = (token: string, now?: Date) =>
  judgeJwtSvid(token, { audience: 'argocd-agent-principal', bundles, ...(now === undefined ? {} : { now }) });

test.each([
  ['for another audience', { id, audience: ['another'] }, 'the claim "aud"'],
  ['of nobody', { id: 'cluster1', audience }, 'its subject is no SPIFFE ID'],
  ['of a path with dots', { id: 'spiffe://near/../a', audience }, 'its subject is no SPIFFE ID'],
  [
    'of an unknown trust domain',
    { id: 'spiffe://else/a', audience },
    'no bundle of the trust domain of spiffe://else/a',
  ],
  ['with an unknown key', { id, audience, kid: 'two' }, 'has no key with the ID that it names'],
  ['that has expired', { id, audience, seconds: -1 }, `that of ${id} has expired`],
])('a JWT-SVID %s does not count', async (_, options, why) => {
  await expect(judge(await own.sign(options))).rejects.toThrow(why);
});

test('what is no JWT-SVID does not count', async () => {
  const good = await own.sign({ id, audience });
  expect((await judge(good)).id).toBe(id);
  await expect(judge(good, new Date(Date.now() + 301_000))).rejects.toThrow('has expired');
  const [, body = ''] = good.split('.');
  const unsigned = `${Buffer.from('{"alg":"none","kid":"one"}').toString('base64url')}.${body}.`;
  await expect(judge(unsigned)).rejects.toThrow('is not signed by');
  await expect(judge('x'.repeat(9_000))).rejects.toThrow('longer than 8192');
  await expect(judge('x.y.z')).rejects.toThrow('malformed');
  await expect(judge(`${good.slice(0, -8)}AAAAAAAA`)).rejects.toThrow('is not signed by');
});

test('a bundle has the public keys with an ID, and no others', () => {
  const { kid: _, ...nameless } = own.jwk;
  const keys = [
    { ...own.jwk, kid: 'a' },
    nameless,
    { kty: 'oct', k: 'AAAA', kid: 'b' },
    { ...own.jwk, kid: 'c', use: 'x509-svid' },
  ];
  expect([...parseJwtBundle('near', JSON.stringify({ keys })).keys()]).toEqual(['a']);
  expect(() => parseJwtBundle('near', '{}')).toThrow();
  expect(() => parseJwtBundle('near', 'x')).toThrow();
});
