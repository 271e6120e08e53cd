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
