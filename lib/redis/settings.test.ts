import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type RedisTlsFlags, redisSettings } from './index.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) {
    rmSync(folder, { recursive: true });
  }
});

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'redis-settings-'));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

function read(
  fields: Partial<Parameters<typeof redisSettings>[0]> = {},
  tls: { enabled?: boolean; insecure?: boolean; caPath?: string; caSecretName?: string; isGiven?: boolean } = {},
) {
  const tlsFlags: RedisTlsFlags = {
    enabled: tls.enabled ?? false,
    insecure: { flag: 'insecure', value: tls.insecure ?? false },
    caPath: { flag: 'path', value: tls.caPath ?? '' },
    caSecretName: { flag: 'secret', value: tls.caSecretName ?? 'argocd-redis-tls', isGiven: tls.isGiven ?? false },
  };
  const address = { flag: 'address', value: 'redis:6379' };
  return redisSettings({ address, username: '', password: '', credentialsFolder: '', ...fields, tls: tlsFlags });
}

describe('credentials', () => {
  test('are the flags', () => {
    expect(read({ username: 'u', password: 'p' }).credentials()).toEqual({ username: 'u', password: 'p' });
  });

  test('are read from the folder each time, trimmed; the user name may be missing', () => {
    const folder = folderWith({ auth: ' secret\n' });
    const settings = read({ credentialsFolder: folder });
    expect(settings.credentials()).toEqual({ username: '', password: 'secret' });
    writeFileSync(join(folder, 'auth'), 'new');
    writeFileSync(join(folder, 'auth_username'), 'me\n');
    expect(settings.credentials()).toEqual({ username: 'me', password: 'new' });
  });

  test('come from one place only, which exists', () => {
    const credentialsFolder = folderWith({ auth: 'x' });
    expect(() => read({ credentialsFolder, password: 'p' })).toThrow(/--redis-creds-dir-path.*cannot be combined/);
    expect(() => read({ credentialsFolder, username: 'u' })).toThrow(/cannot be combined/);
    expect(() => read({ credentialsFolder: join(credentialsFolder, 'none') })).toThrow(
      /--redis-creds-dir-path.*ENOENT/,
    );
  });
});

describe('TLS', () => {
  test('is off unless it is enabled, also with other flags for it', () => {
    expect(read({}, { insecure: true, caPath: '/a' }).tls).toBe('off');
  });

  test('modes: insecure, the CA of a file, the CA of a Secret', () => {
    expect(read({}, { enabled: true, insecure: true }).tls).toBe('insecure');
    expect(read({}, { enabled: true, caPath: '/a' }).tls).toEqual({ caPath: '/a' });
    expect(read({}, { enabled: true }).tls).toEqual({ caSecretName: 'argocd-redis-tls' });
    expect(read({}, { enabled: true, caSecretName: 'mine' }).tls).toEqual({ caSecretName: 'mine' });
  });

  test.each([
    { insecure: true, caPath: '/a' },
    { insecure: true, caSecretName: 'mine' },
    { caPath: '/a', caSecretName: 'mine' },
    // Named on the command line, even if by its default.
    { caPath: '/a', isGiven: true },
  ])('only one mode at a time: %j', (tls) => {
    expect(() => read({}, { enabled: true, ...tls })).toThrow(/^Only one Redis TLS mode can be specified/);
  });
});

test('an address has a host and a port', () => {
  for (const value of ['redis', 'redis:', ':6379', 'a:b:1']) {
    expect(() => read({ address: { flag: 'address', value } }), value).toThrow(/--address.*host:port/);
  }
  expect(read({ address: { flag: 'address', value: '[::1]:6379' } }).address).toBe('[::1]:6379');
});
