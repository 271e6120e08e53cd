import { closed, type Question, question } from '../ask.ts';

const bytes = (text: string) => Buffer.from(text, 'latin1');
const wrong = (what: string) => `-ERR Protocol error: ${what}\n${closed}`;
const noSuch = "-ERR unknown command 'NOSUCH', with args beginning with: ";
/** One more than Redis reads of a line without an end. */
const tooLong = 64 * 1024 + 1;

/** Bytes as people type them, and bytes that are no commands. */
export const byteQuestions: readonly Question[] = [
  question(
    'a line is a command',
    [bytes('PING\r\n'), '+PONG\n'],
    [bytes('ping\n'), '+PONG\n'],
    [bytes('  PING   \r\n'), '+PONG\n'],
    [bytes('PING\thello\r\n'), '$5\nhello\n'],
    [bytes('\r\n\n   \r\nPING\r\n'), '+PONG\n'],
    [bytes('SET a x\r\r\n'), '+OK\n'],
    [bytes('GET a\r\n'), '$1\nx\n'],
    [bytes('NOSUCH a  b\r\n'), `${noSuch}'a' 'b' \n`],
    [bytes(`PING ${'x'.repeat(60_000)}\r\n`), `$60000\n${'x'.repeat(60_000)}\n`],
  ),
  question('lines and arrays one after the other', [
    bytes('PING\r\n*1\r\n$4\r\nPING\r\nPING\r\n'),
    '+PONG\n+PONG\n+PONG\n',
  ]),
  question(
    'quotes in a line',
    [bytes('SET a "x y"\r\n'), '+OK\n'],
    [bytes('GET "a"\r\n'), '$3\nx y\n'],
    [bytes("SET a 'x\\'y\\n'\r\n"), '+OK\n'],
    [bytes("GET 'a'\r\n"), "$5\nx'y\\n\n"],
    [bytes('SET a "\\x41\\t\\\\\\"\\q\\xzz\\r\\a\\b"\r\n'), '+OK\n'],
    [bytes('GET a\r\n'), bytes('$11\r\nA\t\\"qxzz\r\x07\x08\r\n')],
    [bytes('SET a ""\r\n'), '+OK\n'],
    [bytes('GET a\r\n'), '$0\n\n'],
    [bytes('SET a x"y z"\r\n'), '+OK\n'],
    [bytes('GET a\r\n'), '$4\nxy z\n'],
  ),
  ...(
    [
      ['a double quote without an end', 'SET a "x\r\n'],
      ['a single quote without an end', "SET a 'x\r\n"],
      ['a word right after a quote', 'SET a "x"y\r\n'],
      ['a backslash before the end', 'SET a "x\\\r\n'],
    ] as const
  ).map(([name, line]) => question(name, [bytes(line), wrong('unbalanced quotes in request')])),
  question(
    'a line may be that long',
    [bytes('x'.repeat(tooLong - 1)), ''],
    [bytes('\n'), `-ERR unknown command '${'x'.repeat(128)}', with args beginning with: \n`],
  ),
  question('a line without an end', [bytes('x'.repeat(tooLong)), wrong('too big inline request')]),
  question(
    'a NUL hides the end of its line',
    [bytes('PING\r\nPING\0\r\n'), '+PONG\n'],
    [bytes('x'.repeat(tooLong - 7)), wrong('too big inline request')],
  ),
  question('a browser', [bytes('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), closed]),
  question('a form of a browser', [bytes('POST / HTTP/1.1\r\nHost: x\r\n\r\n'), closed]),
  question('POST as a command', ['post x', closed]),
  question(
    'nothing is executed after such a line, and what was not sent yet is lost',
    ['a', bytes('SET k 1\r\nHost: x\r\nSET k 2\r\n'), closed],
    ['b', 'GET k', '$1\n1\n'],
  ),

  question(
    'arrays cut anywhere',
    [bytes('*1\r\n$4\r\nPI'), ''],
    [bytes('NG\r'), ''],
    [bytes('\n'), '+PONG\n'],
    [bytes('*'), ''],
    [bytes('1\r'), ''],
    [bytes('\n$'), ''],
    [bytes('4\r\nPING\r\n'), '+PONG\n'],
  ),
  question('arrays of nothing', [bytes('*0\r\n*-1\r\n*-5\r\nPING\r\n'), '+PONG\n']),
  question('a word of nothing', [bytes('*2\r\n$3\r\nGET\r\n$0\r\n\r\n'), '$-1\n']),
  question('what stands for the end of a word is not looked at', [
    bytes('*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n'),
    '+PONG\n+PONG\n',
  ]),
  question('what stands after the CR of a length is not looked at', [bytes('*1\rX$4\rXPING\r\n'), '+PONG\n']),
  question('what came before a mistake is answered', [
    bytes('*1\r\n$4\r\nPING\r\n*x\r\n'),
    `+PONG\n${wrong('invalid multibulk length')}`,
  ]),
  question('nothing is read after QUIT', [bytes('*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n'), `+OK\n${closed}`]),
  ...[
    '*x\r\n',
    '*\r\n',
    '*1 \r\n',
    '*+1\r\n',
    '*01\r\n',
    '*-0\r\n',
    '*2147483648\r\n',
    '*99999999999999999999\r\n',
    '*1\n$4\nPING\r\n',
  ].map((text) =>
    question(`the length of an array: ${JSON.stringify(text)}`, [bytes(text), wrong('invalid multibulk length')]),
  ),
  question(
    'an array of many words',
    [bytes('*20001\r\n$6\r\nNOSUCH\r\n'), ''],
    [bytes('$1\r\nx\r\n'.repeat(20_000)), `${noSuch}${"'x' ".repeat(32)}\n`],
  ),
  ...[
    '*1\r\n$x\r\n',
    '*1\r\n$\r\n',
    '*1\r\n$-1\r\n',
    '*1\r\n$04\r\n',
    '*1\r\n$4xx\r\n',
    '*1\r\n$536870913\r\n',
    '*1\r\n$9999999999\r\n',
  ].map((text) =>
    question(`the length of a word: ${JSON.stringify(text)}`, [bytes(text), wrong('invalid bulk length')]),
  ),
  ...(
    [
      ['*1\r\n+OK\r\n', '+'],
      ['*1\r\n:1\r\n', ':'],
      ['*2\r\n$3\r\nGET\r\n*1\r\n', '*'],
      ['*1\r\n\xff1\r\n', '\xff'],
      ['*1\r\n\r\n', ' '],
      ['*1\r$\n4\r\nPING\r\n', ' '],
    ] as const
  ).map(([text, mark]) =>
    question(`no word: ${JSON.stringify(text)}`, [
      bytes(text),
      bytes(`-ERR Protocol error: expected '$', got '${mark}'\r\n${closed}`),
    ]),
  ),
  question('the length of an array without an end', [
    bytes(`*${'1'.repeat(tooLong - 1)}`),
    wrong('too big mbulk count string'),
  ]),
  question('the length of a word without an end', [
    bytes(`*1\r\n$${'1'.repeat(tooLong - 1)}`),
    wrong('too big bulk count string'),
  ]),
  question('a word without a mark and an end', [
    bytes(`*1\r\n${'1'.repeat(tooLong)}`),
    wrong('too big bulk count string'),
  ]),
];
