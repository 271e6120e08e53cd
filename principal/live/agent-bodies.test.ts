import { expect, test } from 'vitest';
import { grpcStatus, LogStreamData } from '../../lib/wire/index.ts';
import { Bodies, type BodyReader } from './agent-bodies.ts';
import { FakeStream } from './testing/fake-stream.ts';

function start() {
  const bodies = new Bodies();
  const heard: string[] = [];
  let hasRoom = true;
  const reader: BodyReader = {
    opened: () => heard.push('opened'),
    data: (bytes) => {
      heard.push(bytes.toString());
      return hasRoom;
    },
    ended: (error) => heard.push(error ?? 'end'),
    lost: () => heard.push('lost'),
  };
  const expected = bodies.expect('a', 'u', reader);
  const open = (agent = 'a') => {
    const stream = new FakeStream(agent);
    const handlers = stream.servedBy((opened) => bodies.serve(opened));
    const send = (message: Partial<LogStreamData>) =>
      handlers.message(LogStreamData.fromPartial({ requestUuid: 'u', ...message }));
    return { stream, handlers, send };
  };
  return {
    heard,
    expected,
    open,
    full: () => {
      hasRoom = false;
    },
  };
}

test('a reader receives the bytes that it waits for, up to their end', () => {
  const { heard, open } = start();
  const { stream, send, handlers } = open();
  send({});
  send({ data: Buffer.from('one') });
  send({ eof: true });
  handlers.closed();
  expect(heard).toEqual(['opened', 'one', 'end']);
  expect([stream.answers, stream.code]).toEqual([[200], grpcStatus.ok]);
});

test('another agent or request does not reach the reader', () => {
  const { heard, open } = start();
  const stranger = open('b');
  stranger.send({ data: Buffer.from('forged') });
  const wrong = open();
  wrong.send({ requestUuid: 'other', data: Buffer.from('x') });
  expect([stranger.stream.code, wrong.stream.code]).toEqual([grpcStatus.notFound, grpcStatus.notFound]);
  const right = open();
  right.send({});
  right.send({ requestUuid: 'other', data: Buffer.from('x') });
  expect(right.stream.code).toBe(grpcStatus.notFound);
  // Its own stream was ended.
  expect(heard).toEqual(['opened', 'lost']);
});

test('an error of the agent ends it', () => {
  const { heard, open } = start();
  const { stream, send } = open();
  send({ error: 'no such pod', eof: true });
  expect([heard, stream.code]).toEqual([['opened', 'no such pod'], grpcStatus.internal]);
});

test('a stream that breaks may be followed by another one', () => {
  const { heard, open } = start();
  const first = open();
  first.send({ data: Buffer.from('one') });
  first.handlers.closed();
  const second = open();
  second.send({ data: Buffer.from('two') });
  const third = open();
  third.send({ eof: true });
  second.handlers.closed();
  expect(second.stream.code).toBe(grpcStatus.canceled);
  expect(heard).toEqual(['opened', 'one', 'lost', 'opened', 'two', 'opened', 'end']);
});

test('a slow reader makes the agent wait, and a reader that leaves makes it stop', () => {
  const { open, full, expected, heard } = start();
  full();
  const { stream, send, handlers } = open();
  send({ data: Buffer.from('one') });
  expect(stream.isPaused).toBe(true);
  expected.resume();
  expect(stream.isPaused).toBe(false);
  expected.cancel();
  expect(stream.code).toBe(grpcStatus.canceled);
  handlers.closed();
  const late = open();
  late.send({});
  expect(late.stream.code).toBe(grpcStatus.notFound);
  expect(heard).toEqual(['opened', 'one']);
});
