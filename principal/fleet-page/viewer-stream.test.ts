import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { heldViewer } from './testing/held-viewer.ts';
import { type ViewerNews, ViewerStream } from './viewer-stream.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

/** A stream to a viewer. `publish` makes something new: of a size that fills what a connection may hold. */
async function stream() {
  const viewer = await heldViewer();
  const ending = new AbortController();
  let [revision, told] = [0, 0];
  const next = vi.fn((): ViewerNews | undefined => {
    if (told === revision) {
      return undefined;
    }
    told = revision;
    return { revision, body: { filling: 'x'.repeat(100_000) } };
  });
  const closed = vi.fn();
  const made = new ViewerStream(viewer.response, next, ending.signal);
  made.onClosed(closed);
  const publish = () => {
    revision += 1;
    made.offer();
  };
  return { viewer, made, publish, closed, next, ending, ids: () => viewer.messages().map(({ id }) => id) };
}

test('a viewer who takes everything gets every message', async () => {
  const { viewer, publish, ids } = await stream();
  for (let count = 0; count < 5; count++) {
    publish();
    await turn();
  }
  expect(ids()).toEqual([1, 2, 3, 4, 5]);
  expect(viewer.text()).toContain('retry: 2000\n\n');
});

test('for a slow viewer one message waits, and the rest is told at once, as it is then', async () => {
  const { viewer, publish, next, ids } = await stream();
  await turn();
  viewer.hold();
  for (let count = 0; count < 1_000; count++) {
    publish();
    await turn();
  }
  expect(viewer.response.writableLength).toBeLessThan(250_000);
  const asked = next.mock.calls.length;
  publish();
  expect(next.mock.calls.length).toBe(asked);
  viewer.take();
  await until(() => expect(ids().at(-1)).toBe(1_001));
  expect(ids().length).toBeLessThan(5);
});

test('a viewer who takes nothing for 30 s is cut off, and not before', async () => {
  const { viewer, publish, closed } = await stream();
  await turn();
  viewer.hold();
  publish();
  vi.advanceTimersByTime(29_999);
  expect(viewer.response.destroyed).toBe(false);
  vi.advanceTimersByTime(1);
  expect(viewer.response.destroyed).toBe(true);
  await until(() => expect(closed).toHaveBeenCalledOnce());
  expect(vi.getTimerCount()).toBe(0);
});

test('a slow viewer who takes something in time stays', async () => {
  const { viewer, publish, ids } = await stream();
  await turn();
  for (let round = 1; round <= 3; round++) {
    viewer.hold();
    publish();
    vi.advanceTimersByTime(29_000);
    viewer.take();
    await until(() => expect(ids().at(-1)).toBe(round));
    await turn();
  }
  vi.advanceTimersByTime(29_000);
  expect(viewer.response.destroyed).toBe(false);
});

test('a viewer for whom nothing is new hears that the stream lives; one who takes nothing gets no more of it', async () => {
  const { viewer, publish } = await stream();
  const heartbeats = () => viewer.text().split(': still here\n\n').length - 1;
  vi.advanceTimersByTime(60_000);
  await turn();
  expect(heartbeats()).toBe(3);
  viewer.hold();
  publish();
  vi.advanceTimersByTime(25_000);
  viewer.take();
  await turn();
  expect(heartbeats()).toBe(3);
});

test('the end of the program ends the stream, also to a viewer who takes nothing', async () => {
  const { viewer, publish, ending, next } = await stream();
  await turn();
  viewer.hold();
  publish();
  ending.abort();
  const asked = next.mock.calls.length;
  publish();
  expect(next.mock.calls.length).toBe(asked);
  vi.advanceTimersByTime(30_000);
  expect(viewer.response.destroyed).toBe(true);
});

test('a viewer is told to load the page anew, once', async () => {
  const { viewer, made } = await stream();
  made.end(true);
  made.end(true);
  await turn();
  expect(viewer.messages().map(({ event }) => event)).toEqual(['reload']);
});
