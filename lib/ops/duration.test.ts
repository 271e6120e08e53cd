import { expect, test } from 'vitest';
import { formatDuration, parseDuration } from './index.ts';

test.each([
  ['0', 0],
  ['300ms', 300],
  ['1h20m', 4_800_000],
  ['-1.5s', -1_500],
  ['.5s', 500],
  ['1.s', 1_000],
  ['2us', 0.002],
])('%s is %d ms', (text, ms) => expect(parseDuration(text)).toBeCloseTo(ms));

test.each(['', '30', '1d', 's', '1 s', '1h-2m'])('%j is refused as Go refuses it', (text) => {
  expect(() => parseDuration(text)).toThrow(/invalid duration/);
});

test.each([
  [0, '0s'],
  [300, '300ms'],
  [90_000, '1m30s'],
  [3_600_000, '1h0m0s'],
])('%d ms prints as %s', (ms, text) => expect(formatDuration(ms)).toBe(text));
