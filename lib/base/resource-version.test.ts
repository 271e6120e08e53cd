import { expect, test } from 'vitest';
import { compareVersions, isNewerVersion } from './resource-version.ts';

test.each([
  ['2', '1', true],
  ['1', '2', false],
  ['7', '7', false],
  ['10', '9', true],
  ['9', '10', false],
  ['x', '9', true],
  ['9', '', true],
  ['', '', false],
])('version %j is newer than %j: %j', (a, b, expected) => {
  expect(isNewerVersion(a, b)).toBe(expected);
});

test('versions that are no numbers cannot be compared', () => {
  expect(compareVersions('x', '9')).toBeUndefined();
  expect(compareVersions('9', '10')).toBeLessThan(0);
  expect(compareVersions('x', 'x')).toBe(0);
});
