import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

test('--help says what a run is, and runs nothing', async () => {
  const main = fileURLToPath(new URL('main.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [main, 'e2e/monitoring', '--help'], {
    timeout: 10_000,
  });
  expect(stdout).toMatch(/^Usage: \.ci\/run /);
  expect(stdout).not.toContain('> npm');
});
