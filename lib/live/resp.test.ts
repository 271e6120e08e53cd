import { expect, test } from 'vitest';
import { CommandReader, encodeCommand, ReplySplitter, RespError } from './index.ts';

const words = (commands: Buffer[][]) => commands.map((command) => command.map(String));

test('commands are read wherever their bytes are cut', () => {
  const bytes = Buffer.concat([
    encodeCommand(['HELLO', '3']),
    encodeCommand(['set', 'key', Buffer.from([0, 13, 10, 255])]),
    encodeCommand(['get', '']),
    Buffer.from('*0\r\n'),
    encodeCommand(['ping']),
  ]);
  const whole = words(new CommandReader().push(bytes));
  expect(whole.map(([name]) => name)).toEqual(['HELLO', 'set', 'get', 'ping']);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const reader = new CommandReader();
    expect(words([...reader.push(bytes.subarray(0, cut)), ...reader.push(bytes.subarray(cut))])).toEqual(whole);
  }
});

test.each([
  'PING\r\n',
  '*1\r\n+OK\r\n',
  '*2\r\n*1\r\n',
  '*1\n$4\nping\n',
  '*99999\r\n',
  '*1\r\n$-1\r\n',
  '*1\r\n$9999999999\r\n',
  '\r\n',
  `*1${'0'.repeat(70_000)}`,
])('invalid commands are refused (%#)', (text) => {
  expect(() => new CommandReader().push(Buffer.from(text))).toThrow(RespError);
});

const replies = [
  '+OK\r\n',
  '-ERR no\r\n',
  ':1\r\n',
  '$-1\r\n',
  '$5\r\na\r\nb\n\r\n',
  '*0\r\n',
  '*-1\r\n',
  '*2\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n',
  '%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n',
  '~1\r\n#t\r\n',
  ',1.5\r\n',
  '(123\r\n',
  '=8\r\ntxt:abcd\r\n',
  '!3\r\nERR\r\n',
  '>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$0\r\n\r\n',
  '|1\r\n+ttl\r\n:3\r\n*1\r\n+x\r\n',
];

test('replies are separated wherever their bytes are cut, and stay unchanged', () => {
  const bytes = Buffer.from(replies.join(''));
  for (let cut = 0; cut <= bytes.length; cut++) {
    const splitter = new ReplySplitter();
    const pieces = [...splitter.push(bytes.subarray(0, cut)), ...splitter.push(bytes.subarray(cut))];
    expect(Buffer.concat(pieces.map((piece) => piece.bytes)).equals(bytes)).toBe(true);
    expect(pieces.filter(({ isEnd }) => isEnd).map(({ type }) => type)).toEqual(replies.map(([type]) => type));
    expect(splitter.isAmid).toBe(false);
  }
});

test.each(['hello\r\n', '$x\r\n', '*x\r\n', `${'*1\r\n'.repeat(200)}`, `+${'a'.repeat(70_000)}`])(
  'an invalid reply is refused (%#)',
  (text) => {
    expect(() => new ReplySplitter().push(Buffer.from(text))).toThrow(RespError);
  },
);
