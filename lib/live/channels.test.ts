import { expect, test } from 'vitest';
import {
  channel,
  channelMessage,
  chosenProtocol,
  exitStatus,
  hasStatus,
  readInput,
  resizeMessage,
  statusOfWords,
  stdinClosed,
  successStatus,
  wordsOfStatus,
} from './index.ts';

const text = (to: number, words: string) => Buffer.concat([Buffer.from([to]), Buffer.from(words)]);

test.each([
  ['input', text(0, 'ls\n'), { kind: 'stdin', data: Buffer.from('ls\n') }],
  ['input that looks like a size', text(0, '{"Width":1,"Height":1}'), { kind: 'stdin', data: expect.any(Buffer) }],
  ['a size', text(4, '{"Width":120,"Height":40}\n'), { kind: 'resize', size: { rows: 40, cols: 120 } }],
  ['the end of the input', stdinClosed, { kind: 'closed' }],
  ['the end of another stream', Buffer.from([255, 1]), { kind: 'nothing' }],
  ['an empty message', Buffer.alloc(0), { kind: 'nothing' }],
  ['an empty message on a stream', Buffer.from([4]), { kind: 'nothing' }],
  ['output', text(1, 'x'), undefined],
  ['an error', text(3, 'x'), undefined],
  ['a stream that there is not', text(9, 'x'), undefined],
  ['an empty message on a stream that there is not', Buffer.from([9]), undefined],
  ['an end of nothing', Buffer.from([255]), undefined],
  ['a size that is none', text(4, '{"Width":"1","Height":2}'), undefined],
  ['a negative size', text(4, '{"Width":-1,"Height":2}'), undefined],
  ['a huge size', text(4, '{"Width":65536,"Height":2}'), undefined],
  ['half a size', text(4, '{"Width":2}'), undefined],
  ['a size that is not JSON', text(4, '80x24'), undefined],
  ['an endless size', text(4, `{"Width":2,"Height":2${' '.repeat(1_000)}}`), undefined],
])('a client sends %s', (_what, message, expected) => {
  expect(readInput(message)).toEqual(expected);
});

test('sizes are encoded as they are decoded', () => {
  expect(readInput(resizeMessage({ rows: 24, cols: 100_000 }))).toEqual({
    kind: 'resize',
    size: { rows: 24, cols: 65_535 },
  });
});

test('a message begins with its stream', () => {
  expect(channelMessage(channel.stderr, 'ab')).toEqual(Buffer.from([2, 97, 98]));
});

test("the client's first supported protocol is chosen", () => {
  expect(chosenProtocol(['graphql', 'v4.channel.k8s.io', 'v5.channel.k8s.io'])).toBe('v4.channel.k8s.io');
  expect(chosenProtocol(['base64.channel.k8s.io'])).toBeUndefined();
  expect([hasStatus('v5.channel.k8s.io'), hasStatus('channel.k8s.io')]).toEqual([true, false]);
});

test('outcomes have the texts of Kubernetes', () => {
  expect(exitStatus(0)).toBe(successStatus);
  expect(JSON.parse(exitStatus(3))).toMatchObject({
    status: 'Failure',
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: '3' }] },
  });
  expect(statusOfWords('command terminated with exit code 3')).toBe(exitStatus(3));
  expect(JSON.parse(statusOfWords('no such shell'))).toMatchObject({ code: 500, message: 'no such shell' });
  expect([successStatus, exitStatus(2), 'plain'].map(wordsOfStatus)).toEqual([
    '',
    'command terminated with non-zero exit code: 2',
    'plain',
  ]);
});
