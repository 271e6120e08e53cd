import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import type { CiResult } from './reporter.ts';

const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
const reporter = fileURLToPath(new URL('reporter.ts', import.meta.url));

test('when the process of a file ends, the result says which test it was in, and why', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'reporter-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const result = join(folder, 'result.json');
  writeFileSync(
    join(folder, 'ends.test.js'),
    `
      test('passes', () => {});
      test('ends', () => new Promise(() => setTimeout(() => {
        process.stderr.write('no memory left');
        setTimeout(() => process.kill(process.pid, 'SIGKILL'), 500);
      }, 500)));
    `,
  );
  const args = [vitest, 'run', '--globals', `--root=${folder}`, `--reporter=${reporter}`];
  await expect(
    promisify(execFile)(process.execPath, args, { env: { ...process.env, CI_RESULT: result }, timeout: 60_000 }),
  ).rejects.toThrow();
  const { failures } = JSON.parse(readFileSync(result, 'utf8')) as CiResult;
  expect(failures).toEqual([
    expect.stringContaining('because of Error: Worker exited unexpectedly'),
    'ends.test.js: did not come to its end',
    'ends.test.js > ends: did not come to its end',
    expect.stringContaining('no memory left'),
  ]);
});
