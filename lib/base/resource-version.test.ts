import { expect, test } from 'vitest';
import { compareVersions, hasGoneBack, isNewerVersion } from './resource-version.ts';

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

test.each([
  ['9', '10', 'u', false],
  ['10', '9', 'u', true],
  ['10', '10', 'u', true],
  ['10', '9', 'other', false],
  ['b', 'a', 'u', false],
])('a cache that had %s and has %s of %s has gone back: %s', (before, now, uid, expected) => {
  expect(hasGoneBack({ uid: 'u', resourceVersion: before }, { uid, resourceVersion: now })).toBe(expected);
});
