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
  let told = 0;
  const channel = new AgentChannel({
    agent: 'edge',
    ask: async (signal) => {
      asked.push(signal);
      return answers.shift() ?? false;
    },
    tell: () => told++,
  });
  return { channel, asked, told: () => told };
}

test("a message before the client's confirmation is delivered after it", () => {
  const { channel, told } = start();
  channel.news();
  channel.news();
  expect(told()).toBe(0);
  channel.confirmed();
  expect(told()).toBe(1);
  channel.news();
  expect(told()).toBe(2);
});

test('an agent that does not answer is asked again until it agrees; then one message stands for those that were missed', async () => {
  const { channel, asked, told } = start(false, false, true);
  expect(await channel.follow()).toBe(false);
  channel.confirmed();
  await vi.advanceTimersByTimeAsync(10_000);
  expect([asked.length, told()]).toEqual([3, 1]);
  await vi.advanceTimersByTimeAsync(600_000);
  expect([asked.length, told()]).toEqual([3, 1]);
});

test('it is asked less and less often, and no more when the client leaves', async () => {
  const { channel, asked } = start();
  await channel.follow();
  await vi.advanceTimersByTimeAsync(600_000);
  expect(asked.length).toBeGreaterThan(10);
  expect(asked.length).toBeLessThan(30);
  channel.leave();
  const before = asked.length;
  await vi.advanceTimersByTimeAsync(600_000);
  expect(asked).toHaveLength(before);
});

test('an agent that is back is asked once, whatever request was open', async () => {
  const { channel, asked, told } = start(false, true);
  await channel.follow();
  channel.confirmed();
  await channel.agentConnected();
  await vi.advanceTimersByTimeAsync(600_000);
  expect([asked.length, told()]).toEqual([2, 1]);
  expect(asked[0]?.aborted).toBe(true);
});
