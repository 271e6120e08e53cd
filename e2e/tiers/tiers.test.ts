import { globSync } from 'node:fs';
import { expect, test } from 'vitest';
import { filesOf, tierOf, tiers } from './index.ts';

const root = new URL('../..', import.meta.url).pathname;
const all = globSync('**/*.test.ts', { cwd: root, exclude: ['**/node_modules', '**/dist'] });

test('the name of a test file says its tier', () => {
  expect(
    ['a.test.ts', 'a.it.test.ts', 'a.slow.it.test.ts', 'b/a.slow.e2e.test.ts'].map((file) => tierOf(file).name),
  ).toEqual(['unit', 'integration', 'slow-integration', 'slow-e2e']);
  expect(() => tierOf('a.ts')).toThrow('a.ts is no test');
});

test('each test file is in one tier, and each tier has some', () => {
  const folders = [...new Set(all.map((file) => file.split('/')[0] ?? ''))];
  const found = tiers.map(({ name }) => {
    const { include, exclude } = filesOf(name, folders);
    return globSync(include, { cwd: root, exclude: [...exclude, '**/node_modules'] });
  });
  expect(found.flat().sort()).toEqual(all.sort());
  expect(found.filter((files) => files.length === 0)).toEqual([]);
});

test('slow is a word of the tiers above unit tests, and of no other name', () => {
  const slow = /\.slow\./;
  expect(all.filter((file) => slow.test(file) !== tierOf(file).isSlow)).toEqual([]);
});

test('the tests that every change goes through know each program, and have a story of each mode', () => {
  const quick = all.filter((file) => !tierOf(file).isSlow && tierOf(file).name !== 'unit');
  const rooms = new Set(quick.map((file) => file.split('/')[0]));
  expect([...rooms]).toEqual(expect.arrayContaining(['controller', 'principal', 'agent', 'ctl', 'lib', 'e2e']));
  expect(quick.filter((file) => tierOf(file).name === 'e2e').sort()).toEqual([
    'e2e/suites/basic-pull.e2e.test.ts',
    'e2e/suites/modes.e2e.test.ts',
  ]);
});
