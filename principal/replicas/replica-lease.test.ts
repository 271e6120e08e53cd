import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { liveMemory, until } from '../../lib/base/testing.ts';
import { ApiError, type KubeClient, type Lease } from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { ReplicaLease, type ReplicaLeaseOptions } from './replica-lease.ts';

const nothing = () => undefined;
const usual = {
  namespace: 'argocd',
  timing: { renewMs: 1_000, deadlineMs: 3_000, durationMs: 5_000 },
  description: { pod: undefined, host: 'hub', address: '', fingerprint: '', version: '' },
  started: nothing,
  suspended: nothing,
  stalled: nothing,
  resumed: nothing,
  deposed: nothing,
  logger: createLogger({ level: 'fatal' }),
} satisfies Omit<ReplicaLeaseOptions, 'client'>;

/** A Lease with a clock and answers of the test's own: each renewal waits for one, and the first creations have none. */
function startLease(options: Partial<ReplicaLeaseOptions>, lostAnswers = 0) {
  const clock = { now: 0 };
  const renewals: PromiseWithResolvers<void>[] = [];
  const stored = (lease: Lease) => ({ ...lease, metadata: { ...lease.metadata, uid: lease.metadata.name } });
  const made: string[] = [];
  const client = {
    create: async (_: unknown, lease: Lease) => {
      made.push(lease.metadata.name);
      if (made.length <= lostAnswers) {
        throw new Error('connection reset');
      }
      return stored(lease);
    },
    get: async () => undefined,
    replace: async (_: unknown, lease: Lease) => {
      const renewal = Promise.withResolvers<void>();
      renewals.push(renewal);
      await renewal.promise;
      return lease;
    },
  } as unknown as KubeClient;
  const stop = new AbortController();
  const lease = new ReplicaLease({ ...usual, client, now: () => clock.now, ...options });
  const ended = lease.run(stop.signal);
  const end = async () => {
    stop.abort();
    await ended;
  };
  return { lease, clock, renewals, made, end };
}

test('who waits to write and gives up leaves nothing behind', async () => {
  const lease = new ReplicaLease({
    ...usual,
    client: {} as KubeClient,
  });
  const signals: WeakRef<AbortSignal>[] = [];
  const giveUp = async () => {
    const stop = new AbortController();
    signals.push(new WeakRef(stop.signal));
    const waiting = lease.current(stop.signal).then(
      () => 'may write',
      () => 'gave up',
    );
    stop.abort();
    expect(await waiting).toBe('gave up');
  };
  for (let i = 0; i < 100; i++) {
    await giveUp();
  }
  await setImmediate();
  liveMemory();
  expect(lease.isCurrent).toBe(false);
  expect(signals.filter((signal) => signal.deref() !== undefined).length).toBeLessThan(10);
});

test('a renewal that was under way before the replica stood still says that it may write again', async () => {
  let resumed = 0;
  const { lease, clock, renewals, end } = startLease({ resumed: () => void resumed++ });
  await until(() => resumed === 1);
  clock.now = 2_000;
  lease.check();
  await until(() => renewals.length === 1);
  // Nothing is read for two seconds, as in a frozen process.
  clock.now = 4_000;
  expect(lease.isCurrent).toBe(false);
  renewals[0]?.resolve();
  await until(() => lease.isCurrent);
  expect([resumed, lease.currentSince]).toEqual([2, 4_000]);
  await end();
});

test('a replica that was deposed and lives again is not taken for one that cannot write for long', async () => {
  const told: string[] = [];
  const { lease, clock, renewals, end } = startLease({
    resumed: () => void told.push('resumed'),
    deposed: () => void told.push('deposed'),
    stalled: () => void told.push('stalled'),
  });
  await until(() => told.length === 1);
  lease.check();
  await until(() => renewals.length === 1);
  renewals[0]?.reject(new ApiError({ status: 404, reason: 'NotFound', message: 'gone' }));
  await until(() => told.length === 3);
  clock.now = 20_000;
  lease.check();
  await until(() => renewals.length === 2);
  renewals[1]?.reject(new Error('the API server is away'));
  lease.check();
  await until(() => renewals.length === 3);
  expect(told).toEqual(['resumed', 'deposed', 'resumed']);
  renewals[2]?.resolve();
  await end();
});

test('a Lease whose creation had no answer is not taken up again: others may have deposed it by now', async () => {
  let resumed = 0;
  const { lease, made, end } = startLease({ resumed: () => void resumed++ }, 1);
  await until(() => resumed === 1);
  expect(new Set(made).size).toBe(2);
  expect(lease.name).toBe(made[1]);
  await end();
});
