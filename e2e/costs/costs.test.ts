import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import config from '../../vitest.config.ts';

// Vitest itself, with the setup and the reporter.

const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
const here = (file: string) => JSON.stringify(join(import.meta.dirname, file));
const setting = `
  export default { test: { globals: true, isolate: false, maxWorkers: 1, setupFiles: [${here('setup.ts')}], reporters: [${here('reporter.ts')}] } };
`;
const busy = `test('works', () => { for (const end = performance.now() + 500; performance.now() < end; ); });`;

const rest = `
  const { channel } = require('node:diagnostics_channel');
  test('rests', () => {
    require('node:fs').writeFileSync('ran', '');
    channel('until').publish({ what: 'a moment', ms: 20 });
    channel('until').publish({ what: 'the end', ms: 5000 });
  });
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'costs-'));
  writeFileSync(join(folder, 'vitest.config.mjs'), setting);
  writeFileSync(join(folder, 'a.test.mjs'), busy);
  writeFileSync(join(folder, 'b.test.mjs'), rest);
});
afterEach(() => rmSync(folder, { recursive: true }));

function run(costs: string) {
  const env = { PATH: process.env.PATH, HOME: folder, NO_COLOR: '1', TEST_COSTS: costs };
  return spawnSync(process.execPath, [vitest, 'run'], { cwd: folder, env, encoding: 'utf8' });
}

test('each file has its own CPU time and waits, also where files share a process', () => {
  const file = join(folder, 'costs.json');
  expect(run(file)).toMatchObject({ status: 0, stderr: '' });
  const costs = JSON.parse(readFileSync(file, 'utf8')) as {
    file: string;
    wall: number;
    cpu: number;
    tests: string[];
    waits: object[];
  }[];
  expect(costs.map((cost) => [cost.file, cost.tests])).toEqual([
    ['a.test.mjs', ['works: passed']],
    ['b.test.mjs', ['rests: passed']],
  ]);
  expect(costs.map(({ waits }) => waits)).toEqual([[], [{ what: 'the end', ms: 5000 }]]);
  const [a, b] = costs.map(({ cpu }) => cpu);
  expect(a).toBeGreaterThan(0.1);
  expect(b).toBeLessThan(a ?? 0);
});

test('a file that cannot be written is an error before the tests, not after them', () => {
  const { status, stdout, stderr } = run(join(folder, 'nowhere', 'costs.json'));
  expect(status).not.toBe(0);
  expect(stdout + stderr).toContain('TEST_COSTS');
  expect(existsSync(join(folder, 'ran'))).toBe(false);
});

test('every tier is measured', () => {
  const projects = config.test?.projects as { test: { setupFiles?: string[] } }[];
  expect(projects.map(({ test: { setupFiles } }) => setupFiles)).toEqual(projects.map(() => ['e2e/costs/setup.ts']));
});
