import { expect, test } from 'vitest';
import { OutboxFixture as Fixture } from './testing/outbox-fixture.ts';

/** A peer that does one thing after the other and takes its time; what it was told twice it does once. */
class SlowPeer {
  readonly times = new Map<string, number>();
  mostWaiting = 0;
  readonly #waiting: string[] = [];
  readonly #f: Fixture;
  #isBusy = false;

  constructor(f: Fixture, workMs: number) {
    this.#f = f;
    f.outbox.connected({
      send: ({ eventId }) => {
        this.times.set(eventId, (this.times.get(eventId) ?? 0) + 1);
        if (this.times.get(eventId) === 1) {
          this.#waiting.push(eventId);
          this.mostWaiting = Math.max(this.mostWaiting, this.#waiting.length);
          this.#work(workMs);
        }
        return true;
      },
    });
  }

  /** Begins to count anew. */
  settle(): void {
    this.mostWaiting = this.#waiting.length;
  }

  #work(workMs: number): void {
    const next = this.#waiting[0];
    if (this.#isBusy || next === undefined) {
      return;
    }
    this.#isBusy = true;
    this.#f.time.after(workMs, () => {
      this.#isBusy = false;
      this.#waiting.shift();
      this.#f.ack(next);
      this.#work(workMs);
    });
  }
}

test('as much is in flight as the peer works off in about a second, and nothing is told twice for being late', async () => {
  const f = new Fixture();
  for (let index = 0; index < 400; index++) {
    f.set(`app-${index}`, 'u', 1);
  }
  const peer = new SlowPeer(f, 400);
  await f.time.runUntil(40_000, 10_000);
  peer.settle();
  await f.time.runUntil(160_000, 10_000);
  expect(f.outbox.pending, 'the peer always had something to do').toBe(0);
  expect([...peer.times.values()].filter((times) => times > 1)).toEqual([]);
  expect(peer.mostWaiting).toBeLessThanOrEqual(6);
  expect(peer.mostWaiting).toBeGreaterThanOrEqual(2);
});

test('what waits because the peer is busy is sent as it is then', async () => {
  const f = new Fixture();
  const peer = new SlowPeer(f, 1_500);
  for (let version = 1; version <= 200; version++) {
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      f.set(name, 'u', version);
    }
    await f.time.runUntil(version * 500, 1_000);
  }
  peer.settle();
  const sent = peer.times.size;
  await f.time.runUntil(110_000, 1_000);
  expect(peer.mostWaiting, 'the others can still become something newer').toBeLessThanOrEqual(3);
  expect(sent, 'of 1,200 states').toBeLessThan(80);
});

test('a fast peer soon has as much in flight as the limit says', () => {
  const f = new Fixture({ tuning: { maxInFlight: 64 } });
  f.connect();
  for (let index = 0; index < 400; index++) {
    f.set(`app-${index}`, 'u', 1);
  }
  expect(f.outbox.inFlight, 'nothing is known of it').toBeLessThan(20);
  for (let index = 0; index < 150; index++) {
    f.ack(`app-${index}_u_1`);
  }
  expect(f.outbox.inFlight).toBe(64);
});

test('a peer that answers nothing is not told ever more, and everything in the end', async () => {
  const f = new Fixture();
  f.connect();
  for (let index = 0; index < 100; index++) {
    f.set(`app-${index}`, 'u', 1);
  }
  const sentIds = () => new Set(f.sent.map(({ eventId }) => eventId)).size;
  await f.time.runUntil(21_000, 1_000);
  expect(sentIds()).toBeLessThan(40);
  await f.time.runUntil(300_000, 10_000);
  expect(sentIds()).toBe(100);
});

test('what later ones have overtaken at the peer is sent again, and takes no place', async () => {
  const f = new Fixture({ tuning: { maxInFlight: 2 } });
  f.connect();
  f.set('stuck', 'u', 1);
  f.set('a', 'u', 1);
  f.ack('a_u_1');
  await f.time.runUntil(2_000, 100);
  f.set('b', 'u', 1);
  f.ack('b_u_1');
  f.take();
  f.set('c', 'u', 1);
  f.set('d', 'u', 1);
  expect(f.take()).toEqual(['create c_u_1', 'create d_u_1']);
  f.ack('c_u_1');
  f.ack('d_u_1');
  await f.time.runUntil(5_000, 100);
  expect(f.take()).toEqual(['create stuck_u_1']);
});

test('a peer that takes long for each answer is asked again later', async () => {
  const f = new Fixture();
  const peer = new SlowPeer(f, 8_000);
  for (let version = 1; version <= 6; version++) {
    f.set('shop', 'u', version);
    await f.time.runUntil(f.time.now() + 8_000, 1_000);
  }
  expect([...peer.times.values()]).toEqual([2, 1, 1, 1, 1, 1]);
});

test('a peer that acknowledges nothing more has forgotten, also when it was busy before', async () => {
  const f = new Fixture();
  f.connect();
  for (const name of ['a', 'b', 'c']) {
    f.set(name, 'u', 1);
  }
  f.take();
  await f.time.runUntil(4_000, 100);
  f.ack('a_u_1');
  await f.time.runUntil(6_000, 100);
  expect(f.take(), 'it may be working on them').toEqual([]);
  await f.time.runUntil(20_000, 100);
  expect(f.take()).toEqual(['create b_u_1', 'create c_u_1']);
});
