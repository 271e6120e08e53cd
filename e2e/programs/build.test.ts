import { mkdir, mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { removeOldBuilds } from './build.ts';

test('builds of more than a week ago are removed, and no others', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'builds-'));
  const made = async (name: string, daysAgo: number) => {
    const time = Date.now() / 1000 - daysAgo * 24 * 3600;
    await mkdir(join(folder, name, 'bin'), { recursive: true });
    await utimes(join(folder, name), time, time);
  };
  try {
    await Promise.all([made('old', 8), made('lately', 6), made('now', 0)]);
    await removeOldBuilds(folder);
    expect((await readdir(folder)).sort()).toEqual(['lately', 'now']);
  } finally {
    await rm(folder, { recursive: true });
  }
});
