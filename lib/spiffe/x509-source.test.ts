import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../base/testing.ts';
import { createAuthority, type KeyCertificate } from '../pki/index.ts';
import { x509Source } from './index.ts';
import { issueSvid, startWorkloadEndpoint } from './testing.ts';

const ignore = () => undefined;
const logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };

async function source() {
  const folder = await mkdtemp(join(tmpdir(), 'spiffe-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const endpoint = await startWorkloadEndpoint(join(folder, 'api.sock'));
  onTestFinished(() => endpoint.stop());
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  return { endpoint, workload: x509Source({ endpoint: endpoint.address, logger, signal: stop.signal }) };
}

const [near, far] = await Promise.all(['near', 'far'].map((commonName) => createAuthority({ commonName })));
const chainOf = async (authority: KeyCertificate | undefined, id: string) => {
  if (authority === undefined) {
    throw new Error('no authority');
  }
  return [new X509Certificate((await issueSvid(authority, id)).certificate)];
};

test('an authority vouches for the IDs of its own trust domain alone', async () => {
  const { endpoint, workload } = await source();
  const own = 'spiffe://near/principal';
  if (near === undefined || far === undefined) {
    throw new Error('no authority');
  }
  const identity = await issueSvid(near, own);
  const federated = { 'spiffe://far': [far.certificate] };
  endpoint.give({ id: own, ...identity, bundle: [near.certificate], federated });
  await until('it has an identity', () => workload.identity.value !== undefined);
  expect(workload.idOf(await chainOf(near, 'spiffe://near/a'))).toBe('spiffe://near/a');
  expect(workload.idOf(await chainOf(far, 'spiffe://far/a'))).toBe('spiffe://far/a');
  const wrong: [KeyCertificate, string, string][] = [
    [far, 'spiffe://near/a', 'no authority of the trust domain vouches for spiffe://near/a'],
    [near, 'spiffe://far/a', 'no authority of the trust domain vouches for spiffe://far/a'],
    [near, 'spiffe://other/a', 'no bundle of the trust domain of spiffe://other/a is known'],
    [near, 'https://near/a', 'not exactly one URI that is a SPIFFE ID'],
  ];
  for (const [authority, id, why] of wrong) {
    const chain = await chainOf(authority, id);
    expect(() => workload.idOf(chain), id).toThrow(why);
  }
  expect(workload.trust.value?.match(/BEGIN/g)).toHaveLength(1);
  expect(workload.federatedTrust.value?.match(/BEGIN/g)).toHaveLength(2);
  // The federation ends.
  endpoint.give({ id: own, ...identity, bundle: [near.certificate] });
  await until('one authority is left', () => workload.federatedTrust.value?.match(/BEGIN/g)?.length === 1);
  const chain = await chainOf(far, 'spiffe://far/a');
  expect(() => workload.idOf(chain)).toThrow('no bundle');
});
