import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

// Vitest itself, with the tags and the reporter, and tests that need something.

const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
const here = (file: string) => JSON.stringify(join(import.meta.dirname, file));
const config = `
  import { needTags as tags } from ${here('index.ts')};
  export default { test: { globals: true, tags, reporters: ['default', ${here('reporter.ts')}] } };
`;
const tests = `
  describe('a group', { tags: 'kargo' }, () => {
    beforeAll(() => console.log('a hook'));
    test('one', () => console.log('one runs'));
    test.each([2, 3])('%i', { timeout: 1_000 }, () => undefined);
  });
  test('of two things', { tags: ['kargo', 'velero'] }, () => undefined);
  test('with a reason of its own', ({ skip }) => skip(true, 'it is late'));
  test('of nothing', () => undefined);
`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'needs-'));
  writeFileSync(join(folder, 'vitest.config.mjs'), config);
  writeFileSync(join(folder, 'sample.test.mjs'), tests);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** What Vitest prints. */
function run(environment: Readonly<Record<string, string>>, ...args: readonly string[]): string {
  const env = { PATH: process.env.PATH, HOME: folder, NO_COLOR: '1', ...environment };
  const { stdout } = spawnSync(process.execPath, [vitest, 'run', ...args], { cwd: folder, env, encoding: 'utf8' });
  return stdout;
}

test('a test is skipped when what it needs is not there; a run says how many, why, and what would run them', () => {
  const printed = run({});
  expect(printed).toContain('1 passed | 5 skipped');
  expect(printed).not.toContain('a hook');
  expect(printed).toMatch(/Skipped tests: 5 .*\n/);
  const [kargo, velero] = ['KARGO_BIN=<file> KARGO_SOURCE=<folder>', 'VELERO_BIN=<file> VELERO_STORE_BIN=<file>'];
  expect(printed).toContain(`     3  needs Kargo's controller (${kargo})\n`);
  expect(printed).toContain(
    `     1  needs Kargo's controller (${kargo}), and Velero (${velero} VELERO_SOURCE=<folder>)\n`,
  );
  expect(printed).toContain('     1  it is late\n');
});

test('it runs when it is there; what the command line leaves out is nothing to speak of', () => {
  const kargo = { KARGO_BIN: '/kargo', KARGO_SOURCE: '/source' };
  const printed = run(kargo, '--tags-filter=kargo');
  expect(printed).toContain('one runs');
  expect(printed).toContain('3 passed | 3 skipped');
  expect(printed).toMatch(/Skipped tests: 1 .*\n +1 {2}needs Velero \(/);
});

test('of what is missing for tests that the command line does not name, nothing is said', () => {
  expect(run({}, '-t', 'of nothing')).not.toContain('Skipped tests');
  expect(run({}, '-t', '^a group one$')).toContain('Skipped tests: 1 ');
});
