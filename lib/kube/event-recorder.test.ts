import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Logger } from '../base/index.ts';
import { ApiError, ConnectionError } from './errors.ts';
import { EventRecorder } from './event-recorder.ts';
import type { KubeEvent } from './resources.ts';
import type { KubeObject, ObjectKey, ResourceType } from './types.ts';

class Sink {
  readonly created: KubeEvent[] = [];
  readonly patches: unknown[] = [];
  failures: Error[] = [];
  gate: Promise<void> | undefined;

  async create<T extends KubeObject>(_type: ResourceType<T>, object: T): Promise<T> {
    const failure = this.failures.shift();
    if (failure) {
      throw failure;
    }
    await this.gate;
    this.created.push(object as KubeObject as KubeEvent);
    return object;
  }

  async mergePatch<T extends KubeObject>(_type: ResourceType<T>, key: ObjectKey, patch: object): Promise<T> {
    const failure = this.failures.shift();
    if (failure) {
      throw failure;
    }
    this.patches.push(patch);
    return { metadata: key } as KubeObject as T;
  }
}

let sink: Sink;
let recorder: EventRecorder;
const about = { apiVersion: 'v1', kind: 'Thing', metadata: { namespace: 'ns', name: 'a', uid: 'u' } };

beforeEach(() => {
  vi.useFakeTimers();
  sink = new Sink();
  recorder = new EventRecorder({ client: sink, component: 'c', instance: 'i', capacity: 3 });
});
afterEach(async () => {
  await recorder.close();
  vi.useRealTimers();
});

const after = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1000);

test('repetitions are written as one series, at most once per interval', async () => {
  recorder.normal(about, 'Synced', 'all is well');
  await after(0);
  for (let i = 0; i < 100; i++) {
    recorder.normal(about, 'Synced', 'all is well');
  }
  await after(29);
  expect(sink.patches).toHaveLength(0);
  await after(2);
  expect(sink.created).toHaveLength(1);
  expect(sink.patches).toMatchObject([{ series: { count: 101 } }]);
});

test('a repetition after a pause is a new occurrence: it is logged and written at once', async () => {
  const lines: string[] = [];
  const log = (_: object, text: string) => lines.push(text);
  const echo = { info: log, warn: log } as unknown as Logger;
  const logged = new EventRecorder({ client: sink, component: 'c', instance: 'i', echo });
  logged.normal(about, 'ClusterEnrolled', 'cluster a is enrolled');
  await after(60);
  for (let i = 0; i < 100; i++) {
    logged.normal(about, 'ClusterEnrolled', 'cluster a is enrolled');
  }
  await after(1);
  expect(sink.created).toHaveLength(1);
  expect(sink.patches).toMatchObject([{ series: { count: 101 } }]);
  expect(lines).toHaveLength(2);
  await logged.close();
});

test('a repetition while the event is being written is not lost', async () => {
  const written = Promise.withResolvers<void>();
  sink.gate = written.promise;
  recorder.normal(about, 'Synced', 'one');
  await after(0);
  recorder.normal(about, 'Synced', 'one');
  written.resolve();
  await after(31);
  expect(sink.created).toHaveLength(1);
  expect(sink.patches).toMatchObject([{ series: { count: 2 } }]);
});

test('what differs is an event of its own; cluster-scoped objects have theirs in default', async () => {
  recorder.normal(about, 'Synced', 'one');
  recorder.warning(about, 'Synced', 'one');
  recorder.warning({ kind: 'Node', metadata: { name: 'n' } }, 'Lost', 'x'.repeat(5000));
  await after(0);
  expect(sink.created.map((e) => [e.type, e.metadata.namespace])).toEqual([
    ['Normal', 'ns'],
    ['Warning', 'ns'],
    ['Warning', 'default'],
  ]);
  expect(Buffer.byteLength(sink.created[2]?.note ?? '')).toBe(1024);
});

test('after minutes of quiet a repetition is a new event', async () => {
  recorder.normal(about, 'Synced', 'one');
  await after(400);
  recorder.normal(about, 'Synced', 'one');
  await after(1);
  expect(sink.created).toHaveLength(2);
});

test('an event that the server has deleted is created again', async () => {
  recorder.normal(about, 'Synced', 'one');
  await after(0);
  sink.failures = [new ApiError({ status: 404, message: 'gone' })];
  recorder.normal(about, 'Synced', 'one');
  await after(31);
  expect(sink.created).toHaveLength(2);
  expect(sink.created[1]?.series?.count).toBe(2);
});

test('transient errors are retried, refusals are dropped, and nothing is thrown', async () => {
  sink.failures = [new ConnectionError('down', { code: 'X', sent: false })];
  recorder.normal(about, 'Synced', 'one');
  await after(5);
  expect(sink.created).toHaveLength(1);
  sink.failures = [new ApiError({ status: 403, message: 'no' })];
  recorder.normal(about, 'Other', 'one');
  await after(60);
  expect(sink.created).toHaveLength(1);
  expect(recorder.dropped).toBe(1);
});

test('the number of events that wait is bounded', async () => {
  sink.failures = Array.from({ length: 1000 }, () => new ConnectionError('down', { code: 'X', sent: false }));
  for (let i = 0; i < 100; i++) {
    recorder.normal(about, `Reason${i}`, 'one');
  }
  expect(recorder.dropped).toBe(97);
});

test('an Event about an object with a long name has a valid name', async () => {
  const long = new EventRecorder({ client: sink, component: 'c', instance: 'i' });
  const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
  for (let length = 220; length < 245; length++) {
    const name = `${'a'.repeat(length)}-${'b'.repeat(252 - length)}`;
    long.warning({ ...about, metadata: { ...about.metadata, name, uid: String(length) } }, 'X', 'x');
  }
  await after(1);
  await long.close();
  const names = sink.created.map(({ metadata }) => metadata.name);
  expect(names).toHaveLength(25);
  expect(names.filter((name) => !subdomain.test(name) || name.length > 253)).toEqual([]);
});
