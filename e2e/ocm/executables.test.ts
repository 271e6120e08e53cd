import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ocmCommand } from './executables.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ocm-bin-'));
  await writeFile(join(folder, 'placement'), '');
  await chmod(join(folder, 'placement'), 0o755);
  await writeFile(join(folder, 'work'), '', { mode: 0o644 });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it('runs the executables of a folder, and says which one is missing or cannot be run', async () => {
  expect(await ocmCommand('placement', folder)).toEqual([join(folder, 'placement')]);
  await expect(ocmCommand('addon', folder)).rejects.toThrow(`OCM_BIN=${folder} has no executable "addon"`);
  await expect(ocmCommand('work', folder)).rejects.toThrow('has no executable "work"');
});
