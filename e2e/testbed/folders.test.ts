import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { controlSocket } from './control.ts';
import { workFolder } from './folders.ts';
import { freePort } from './ports.ts';

const user = process.getuid?.() ?? 0;
let temporary = '';
let path = '';
beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), 'folders-'));
  path = join(temporary, `argocd-fleet-${user}`);
  vi.stubEnv('TMPDIR', temporary);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(temporary, { recursive: true });
});

it('only this user can look into the folder of testbeds', async () => {
  expect(dirname(await workFolder('one'))).toBe(path);
  expect(statSync(path).mode & 0o777).toBe(0o700);
  expect(dirname(await workFolder('other'))).toBe(path);
});

describe('a folder is refused that', () => {
  const refused = `argocd-fleet-${user} is not a folder of this user alone`;
  const isRefused = async () => {
    await expect(workFolder('one')).rejects.toThrow(refused);
    await expect(freePort()).rejects.toThrow(refused);
    expect(() => controlSocket('one')).toThrow(refused);
  };

  it.each([0o770, 0o755])('others can use: %o', async (mode) => {
    mkdirSync(path);
    chmodSync(path, mode);
    await isRefused();
  });

  it('is a link', async () => {
    const other = join(temporary, 'other');
    mkdirSync(other, { mode: 0o700 });
    symlinkSync(other, path);
    await isRefused();
  });

  it('another user has made', async ({ skip }) => {
    skip(user !== 0, 'only root can give a folder to another user');
    mkdirSync(path, { mode: 0o700 });
    chownSync(path, 65534, 65534);
    await isRefused();
  });
});
