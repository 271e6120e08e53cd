import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { liveMemory } from '../../lib/base/testing.ts';
import type { KubeClient } from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { ReplicaLease } from './replica-lease.ts';

const nothing = () => undefined;

test('who waits to write and gives up leaves nothing behind', async () => {
  const lease = new ReplicaLease({
    client: {} as KubeClient,
    namespace: 'argocd',
    timing: { renewMs: 1_000, deadlineMs: 3_000, durationMs: 5_000 },
    description: { pod: undefined, host: 'hub', address: '', fingerprint: '', version: '' },
    started: nothing,
    suspended: nothing,
    stalled: nothing,
    resumed: nothing,
    deposed: nothing,
    logger: createLogger({ level: 'fatal' }),
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
