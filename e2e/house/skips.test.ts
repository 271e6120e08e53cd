import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { sources } from './imports.ts';

const root = new URL('../..', import.meta.url).pathname;

/** Ways to leave a test out that give no reason. */
const unexplained = [
  /\.(?:skipIf|runIf)\b/,
  /\b(?:test|it|describe)(?:\.\w+)*\.(?:skip|todo|only)\b/,
  /\b(?:skip|todo|only): true\b/,
  // In a test, without the reason.
  /(?<!\.)\bskip\((?:[^,()'`]|\([^()]*\))*\)/,
];

/** The lines of a source that leave a test out without a reason. */
function unexplainedIn(text: string): string[] {
  return text.split('\n').filter((line) => unexplained.some((one) => one.test(line)));
}

it('every test that may be skipped says why: by a tag of e2e/needs, or skip() with a reason', () => {
  const tests = [...sources(root)]
    .filter((file) => file !== 'e2e/house/skips.test.ts')
    .map((file) => ({ file, text: readFileSync(root + file, 'utf8') }))
    .filter(({ text }) => text.includes("from 'vitest'"));
  expect(tests.length).toBeGreaterThan(500);
  const found = tests.flatMap(({ file, text }) => unexplainedIn(text).map((line) => `${file}: ${line.trim()}`));
  expect(found).toEqual([]);
});

it.each([
  "test.skipIf(isLate)('x', () => {",
  "describe.runIf(isLinux).each([1])('x', () => {",
  "describe.concurrent.skip('x', () => {",
  "it.todo('x')",
  "test.only('x', () => {",
  "test('x', { skip: true }, () => {",
  '  skip();',
  '  skip(!isReal);',
  '  skip(!get().isReal);',
])('notices %s', (line) => {
  expect(unexplainedIn(line)).toEqual([line]);
});

it.each([
  "skip(!isReal, 'it has no TLS');",
  "skip('it has no TLS')",
  'changes.skip(4n, 2)',
  "test('x', { tags: 'linux' }, () => {",
])('takes %s', (line) => {
  expect(unexplainedIn(line)).toEqual([]);
});
