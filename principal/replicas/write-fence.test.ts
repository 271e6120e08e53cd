import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { aborted } from '../../lib/base/index.ts';
import type { Store, StoredObject } from '../../lib/sync/index.ts';
import { WriteFence } from './write-fence.ts';

// A hub whose admission takes longer than the replica's Lease has left.

const timeoutMs = 1_500;
const web = { metadata: { namespace: 'edge', name: 'web', uid: 'web-1', resourceVersion: '1' } };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A replica that serves the agent, and a write that takes `ms` unless it is hung up on. */
function replica(ms: number) {
  const lease = { isCurrent: true, currentSince: 0, current: async () => undefined };
  const state = { isResponsible: true, answers: true };
  const fence = new WriteFence({
    lease,
    mayWrite: () => (state.answers ? Promise.resolve(state.isResponsible) : new Promise(() => undefined)),
    timeoutMs,
  });
  const slow = async (_object: unknown, signal: AbortSignal) => {
    const done = new Promise((resolve) => setTimeout(resolve, ms));
    await Promise.race([done, aborted(signal)]);
    signal.throwIfAborted();
    return web;
  };
  const patch = (_ref: unknown, _patch: unknown, signal: AbortSignal) => slow(web, signal);
  const store = {
    create: slow,
    patch,
    delete: (_ref: unknown, _options: unknown, signal: AbortSignal) => slow(web, signal),
  };
  const guarded = fence.guard(store as unknown as Store<StoredObject>, { ownerOf: () => 'edge', get: () => undefined });
  const give = new AbortController();
  const outcome = (write: Promise<unknown>) =>
    write.then(
      () => 'written',
      ({ message }: Error) => message,
    );
  const create = () => outcome(guarded.create(web, give.signal));
  const remove = () => outcome(guarded.delete(web.metadata, { uid: 'web-1' } as never, give.signal));
  const change = (planned?: StoredObject) =>
    outcome(guarded.patch(web.metadata, { metadata: { labels: { a: 'b' } } }, give.signal, planned));
  return { lease, state, fence, create, remove, change, give };
}

const ended = 'no answer within 1500 ms';

test.each(['create', 'remove'] as const)(
  '%s: a write that takes long succeeds while the Lease is renewed',
  async (kind) => {
    const one = replica(12_000);
    const written = one[kind]();
    await vi.advanceTimersByTimeAsync(12_000);
    expect(await written).toBe('written');
  },
);

test.each<[string, (one: ReturnType<typeof replica>) => void]>([
  ['the Lease is not renewed any more', ({ lease }) => Object.assign(lease, { isCurrent: false })],
  ['the Lease was not renewed for a while', ({ lease }) => Object.assign(lease, { currentSince: 4_000 })],
  ['the agent is handed over', ({ state }) => Object.assign(state, { isResponsible: false })],
  ['nobody tells who is responsible', ({ state }) => Object.assign(state, { answers: false })],
])('a write that takes long has ended before another replica can have taken over: %s', async (_, change) => {
  const one = replica(12_000);
  let now: string | undefined;
  void one.create().then((outcome) => {
    now = outcome;
  });
  await vi.advanceTimersByTimeAsync(4_000);
  expect(now).toBeUndefined();
  change(one);
  await vi.advanceTimersByTimeAsync(timeoutMs);
  expect(now).toBe(ended);
  await one.fence.quiet('edge');
});

test('a change of what is not known has ended in time, too; one that names the version goes on', async () => {
  const one = replica(12_000);
  const [unknown, known] = [one.change(), one.change(web)];
  await vi.advanceTimersByTimeAsync(1);
  Object.assign(one.lease, { isCurrent: false });
  await vi.advanceTimersByTimeAsync(12_000);
  expect(await unknown).toBe(ended);
  expect(await known).toBe('written');
});

test('a write that its caller gives up ends in time, though the Lease is renewed', async () => {
  const one = replica(60_000);
  const written = one.create();
  await vi.advanceTimersByTimeAsync(4_000);
  one.give.abort(new Error('given up'));
  expect(await written).toBe('given up');
  let isQuiet = false;
  void one.fence.quiet('edge').then(() => {
    isQuiet = true;
  });
  await vi.advanceTimersByTimeAsync(timeoutMs);
  expect(isQuiet).toBe(true);
});
