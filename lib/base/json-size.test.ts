import { expect, test } from 'vitest';
import { jsonSize } from './index.ts';

const goJson = (value: unknown) =>
  Buffer.byteLength(JSON.stringify(value).replace(/[<>&]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`));

test.each([
  ['text', 'plain text'],
  ['control characters', '\u0000\u001f\n'.repeat(1_000)],
  ['signs that Go escapes', '<>&'.repeat(1_000)],
  ['quotes and backslashes', '"\\'.repeat(1_000)],
  ['other alphabets', 'äöü漢字🙂'.repeat(1_000)],
  ['empty objects', Array(10_000).fill({})],
  ['numbers', Array.from({ length: 10_000 }, (_, index) => index)],
  ['many keys', Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`key${index}`, null]))],
])('is never less than the length as JSON: %s', (_, value) => {
  expect(jsonSize(value)).toBeGreaterThanOrEqual(goJson(value));
});

test('is close to the length for text, and far above it for many small parts', () => {
  expect(jsonSize({ text: 'x'.repeat(100_000) })).toBeLessThan(101_000);
  expect(jsonSize(Array(10_000).fill({}))).toBeGreaterThan(10 * 3 * 10_000);
});

test('a value of any depth', () => {
  let deep: unknown = [];
  for (let level = 0; level < 200_000; level++) {
    deep = [deep];
  }
  expect(jsonSize(deep)).toBeGreaterThan(200_000);
});
