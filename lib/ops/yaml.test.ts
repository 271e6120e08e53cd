import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseJson } from '../base/index.ts';
import { effort } from '../base/testing.ts';
import { printYaml } from './index.ts';

/** Reads a text as YAML 1.1, 1.2 and as JSON schema of 1.2; all must yield the value. */
function expectSame(value: unknown, hint = ''): void {
  const text = printYaml(value);
  for (const version of ['1.1', '1.2'] as const) {
    expect(parse(text, { version }), `${hint} YAML ${version}: ${text}`).toEqual(value);
  }
}

// What YAML 1.1 or 1.2, or kubectl's parser, reads as something other than text.
const words = [
  ...[
    'no',
    'No',
    'NO',
    'n',
    'N',
    'yes',
    'y',
    'Y',
    'on',
    'off',
    'OFF',
    'true',
    'True',
    'false',
    'null',
    'Null',
    '~',
    '',
  ],
  ...[
    '0',
    '010',
    '0o17',
    '0x1F',
    '0b11',
    '-0',
    '+1',
    '1_000',
    '1e3',
    '1E3',
    '1e',
    '12e03',
    '-2E+05',
    '.5',
    '5.',
    '1.5e3',
  ],
  ...['.inf', '-.Inf', '+.INF', '.nan', '.NaN', '.NAN', '12:30', '190:20:30', '12:30:45.67', '1234e56'],
  ...[
    '2001-12-14',
    '2001-12-14T21:59:43.10-05:00',
    '2001-12-14 21:59:43.1 Z',
    '=',
    '<<',
    '-',
    '---',
    '...',
    '- a',
    '? a',
  ],
  ...[
    '#',
    'a #b',
    'a: b',
    'a:',
    ':',
    '!tag',
    '&a',
    '*a',
    '%a',
    '@a',
    '`a',
    '|',
    '>',
    '{a',
    '[a',
    '"',
    "'",
    '\\n',
    '\t',
    ' a',
  ],
  ...[
    'a ',
    'a\nb',
    'a\nb\n',
    '\n',
    '1\n2',
    'no\n',
    '\u0085',
    '\u2028',
    'a\u2028b\nc',
    '\ufeff',
    '\u0000',
    'é',
    '🙂',
    'a\rb',
    '\r\n',
  ],
];

test.each(words)('%j is the same text for YAML 1.1 and 1.2, as value, key and element', (word) => {
  expectSame({ value: word, list: [word] });
  // The parser of this test merges a quoted `<<` as well; kubectl's does not.
  if (word !== '<<') {
    expectSame({ [word]: 'key', list: [{ [word]: word }] });
  }
});

test('other values keep their types', () => {
  expectSame({ yes: true, no: false, none: null, one: 1, half: 0.5, big: 1e21, empty: {}, list: [] });
});

test('the same object twice is printed twice, without an anchor', () => {
  const shared = { a: 'no' };
  expect(printYaml([shared, shared])).not.toMatch(/[&*]/);
});

test('a line of blanks is not taken for the indentation of a block', () => {
  for (const text of [' \n', '\n ', 'a\n \nb', '\t\n', '  ']) {
    expectSame({ [text]: text, list: [text] });
  }
});

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

test(`random texts are the same for YAML 1.1 and 1.2, seed ${seed}`, () => {
  let state = seed;
  const random = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
  const alphabet = '0123456789abcdefxoEnNyYTtZ+-._:,~!&*<=>|%@`#?"\'{}[]() \t\n';
  for (let round = 0; round < effort(2_000, 100_000); round++) {
    const text = Array.from({ length: 1 + random(12) }, () => alphabet[random(alphabet.length)]).join('');
    // See above: this reader of YAML 1.1 merges with a quoted key too.
    const key = text === '<<' ? 'merge' : text;
    expectSame({ [key]: text, list: [text] }, `seed ${seed}, round ${round}`);
  }
});

test('integers of 64 bits are printed as they were read', () => {
  const text = '{"a":1234567890123456789,"b":[-9007199254740993,{"c":9007199254740993}]}';
  expect(printYaml(parseJson(text))).toBe(
    'a: 1234567890123456789\nb:\n  - -9007199254740993\n  - c: 9007199254740993\n',
  );
});
