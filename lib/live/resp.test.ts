import { expect, test } from 'vitest';
import { CommandReader, encodeCommand, ReplySplitter, RespError } from './index.ts';

/** The commands in these bytes, as an authenticated client sends them. */
function read(chunks: readonly Buffer[], reader = new CommandReader()): string[][] {
  const commands: string[][] = [];
  reader.accept();
  for (const chunk of chunks) {
    reader.push(chunk);
    for (let words = reader.next(); words !== undefined; words = reader.next()) {
      commands.push(words.map((word) => word.toString('latin1')));
    }
  }
  return commands;
}

test('commands are read wherever their bytes are cut', () => {
  const bytes = Buffer.concat([
    encodeCommand(['HELLO', '3']),
    encodeCommand(['set', 'key', Buffer.from([0, 13, 10, 255])]),
    encodeCommand(['get', '']),
    Buffer.from('*0\r\n'),
    encodeCommand(['ping']),
  ]);
  const whole = read([bytes]);
  expect(whole.map(([name]) => name)).toEqual(['HELLO', 'set', 'get', 'ping']);
  expect(whole[1]?.[2]).toBe('\0\r\n\xff');
  for (let cut = 0; cut <= bytes.length; cut++) {
    expect(read([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(whole);
  }
  expect(read([...bytes].map((byte) => Buffer.from([byte])))).toEqual(whole);
});

test('words stay as they were received while later bytes arrive', () => {
  const reader = new CommandReader();
  const bytes = Buffer.concat([
    encodeCommand(['set', 'a', 'x'.repeat(100)]),
    encodeCommand(['set', 'b', 'y'.repeat(100)]),
  ]);
  reader.push(bytes.subarray(0, 60));
  reader.push(bytes.subarray(60, 200));
  const first = reader.next();
  for (const byte of bytes.subarray(200)) {
    reader.push(Buffer.from([byte]));
  }
  expect([first, reader.next()].map((words) => words?.map(String))).toEqual([
    ['set', 'a', 'x'.repeat(100)],
    ['set', 'b', 'y'.repeat(100)],
  ]);
  expect(reader.size).toBe(0);
});

test('a large command in many pieces is copied a few times, not once for each piece', () => {
  const reader = new CommandReader();
  reader.accept();
  reader.push(Buffer.from('*2\r\n$3\r\nGET\r\n$60000000\r\n'));
  const begin = process.cpuUsage();
  const chunk = Buffer.alloc(16 * 1024, 97);
  for (let sent = 0; sent < 60_000_000 - chunk.length; sent += chunk.length) {
    reader.push(chunk);
    expect(reader.next()).toBeUndefined();
  }
  // Copying everything for each piece takes more than 30 s.
  expect(process.cpuUsage(begin).user).toBeLessThan(5_000_000);
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
  expect(() => read([Buffer.from(text)])).toThrow(RespError);
});

test("a client that is not accepted has Redis' limits for such clients", () => {
  const header = (text: string) => {
    const reader = new CommandReader();
    reader.push(Buffer.from(text));
    return reader.next();
  };
  expect(header('*10\r\n$16384\r\n')).toBeUndefined();
  expect(() => header('*11\r\n')).toThrow(/a command of 11 words: at most 10 are allowed/);
  expect(() => header('*1\r\n$16385\r\n')).toThrow(/a word of 16385 bytes: at most 16384 are allowed/);
  const reader = new CommandReader();
  reader.push(encodeCommand(Array.from({ length: 5 }, () => 'x'.repeat(16_384))));
  expect(() => reader.next()).toThrow(RespError);
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

const kindOfReply = (reply: string) =>
  reply.startsWith('*2') ? 'a' : reply.startsWith('>') ? 'message' : reply.startsWith('-ERR') ? 'ERR' : '';

test('replies are separated wherever their bytes are cut, and stay unchanged', () => {
  const bytes = Buffer.from(replies.join(''));
  const check = (chunks: readonly Buffer[]) => {
    const splitter = new ReplySplitter();
    const pieces = chunks.flatMap((chunk) => splitter.push(chunk));
    expect(Buffer.concat(pieces.map((piece) => piece.bytes)).equals(bytes)).toBe(true);
    expect(pieces.filter(({ isEnd }) => isEnd).map(({ type }) => type)).toEqual(replies.map(([type]) => type));
    expect(splitter.isAmid).toBe(false);
    // The first piece of each reply has its type and kind.
    const firsts = pieces.filter((_piece, index) => index === 0 || pieces[index - 1]?.isEnd);
    expect(firsts.map(({ type }) => type)).toEqual(replies.map(([type]) => type));
    expect(firsts.map(({ kind }) => kind)).toEqual(replies.map(kindOfReply));
  };
  for (let cut = 0; cut <= bytes.length; cut++) {
    check([bytes.subarray(0, cut), bytes.subarray(cut)]);
  }
  check([...bytes].map((byte) => Buffer.from([byte])));
});

test('the kind is the first element of an array if it is a short string, or the code of an error', () => {
  const kindOf = (text: string) => new ReplySplitter().push(Buffer.from(text))[0]?.kind;
  expect(kindOf('*2\r\n$7\r\nmessage\r\n')).toBe('message');
  expect(kindOf('*2\r\n*1\r\n$7\r\nmessage\r\n')).toBe('');
  expect(kindOf('*2\r\n:1\r\n$7\r\nmessage\r\n')).toBe('');
  expect(kindOf('*2\r\n$17\r\nmessagemessage123\r\n')).toBe('');
  expect(kindOf('-EXECABORT Transaction discarded\r\n')).toBe('EXECABORT');
  expect(kindOf('-message\r\n')).toBe('');
  expect(kindOf('*2\r\n$0\r\n\r\n$7\r\nmessage\r\n')).toBe('');
  expect(kindOf('*0\r\n')).toBe('');
  expect(kindOf('+message\r\n')).toBe('');
});

test.each(['hello\r\n', '$x\r\n', '*x\r\n', `${'*1\r\n'.repeat(200)}`, `+${'a'.repeat(70_000)}`])(
  'an invalid reply is refused (%#)',
  (text) => {
    expect(() => new ReplySplitter().push(Buffer.from(text))).toThrow(RespError);
  },
);
