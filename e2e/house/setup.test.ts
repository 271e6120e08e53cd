import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');

test.each([
  ['nosuch', 'node_modules/.bin/nosuch'],
  ['e2e/nosuch.ts', 'e2e/nosuch.ts'],
])('setup.mjs says that there is no %s', (program, path) => {
  const { status, stderr } = spawnSync('node', ['setup.mjs', program], { cwd: root, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 1, stderr: `There is no ${resolve(root, path)}.\n` });
});
