import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PacedNews } from './paced-news.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function start() {
  const told: string[] = [];
  const began = performance.now();
  const news = new PacedNews((name) => told.push(`${name} ${Math.round(performance.now() - began)}`));
  return { news, told };
}

test('the first is told at once, further ones together, and none after the last is lost', async () => {
  const { news, told } = start();
  for (let count = 0; count < 1_000; count++) {
    news.news('tree');
  }
  news.news('other');
  expect(told).toEqual(['tree 0', 'other 0']);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(told.slice(2)).toEqual(['tree 250']);
  news.news('tree');
  expect(told.slice(3)).toEqual(['tree 1000']);
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(told).toHaveLength(4);
  expect(vi.getTimerCount()).toBe(0);
});

test('however many there are, they are told four times a second', async () => {
  const { news, told } = start();
  for (let ms = 0; ms < 10_000; ms += 10) {
    for (let count = 0; count < 100; count++) {
      news.news('tree');
    }
    await vi.advanceTimersByTimeAsync(10);
  }
  await vi.advanceTimersByTimeAsync(1_000);
  expect(told).toHaveLength(41);
});

test('what is forgotten is not told, and leaves no timer', async () => {
  const { news, told } = start();
  for (const name of ['a', 'a', 'b', 'b']) {
    news.news(name);
  }
  news.forget('a');
  news.close();
  expect(vi.getTimerCount()).toBe(0);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(told).toEqual(['a 0', 'b 0']);
});
