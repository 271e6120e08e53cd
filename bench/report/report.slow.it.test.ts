import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { benchReport } from './main.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'report-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('a small run makes the page, the pictures and what was printed', async () => {
  await benchReport(['propagation:--samples 3 --burst 5', '--output', folder]);
  expect((await readdir(folder)).sort()).toEqual([
    'index.html',
    'propagation-1.svg',
    'propagation-2.svg',
    'propagation-3.svg',
    'propagation.txt',
    'report.md',
  ]);
  const page = await readFile(join(folder, 'index.html'), 'utf8');
  expect(page).toContain('spec: hub to managed cluster (p50; faint: p99)');
  expect(page).toContain('times the floor');
  // The same page again, without a run.
  await benchReport(['propagation', '--from', folder, '--output', folder]);
  expect(await readdir(folder)).toHaveLength(6);
});
