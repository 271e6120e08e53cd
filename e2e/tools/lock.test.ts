import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { withFileLock } from './lock.ts';

let folder = '';
let path = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lock-'));
  path = join(folder, 'lock');
});
afterEach(() => rm(folder, { recursive: true }));

const isTaken = () => withFileLock(path, AbortSignal.timeout(500), () => readFile(path, 'utf8'));

it('is held by one at a time, and names it', async () => {
  let inside = 0;
  const work = async () => {
    expect(++inside).toBe(1);
    await expect(isTaken()).rejects.toThrow();
    inside--;
  };
  await Promise.all([withFileLock(path, undefined, work), withFileLock(path, undefined, work)]);
  expect(await isTaken()).toBe(String(process.pid));
});

it('is not kept by a holder that is gone', async () => {
  await writeFile(path, String(spawnSync(process.execPath, ['--version']).pid));
  expect(await isTaken()).toBe(String(process.pid));
});

it.each(['', 'no number', '-1'])(
  'is kept by the holder %j only as long as one may still be written',
  async (holder) => {
    await writeFile(path, holder);
    await expect(isTaken()).rejects.toThrow();
    const earlier = Date.now() / 1000 - 11;
    await utimes(path, earlier, earlier);
    expect(await isTaken()).toBe(String(process.pid));
  },
);
