import { expect, test } from 'vitest';
import { isLabelKey, isLabelValue } from './label.ts';

const long = 'a'.repeat(63);

test.each(['env', 'A_b.c-1', long, 'example.com/env', `${long}.${long}.${long}.com/x`, '0/0'])('%s is a key', (key) => {
  expect(isLabelKey(key)).toBe(true);
});

test.each([
  ...['', '-env', 'env-', '__proto__', 'a b', `${long}a`, '/env', 'example.com/', 'Example.com/env', 'a..b/env'],
  ...['a/b/c', 'a/b/c/d', `${'a.'.repeat(127)}/env`, 'env\n', 'ключ'],
])('%j is no key', (key) => {
  expect(isLabelKey(key)).toBe(false);
});

test.each([
  ['', true],
  ['eu-west_1.a', true],
  [long, true],
  [`${long}a`, false],
  ['v1.30.1+k3s1', false],
  ['-a', false],
  ['a/b', false],
  ['..', false],
  ['a\n', false],
  [`${'a'.repeat(1_000_000)}!`, false],
])('value %j: %s', (value, isValid) => {
  expect(isLabelValue(value)).toBe(isValid);
});
