import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from './errors.ts';
import { LeadershipLostError, type LeaseOptions, runWithLease } from './lease.ts';
import type { Lease } from './resources.ts';
import { type KubeObject, keyOf, type ObjectKey, type ResourceType } from './types.ts';

/** A store of leases with optimistic locking. */
class Leases {
  readonly objects = new Map<string, KubeObject>();
  /** Thrown by every request while set. */
  failure: Error | undefined;
  #version = 0;

  async get<T extends KubeObject>(_type: ResourceType<T>, key: ObjectKey): Promise<T | undefined> {
    if (this.failure) {
      throw this.failure;
    }
    return structuredClone(this.objects.get(keyOf(key))) as T | undefined;
  }

  async create<T extends KubeObject>(_type: ResourceType<T>, object: T): Promise<T> {
    if (this.failure) {
      throw this.failure;
    }
    if (this.objects.has(keyOf(object))) {
      throw new ApiError({ status: 409, reason: 'AlreadyExists', message: 'exists' });
    }
    return this.put(object);
  }

  async replace<T extends KubeObject>(_type: ResourceType<T>, object: T): Promise<T> {
    if (this.failure) {
      throw this.failure;
    }
    const current = this.objects.get(keyOf(object));
    if (!current) {
      throw new ApiError({ status: 404, message: 'not found' });
    }
    if (current.metadata.resourceVersion !== object.metadata.resourceVersion) {
      throw new ApiError({ status: 409, reason: 'Conflict', message: 'modified' });
    }
    return this.put(object);
  }

  put<T extends KubeObject>(object: T): T {
    const stored = structuredClone(object);
    stored.metadata.resourceVersion = String(++this.#version);
    this.objects.set(keyOf(stored), stored);
    return structuredClone(stored);
  }

  get spec(): Lease['spec'] {
    return (this.objects.get('ns/l') as Lease | undefined)?.spec;
  }
}

let store: Leases;
beforeEach(() => {
  vi.useFakeTimers();
  store = new Leases();
});
afterEach(() => {
  vi.useRealTimers();
});

function candidate(identity: string, options: Partial<LeaseOptions> = {}) {
  const stop = new AbortController();
  const seen = { leading: false, result: undefined as unknown };
  const lead = async (signal: AbortSignal) => {
    seen.leading = true;
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    seen.leading = false;
  };
  const done = runWithLease({
    client: store,
    namespace: 'ns',
    name: 'l',
    identity,
    signal: stop.signal,
    lead,
    ...options,
  }).then(
    () => {
      seen.result = 'ended';
    },
    (error: unknown) => {
      seen.result = error;
    },
  );
  return { stop, seen, done };
}

const after = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1000);

test('one leads, the others wait, and a release lets the next begin within a retry period', async () => {
  const a = candidate('a');
  const b = candidate('b');
  await after(60);
  expect([a.seen.leading, b.seen.leading]).toEqual([true, false]);
  a.stop.abort();
  await after(3);
  expect([a.seen.leading, b.seen.leading]).toEqual([false, true]);
  expect(a.seen.result).toBe('ended');
  expect(store.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1, leaseDurationSeconds: 15 });
  b.stop.abort();
  await b.done;
});

test('a vanished leader is followed once its lease was seen unchanged for its duration', async () => {
  const spec = { holderIdentity: 'gone', leaseDurationSeconds: 20, renewTime: '2001-01-01T00:00:00.000000Z' };
  store.put({ metadata: { namespace: 'ns', name: 'l' }, spec } as Lease);
  const a = candidate('a');
  await after(19);
  expect(a.seen.leading).toBe(false);
  await after(4);
  expect(a.seen.leading).toBe(true);
  a.stop.abort();
  await a.done;
});

test('a leader that cannot renew gives up before others may begin', async () => {
  const a = candidate('a');
  await after(5);
  store.failure = new Error('down');
  await after(7);
  expect(a.seen.leading).toBe(true);
  await after(5);
  expect(a.seen.leading).toBe(false);
  expect(a.seen.result).toBeInstanceOf(LeadershipLostError);
  expect(String(a.seen.result)).toContain('could not be renewed for 10000 ms');
});

test('a short outage costs nothing', async () => {
  const a = candidate('a');
  await after(5);
  store.failure = new Error('down');
  await after(6);
  store.failure = undefined;
  await after(60);
  expect(a.seen.leading).toBe(true);
  a.stop.abort();
  await a.done;
  expect(store.spec?.holderIdentity).toBe('');
});

test('a lease that someone else took is never taken back while leading', async () => {
  const a = candidate('a');
  await after(5);
  const current = store.objects.get('ns/l') as Lease;
  store.put({ ...current, spec: { ...current.spec, holderIdentity: 'thief', leaseDurationSeconds: 0 } });
  await after(3);
  expect(a.seen.leading).toBe(false);
  expect(String(a.seen.result)).toContain('was taken by "thief"');
  expect(store.spec?.holderIdentity).toBe('thief');
});

test('a lease is released even if the response to its last renewal was lost', async () => {
  let isDeaf = false;
  const client: LeaseOptions['client'] = {
    get: (type, key) => store.get(type, key),
    create: (type, object) => store.create(type, object),
    replace: async (type, object, options) => {
      const replaced = await store.replace(type, object);
      if (!isDeaf) {
        return replaced;
      }
      return new Promise((_, reject) =>
        options?.signal?.addEventListener('abort', () => reject(options.signal?.reason)),
      );
    },
  };
  const a = candidate('a', { client });
  await after(1);
  const before = store.objects.get('ns/l')?.metadata.resourceVersion;
  isDeaf = true;
  await after(3);
  expect(store.objects.get('ns/l')?.metadata.resourceVersion).not.toBe(before);
  isDeaf = false;
  a.stop.abort();
  await a.done;
  expect([a.seen.result, store.spec?.holderIdentity]).toEqual(['ended', '']);
});

test('work that ends or fails by itself releases the lease', async () => {
  const a = candidate('a', { lead: async () => undefined });
  await a.done;
  expect(a.seen.result).toBe('ended');
  expect(store.spec?.holderIdentity).toBe('');
  const b = candidate('b', { lead: () => Promise.reject(new Error('broken')) });
  await b.done;
  expect(b.seen.result).toMatchObject({ message: 'broken' });
  expect(store.spec?.holderIdentity).toBe('');
});

test('work that throws the reason of its end has ended well', async () => {
  const lead = (signal: AbortSignal) =>
    new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const a = candidate('a', { lead });
  await after(1);
  a.stop.abort();
  await a.done;
  expect(a.seen.result).toBe('ended');
});

test('the lease is kept while the work winds down', async () => {
  const end = Promise.withResolvers<void>();
  const a = candidate('a', { lead: () => end.promise });
  const b = candidate('b');
  await after(1);
  a.stop.abort();
  await after(60);
  expect(store.spec?.holderIdentity).toBe('a');
  expect(b.seen.leading).toBe(false);
  end.resolve();
  await after(3);
  expect(b.seen.leading).toBe(true);
  b.stop.abort();
  await b.done;
});

test('a lease says who had it last, and a candidate may leave it to that one', async () => {
  const a = candidate('a', { annotations: { 'example.com/last': 'a' } });
  await after(5);
  a.stop.abort();
  await a.done;
  const b = candidate('b', { mayTake: ({ metadata }) => metadata.annotations?.['example.com/last'] !== 'a' });
  await after(60);
  expect([b.seen.leading, store.spec?.holderIdentity]).toEqual([false, '']);
  b.stop.abort();
  await b.done;
  const c = candidate('c', { annotations: { 'example.com/last': 'c' } });
  await after(5);
  expect(c.seen.leading).toBe(true);
  expect(store.objects.get('ns/l')?.metadata.annotations).toEqual({ 'example.com/last': 'c' });
  c.stop.abort();
  await c.done;
});

test('times that cannot work are refused', async () => {
  const a = candidate('a', { renewDeadlineMs: 15_000 });
  await a.done;
  expect(String(a.seen.result)).toContain('leaseDuration > renewDeadline > 1.2 × retryPeriod');
});

test('a leader that was frozen for a while writes nothing more, although it has not noticed yet', async () => {
  let fence: (() => void) | undefined;
  const first = candidate('a', {
    lead: async (signal, check) => {
      fence = check;
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    },
  });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(fence).toBeDefined();
  fence?.();
  // The clock goes on while nothing of the process runs.
  const frozen = performance.now() + 60_000;
  vi.spyOn(performance, 'now').mockImplementation(() => frozen);
  expect(() => fence?.()).toThrow(LeadershipLostError);
  vi.mocked(performance.now).mockRestore();
  fence?.();
  first.stop.abort();
  await first.done;
});
