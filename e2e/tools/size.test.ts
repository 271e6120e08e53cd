import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sizeOf } from './size.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'size-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function fill(): void {
  for (let n = 0; n < 50; n++) {
    mkdirSync(join(folder, `${n}`, 'deeper'), { recursive: true });
    writeFileSync(join(folder, `${n}`, 'deeper', 'file'), '0123456789');
  }
}

test('a folder takes what all files in it take; what is not there takes nothing', async () => {
  fill();
  expect(await sizeOf(folder)).toBe(500);
  expect(await sizeOf(join(folder, 'nothing'))).toBe(0);
});

test('what another process removes meanwhile takes nothing', async () => {
  for (let round = 0; round < 10; round++) {
    fill();
    const removals = Array.from({ length: 50 }, (_, n) => rm(join(folder, `${n}`), { recursive: true }));
    expect(await sizeOf(folder)).toBeLessThanOrEqual(500);
    await Promise.all(removals);
  }
});
