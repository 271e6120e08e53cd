import { expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { messageEvent, targets, type WireEvent } from '../../lib/wire/index.ts';
import { LiveRequests, type RequestContext } from './requests.ts';

const request = (id: string) =>
  messageEvent(targets.resource, 'GET', {}, { source: '' }, { resourceId: id, eventId: id });
const live = { logs: () => Promise.reject(new Error()), terminal: () => Promise.reject(new Error()) };

function start(handler: (event: WireEvent, context: RequestContext) => Promise<void>) {
  const [refused, sent, lines] = [[], [], []] as string[][];
  const requests = new LiveRequests({
    handlers: { [targets.resource]: handler },
    overloaded: ({ eventId }) => refused?.push(eventId),
    logger: createLogger({ destination: { write: (line) => void lines?.push(line) } }),
  });
  requests.connected({ live, send: ({ eventId }) => sent?.push(eventId) });
  return { requests, refused, sent, lines };
}

test('defect 38: a request runs once however often it comes, and beside all others', async () => {
  const began: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const { requests, sent } = start(async (event, { answer }) => {
    began.push(event.eventId);
    if (event.eventId === 'slow') {
      await promise;
    }
    answer(event);
  });
  for (const id of ['slow', 'slow', 'quick']) {
    expect(requests.take(request(id))).toBe(true);
  }
  await until(() => sent?.length === 1);
  expect(sent).toEqual(['quick']);
  resolve();
  await until(() => sent?.length === 2);
  requests.take(request('quick'));
  expect(began).toEqual(['slow', 'quick']);
  await until(() => requests.running === 0);
});

test('events of other targets are not taken', () => {
  const { requests } = start(async () => undefined);
  expect(requests.take(messageEvent(targets.redis, '', {}, { source: '' }))).toBe(false);
});

test('the end of the connection ends all, and nothing is answered on another one', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const aborted: unknown[] = [];
  const { requests, sent, lines } = start(async (event, { signal, answer }) => {
    signal.addEventListener('abort', () => aborted.push(signal.reason));
    await promise;
    answer(event);
    signal.throwIfAborted();
  });
  requests.take(request('a'));
  requests.take(request('b'));
  requests.cancel('a');
  expect(aborted).toHaveLength(1);
  requests.disconnected();
  expect(aborted).toHaveLength(2);
  requests.connected({ live, send: ({ eventId }) => sent?.push(eventId) });
  resolve();
  await until(() => requests.running === 0);
  expect([sent, lines]).toEqual([[], []]);
});

test('requests over the limit are refused, a failure is logged', async () => {
  const { promise, reject } = Promise.withResolvers<void>();
  const { requests, refused, lines } = start(() => promise);
  for (let index = 0; index < 1_044; index++) {
    requests.take(request(`${index}`));
  }
  expect([requests.running, refused?.length]).toEqual([1_000, 44]);
  reject(new Error('broken'));
  await until(() => requests.running === 0);
  expect(lines?.[0]).toContain('broken');
});
