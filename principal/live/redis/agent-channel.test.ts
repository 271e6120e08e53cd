import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { AgentChannel } from './agent-channel.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function start(...answers: boolean[]) {
  const asked: AbortSignal[] = [];
  let published = 0;
  const channel = new AgentChannel({
    agent: 'edge',
    ask: async (signal) => {
      asked.push(signal);
      return answers.shift() ?? false;
    },
    publish: () => published++,
  });
  return { channel, asked, published: () => published };
}

test('an agent is asked again until it agrees; then one message stands for those that were missed', async () => {
  const { channel, asked, published } = start(false, false, true);
  void channel.follow();
  await vi.advanceTimersByTimeAsync(0);
  expect([asked.length, published()]).toEqual([1, 0]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect([asked.length, published()]).toEqual([3, 1]);
  await vi.advanceTimersByTimeAsync(600_000);
  expect([asked.length, published()]).toEqual([3, 1]);
});

test('an agent is asked less and less often, and no more when the client leaves', async () => {
  const { channel, asked } = start();
  void channel.follow();
  await vi.advanceTimersByTimeAsync(600_000);
  expect(asked.length).toBeGreaterThan(10);
  expect(asked.length).toBeLessThan(30);
  channel.leave();
  const before = asked.length;
  await vi.advanceTimersByTimeAsync(600_000);
  expect(asked).toHaveLength(before);
});

test('an agent that is back is asked once, and an earlier request is aborted', async () => {
  const { channel, asked, published } = start(false, true);
  void channel.follow();
  await vi.advanceTimersByTimeAsync(0);
  void channel.follow();
  await vi.advanceTimersByTimeAsync(600_000);
  expect([asked.length, published()]).toEqual([2, 1]);
  expect(asked[0]?.aborted).toBe(true);
});

test('an answer after the client has left publishes nothing', async () => {
  const { channel, published } = start(true);
  void channel.follow();
  channel.leave();
  await vi.advanceTimersByTimeAsync(600_000);
  expect(published()).toBe(0);
});
