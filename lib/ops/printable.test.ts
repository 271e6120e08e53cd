import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { escapedSteering, printableLines, printYaml } from './index.ts';

const steering = [
  '\u0000',
  '\u0007',
  '\r',
  '\u001b]0;x',
  '\u007f',
  '\u0080',
  '\u009b2J',
  '\u00ad',
  '\u200b',
  '\u202e',
  '\u2028',
  '\u2066',
  '\ufeff',
  '\u{e0001}',
];
// biome-ignore lint/suspicious/noControlCharactersInRegex: this is what must not be there
const steers = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]|\p{Cf}/u;

test.each(steering)('%j is printed as an escape that means the same', (text) => {
  const value = { text, [`key ${text}`]: [`in ${text} between\nand\tlines`] };
  for (const printed of [printYaml(value), `${escapedSteering(JSON.stringify(value, undefined, 2))}\n`]) {
    expect(printed).not.toMatch(steers);
    for (const version of ['1.1', '1.2'] as const) {
      expect(parse(printed, { version })).toEqual(value);
    }
  }
  expect(JSON.parse(escapedSteering(JSON.stringify(value)))).toEqual(value);
  expect(printableLines(`a${text}b`)).not.toMatch(steers);
});

test('lines and tabs stay', () => {
  expect(printableLines('a\tb\r\nc\n')).toBe('a\tb\r\nc\n');
});
