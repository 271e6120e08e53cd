import { expect, test } from 'vitest';
import { anyMap, Random } from '../../e2e/random/index.ts';
import { canonicalJson, digestOf } from './canonical-json.ts';
import { ExactInteger, parseJson } from './exact-json.ts';
import { jsonSize } from './json-size.ts';
import { isEqual } from './json-value.ts';
import { effort } from './testing.ts';

test.each([
  '{"a":1234567890123456789}',
  '{"a":-9223372036854775808,"b":[9223372036854775807,9007199254740993]}',
  '{"a":123456789012345678901234567890}',
  '{"__proto__":{"a":9007199254740993},"constructor":null,"a":[]}',
  '{"id":1234567890123456800,"exact":9007199254740992,"f":0.1,"g":1e+21}',
  '{"a":"1234567890123456789","b":", 1234567890123456789","c":"\\\\\\",:1234567890123456789","d":1234567890123456789}',
  '[["x", [1234567890123456789]], 9007199254740993 ]',
])('%s is written as it was read', (text) => {
  expect(JSON.stringify(parseJson(text))).toBe(text.replaceAll(' ', (space, at) => (inText(text, at) ? space : '')));
  expect(canonicalJson(parseJson(text)).length).toBe(JSON.stringify(parseJson(text)).length);
});

/** Whether the character at this place is within a text. */
const inText = (text: string, at: number) =>
  (text.slice(0, at).replaceAll(/\\./g, '').match(/"/g) ?? []).length % 2 === 1;

test('what a JavaScript number holds is a number, and fractions are read as Go reads them', () => {
  expect(
    parseJson(
      '{"a":1234567890123456800,"b":1234567890123456789.5,"c":0.1234567890123456789,"d":1234567890123456789e1}',
    ),
  ).toEqual({
    a: 1234567890123456800,
    b: 1234567890123456800,
    c: 0.12345678901234568,
    d: 12345678901234567000,
  });
  expect(() => parseJson('{"a":1234567890123456789')).toThrow(SyntaxError);
  expect(() => parseJson(`{"a":${'\\"'.repeat(1e5)}`)).toThrow(SyntaxError);
});

test('two integers are equal when they are the same, in comparisons, digests and sizes', () => {
  const [one, same, other] = ['1234567890123456789', '1234567890123456789', '1234567890123456788'].map((text) =>
    parseJson(`{"a":${text}}`),
  );
  expect(isEqual(one, same)).toBe(true);
  expect(digestOf(one)).toBe(digestOf(same));
  expect(isEqual(one, other)).toBe(false);
  expect(digestOf(one)).not.toBe(digestOf(other));
  expect(isEqual(one, { a: 1234567890123456800 })).toBe(false);
  expect(isEqual({ a: 1234567890123456800 }, one)).toBe(false);
  expect(isEqual(one, { a: { text: '1234567890123456789' } })).toBe(false);
  expect(isEqual({ a: { text: '1234567890123456789' } }, one)).toBe(false);
  expect(jsonSize(new ExactInteger('1'.repeat(1_000)))).toBeGreaterThan(1_000);
});

test('any JSON is written as it was read', () => {
  for (let seed = 1; seed <= effort(2_000, 100_000); seed++) {
    const text = JSON.stringify(anyMap(new Random(seed), 4));
    expect(JSON.stringify(parseJson(text)), `seed ${seed}`).toBe(text);
  }
});
