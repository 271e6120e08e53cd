import { ExactInteger } from '../../lib/base/index.ts';
import type { Random } from './random.ts';

/** Names that every JavaScript object has, that JSON Patch escapes, that look like numbers, and others. */
const keys = [
  'a',
  'b',
  'constructor',
  '__proto__',
  'toString',
  'valueOf',
  'hasOwnProperty',
  'a/b',
  '~1',
  '',
  '7',
  'größe',
];
const texts = [
  '',
  'x',
  'null',
  '1234567890123456789',
  ', 1234567890123456789',
  '"\\',
  '</script>',
  'straße 🚀',
  '\u2028',
  'a\nb',
];
/** As an API server prints them, and therefore as it keeps them. */
const numbers = [0, -1, 0.1, 1.5e-7, 1e21, 2 ** 53, -(2 ** 53)];
const integers = ['9007199254740993', '-9223372036854775808', '9223372036854775807'];

/** A map of JSON with what is lost easily: nulls, long integers, odd keys, empty maps and lists. */
export function anyMap(random: Random, depth = 3): Record<string, unknown> {
  return Object.fromEntries(
    Array.from({ length: random.integer(0, 4) }, () => [random.pick(keys), anyValue(random, depth - 1)]),
  );
}

/** A value of JSON of which the same is true. */
export function anyValue(random: Random, depth = 3): unknown {
  switch (random.integer(0, depth > 0 ? 8 : 5)) {
    case 0:
      return null;
    case 1:
      return random.integer(0, 1) === 1;
    case 2:
      return random.pick(numbers);
    case 3:
      return new ExactInteger(random.pick(integers));
    case 4:
    case 5:
      return random.pick(texts);
    case 6:
      return Array.from({ length: random.integer(0, 3) }, () => anyValue(random, depth - 1));
    default:
      return anyMap(random, depth);
  }
}

/** The same value of JSON, or one with a change somewhere in it. */
export function edited(random: Random, value: unknown): unknown {
  if (random.integer(0, 3) === 0) {
    return anyValue(random, 2);
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => (random.integer(0, 2) === 0 ? edited(random, item) : item));
    return random.integer(0, 3) === 0 ? items.reverse() : items;
  }
  if (value === null || typeof value !== 'object' || value instanceof ExactInteger) {
    return value;
  }
  const entries = Object.entries(value).flatMap(([key, item]): [string, unknown][] => {
    const fate = random.integer(0, 4);
    return fate === 0 ? [] : [[key, fate === 1 ? edited(random, item) : item]];
  });
  return Object.fromEntries(
    random.integer(0, 1) === 0 ? [...entries, [random.pick(keys), anyValue(random, 2)]] : entries,
  );
}
