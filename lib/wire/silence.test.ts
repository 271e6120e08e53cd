import { EventEmitter } from 'node:events';
import type { Http2Session } from 'node:http2';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { clientKeepalive } from './client/client-keepalive.ts';
import { type KeepaliveTiming, watchSession } from './grpc/keepalive.ts';

// How soon a silent connection is noticed, on a clock of its own.

const second = 1_000;

/** A connection whose peer answers pings as long as it is `alive`. */
class Connection extends EventEmitter {
  readonly socket = { bytesRead: 1, bytesWritten: 1 };
  destroyed = false;
  readonly closed = false;
  isAlive = true;
  pings = 0;

  ping(answered: () => void): void {
    this.pings++;
    this.socket.bytesWritten += 17;
    if (!this.isAlive) {
      return;
    }
    this.socket.bytesRead += 17;
    answered();
  }

  destroy(): void {
    this.destroyed = true;
  }
}

const onStop: (() => void)[] = [];
let connection: Connection;

function watch(timing: KeepaliveTiming): void {
  onStop.push(watchSession(connection as unknown as Http2Session, timing, () => undefined));
}

beforeEach(() => {
  vi.useFakeTimers();
  connection = new Connection();
});

afterEach(() => {
  for (const stop of onStop.splice(0)) {
    stop();
  }
  vi.useRealTimers();
});

/** Milliseconds until the connection is given up. */
async function givenUpAfter(): Promise<number> {
  const began = performance.now();
  while (!connection.destroyed && performance.now() - began < 60 * second) {
    await vi.advanceTimersByTimeAsync(100);
  }
  return performance.now() - began;
}

describe.each([0, 1, 7_300, 11_900, 14_999])('a peer that falls silent %i ms after a look', (offset) => {
  const timing = { intervalMs: 15 * second, timeoutMs: 10 * second };

  test('is noticed within interval and timeout', async () => {
    watch(timing);
    await vi.advanceTimersByTimeAsync(60 * second + offset);
    connection.socket.bytesRead += 100;
    connection.isAlive = false;
    expect(await givenUpAfter()).toBeLessThanOrEqual(25 * second + 100);
  });

  test('is detected as soon by an agent that a principal like ours has pinged, though it sends nothing', async () => {
    watch(clientKeepalive('grpc', { intervalMs: 0, factor: 1 }));
    await vi.advanceTimersByTimeAsync(10 * second + offset);
    connection.emit('ping');
    connection.socket.bytesRead += 17;
    connection.isAlive = false;
    expect(await givenUpAfter()).toBeLessThanOrEqual(30 * second + 100);
  });
});

test('a silent agent does not ping a principal that never pinged it', async () => {
  watch(clientKeepalive('grpc', { intervalMs: 0, factor: 1 }));
  await vi.advanceTimersByTimeAsync(20 * second);
  const { pings } = connection;
  await vi.advanceTimersByTimeAsync(3_600 * second);
  expect(connection.pings).toBe(pings);
});

test('a peer that answers stays, and is not pinged more often than the interval allows', async () => {
  watch({ intervalMs: 15 * second, timeoutMs: 10 * second });
  await vi.advanceTimersByTimeAsync(600 * second);
  expect(connection.destroyed).toBe(false);
  expect(connection.pings).toBeGreaterThan(30);
  expect(connection.pings).toBeLessThanOrEqual(40);
});

test('any data received after a ping counts as its answer', async () => {
  watch({ intervalMs: 15 * second, timeoutMs: 10 * second });
  connection.isAlive = false;
  await vi.advanceTimersByTimeAsync(15 * second);
  expect(connection.pings).toBe(1);
  await vi.advanceTimersByTimeAsync(5 * second);
  connection.socket.bytesRead += 100;
  await vi.advanceTimersByTimeAsync(8 * second);
  expect(connection.destroyed).toBe(false);
  expect(await givenUpAfter()).toBeLessThanOrEqual(25 * second);
});
