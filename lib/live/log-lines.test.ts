import { expect, test } from 'vitest';
import { LogLines, sinceTimeOf } from './index.ts';

const at = (seconds: string, text: string) => `2026-11-21T10:00:${seconds}Z ${text}\n`;
const read = (lines: LogLines, ...texts: string[]) =>
  texts.map((text) => lines.push(Buffer.from(text)).toString()).join('');

test('times are left out unless they were asked for, wherever the pieces are cut', () => {
  const log = at('01.5', 'one two') + at('02', '') + at('03.123456789', 'ü three');
  expect(read(new LogLines(true), log)).toBe(log);
  const plain = 'one two\n\nü three\n';
  expect(read(new LogLines(false), log)).toBe(plain);
  const bytes = Buffer.from(log);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const lines = new LogLines(false);
    const parts = [lines.push(bytes.subarray(0, cut)), lines.push(bytes.subarray(cut))];
    expect(Buffer.concat(parts).toString()).toBe(plain);
  }
});

test('a log that is taken up again repeats nothing and loses nothing', () => {
  const lines = new LogLines(false);
  expect(lines.position).toBeUndefined();
  expect(read(lines, at('01', 'a'), at('02.5', 'b'), at('02.5', 'c'), '2026-11-21T10:00:02.5Z bro')).toBe('a\nb\nc\n');
  const { position } = lines;
  expect(position && sinceTimeOf(position)).toBe('2026-11-21T10:00:02Z');
  lines.resumed();
  const again = [
    at('02.1', 'before'),
    at('02.5', 'b'),
    at('02.5', 'c'),
    at('02.5', 'broken'),
    at('02.5', 'c'),
    at('03', 'd'),
  ];
  expect(read(lines, ...again)).toBe('broken\nc\nd\n');
  lines.resumed();
  expect(read(lines, at('03', 'd'), at('03', 'e'))).toBe('e\n');
});

test('after a break, lines behind the last known one are new, whatever their time', () => {
  const lines = new LogLines(false);
  expect(read(lines, at('05', 'a'), at('06', 'b'))).toBe('a\nb\n');
  lines.resumed();
  expect(read(lines, at('05.5', 'before'), at('06', 'b'), at('05.9', 'c'), at('07', 'd'))).toBe('c\nd\n');
});

test('lines without a time are passed on, but not twice', () => {
  const lines = new LogLines(true);
  expect(read(lines, 'unable to retrieve container logs\n', at('01', 'a'))).toBe(
    `unable to retrieve container logs\n${at('01', 'a')}`,
  );
  lines.resumed();
  expect(read(lines, 'unable to retrieve container logs\n', at('01', 'a'))).toBe('');
});

test('the last line may have no end, a line may be endless', () => {
  const lines = new LogLines(false);
  expect(read(lines, '2026-11-21T10:00:01Z last')).toBe('');
  expect(lines.end().toString()).toBe('last');
  const long = new LogLines(false);
  const piece = 'x'.repeat(700_000);
  expect(read(long, `2026-11-21T10:00:01Z ${piece}`, piece, `${piece}\n`, at('02', 'next'))).toBe(
    `${piece.repeat(3)}\nnext\n`,
  );
});

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

test(`random logs come whole and once, wherever they are cut and break off, seed ${seed}`, () => {
  let state = seed;
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const start = Date.parse('2026-11-21T09:59:58Z');
  for (let round = 0; round < 300; round++) {
    let time = 0n;
    const log = Array.from({ length: random(30) }, () => {
      time += [0n, 0n, 0n, 1n, 100_000_000n, 1_000_000_000n][random(6)] ?? 0n;
      const second = new Date(start + Number(time / 1_000_000_000n) * 1000).toISOString().slice(0, 19);
      const fraction = (time % 1_000_000_000n).toString().padStart(9, '0').replace(/0+$/, '');
      const zone = random(10) === 0 ? '+00:00' : 'Z';
      const text = ['', 'a', 'ü 2026-11-21T10:00:00Z b', `${second}Z`, 'x'.repeat(100)][random(5)] ?? '';
      return { second, text, line: `${second}${fraction === '' ? '' : `.${fraction}`}${zone} ${text}\n` };
    });
    const withTimes = random(2) === 0;
    const lines = new LogLines(withTimes);
    let out = '';
    let from = 0;
    for (let breaks = random(4); breaks >= 0; breaks--) {
      const bytes = Buffer.from(
        log
          .slice(from)
          .map(({ line }) => line)
          .join(''),
      );
      const end = breaks === 0 ? bytes.length : random(bytes.length + 1);
      for (let at = 0; at < end; ) {
        const next = Math.min(end, at + 1 + random(80));
        out += lines.push(bytes.subarray(at, next)).toString();
        at = next;
      }
      if (breaks === 0) {
        break;
      }
      lines.resumed();
      const { position } = lines;
      const since = position === undefined ? '' : sinceTimeOf(position).slice(0, 19);
      from = log.findIndex(({ second }) => second >= since);
    }
    expect(out, `round ${round}`).toBe(log.map(({ line, text }) => (withTimes ? line : `${text}\n`)).join(''));
  }
});

test('an invalid time is not accepted, also after a valid one', () => {
  const odd = [
    '2026-11-21T10:00:01.1234567890Z ten decimals\n',
    '2026-11-21T10:00:01.Z none\n',
    '2026-11-21T10:00:01Zone\n',
    '2026-11-21T10:00:01\n',
    '2026-11-21T10:00:01.5\n',
    '2026-13-21T10:00:01Z no month\n',
    '\n',
  ].join('');
  const lines = new LogLines(false);
  expect(read(lines, at('01', 'a') + odd + at('01', 'b'))).toBe(`a\n${odd}b\n`);
  expect(lines.position?.lines).toBe(2);
  const whole = new LogLines(true);
  read(whole, at('01', 'a') + odd, odd + at('01', 'b') + odd);
  expect(whole.position).toEqual(lines.position);
});
