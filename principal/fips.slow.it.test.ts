import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { application, namespace, type Pair, pairApplications, startPair } from '../e2e/pair/index.ts';
import { until } from '../lib/base/testing.ts';

// Principal and agent with OpenSSL's FIPS provider: docs/security.md, "FIPS 140".

const module = process.env.FIPS_MODULE ?? '';

describe('FIPS mode', { tags: 'fips-module' }, () => {
  let folder: string;
  let pair: Pair;
  const logs = () => ({
    details: () => `${pair.principal.output.slice(-3_000)}\n---\n${pair.agent.output.slice(-3_000)}`,
  });
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'fips-'));
    pair = await startPair({ environment: fipsEnvironment(module, folder) });
  });
  afterAll(async () => {
    await pair?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('an agent connects, and Applications and their state travel', async () => {
    const { hub, managed, name } = pair;
    await hub.client.create(pairApplications, application({ name: 'shop', namespace: name }));
    await until('it arrives', () => managed.client.get(pairApplications, { name: 'shop', namespace }), logs());
    const status = { sync: { status: 'Synced' } };
    await managed.client.mergePatch(pairApplications, { name: 'shop', namespace }, { status });
    await until(
      'its state is on the hub',
      async () => {
        const there = await hub.client.get(pairApplications, { name: 'shop', namespace: name });
        return (there?.status?.sync as { status?: string } | undefined)?.status === 'Synced';
      },
      logs(),
    );
  });

  test.each([
    ['TLS_AES_128_GCM_SHA256', 'P-256', true],
    ['TLS_AES_256_GCM_SHA384', 'P-384', true],
    ['TLS_CHACHA20_POLY1305_SHA256', 'P-256', false],
    ['TLS_AES_256_GCM_SHA384', 'X25519', false],
  ])('the principal agrees on %s with %s: %s', async (ciphers, ecdhCurve, agreed) => {
    expect(await handshake(pair.principalPort, { ciphers, ecdhCurve })).toBe(agreed);
  });
});

/** What Node.js is started with, so that it uses nothing but the provider. */
function fipsEnvironment(provider: string, folder: string): Record<string, string> {
  const section = join(folder, 'fipsmodule.cnf');
  execFileSync('openssl', ['fipsinstall', '-module', provider, '-out', section, '-provider_name', 'fips', '-quiet']);
  const settings = join(folder, 'openssl.cnf');
  writeFileSync(
    settings,
    [
      'nodejs_conf = nodejs_init',
      `.include ${section}`,
      ...['[nodejs_init]', 'providers = provider_sect', 'alg_section = algorithm_sect'],
      ...['[provider_sect]', 'fips = fips_sect', 'base = base_sect'],
      ...['[base_sect]', 'activate = 1'],
      ...['[algorithm_sect]', 'default_properties = fips=yes', ''],
    ].join('\n'),
  );
  return { OPENSSL_CONF: settings, OPENSSL_MODULES: dirname(provider), NODE_OPTIONS: '--force-fips' };
}

/** Whether a server takes what a client offers, this test not being in FIPS mode. */
function handshake(port: number, offer: { ciphers: string; ecdhCurve: string }): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, minVersion: 'TLSv1.3', ...offer });
  socket.once('secureConnect', () => resolve(true));
  socket.once('error', () => resolve(false));
  return promise.finally(() => socket.destroy());
}
