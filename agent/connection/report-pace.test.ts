import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Message } from '../../lib/argocd/index.ts';
import { ReportPace } from './report-pace.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const message = (eventId: string, type = 'status-update', target = 'application') =>
  ({ target, type, resourceId: `r${eventId}`, eventId, object: { metadata: { name: 'a' } } }) as unknown as Message;

function start(intervalMs: number) {
  const pace = new ReportPace(intervalMs, { debug: () => undefined });
  const passed: string[] = [];
  return {
    pace,
    passed,
    send: (sent: Message) => pace.sent(sent),
    acknowledge: (sent: Message) => pace.acknowledged(sent, () => passed.push(sent.eventId)),
  };
}

test('the next report may leave an interval after the one before', () => {
  const { passed, send, acknowledge } = start(1_000);
  send(message('1'));
  vi.advanceTimersByTime(200);
  acknowledge(message('1'));
  vi.advanceTimersByTime(799);
  expect(passed).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(passed).toEqual(['1']);
});

test('a slow acknowledgement is not held back, nor one of something else', () => {
  const { passed, send, acknowledge } = start(1_000);
  for (const sent of [
    message('1'),
    message('2', 'create'),
    message('3', 'delete'),
    message('4', 'spec-update', 'appproject'),
  ]) {
    send(sent);
  }
  for (const id of ['2', '3', '4', 'unknown']) {
    acknowledge(message(id));
  }
  expect(passed).toEqual(['2', '3', '4', 'unknown']);
  vi.advanceTimersByTime(1_000);
  acknowledge(message('1'));
  expect(passed).toHaveLength(5);
});

test('without an interval nothing is held back; after the connection nothing is passed on', () => {
  const none = start(0);
  none.send(message('1'));
  none.acknowledge(message('1'));
  expect(none.passed).toEqual(['1']);
  const { pace, passed, send, acknowledge } = start(1_000);
  send(message('1'));
  acknowledge(message('1'));
  pace.close();
  vi.advanceTimersByTime(5_000);
  expect(passed).toEqual([]);
});
