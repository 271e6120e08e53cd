import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, test } from 'vitest';
import { VirtualTime } from '../../simulation/virtual-time.ts';
import { Inbox, type InboxOptions, type InboxOutcome, type Runtime, systemClock } from './index.ts';

interface Message {
  readonly id: string;
  readonly lane: string;
  readonly kind: 'state' | 'once';
}

const state = (id: string, lane = 'a'): Message => ({ id, lane, kind: 'state' });
const once = (id: string, lane = 'a'): Message => ({ id, lane, kind: 'once' });

/** An inbox whose work ends when the test says so. */
class Fixture {
  readonly time = new VirtualTime();
  readonly acknowledged: string[] = [];
  readonly started: string[] = [];
  readonly errors: unknown[] = [];
  readonly stop = new AbortController();
  readonly inbox: Inbox<Message>;
  readonly #ends = new Map<string, (outcome: InboxOutcome | Error) => void>();

  constructor({ context, ...options }: Partial<InboxOptions<Message>> & Partial<Pick<Runtime, 'context'>> = {}) {
    this.inbox = new Inbox<Message>(
      {
        apply: ({ id }) =>
          new Promise((resolve, reject) => {
            this.started.push(id);
            this.#ends.set(id, (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome)));
          }),
        acknowledge: ({ id }) => this.acknowledged.push(id),
        laneOf: ({ lane }) => lane,
        idOf: ({ id }) => id,
        supersedes: (newer, older) => newer.kind === 'state' && older.kind === 'state',
        once: ({ kind }) => kind === 'once',
        onError: (error) => this.errors.push(error),
        runtime: { clock: this.time, random: () => 0, context },
        ...options,
      },
      this.stop.signal,
    );
  }

  async end(id: string, outcome: InboxOutcome | Error = 'done'): Promise<void> {
    this.#ends.get(id)?.(outcome);
    await this.time.runUntil(this.time.now(), 10);
    for (let turn = 0; turn < 8; turn++) {
      await null;
    }
  }
}

test('acknowledges when the work is done, not before', async () => {
  const f = new Fixture();
  f.inbox.receive(state('1'));
  expect(f.acknowledged).toEqual([]);
  await f.end('1');
  expect(f.acknowledged).toEqual(['1']);
  expect(f.inbox.queued).toBe(0);
});

test('drops copies of what waits or is in work, acknowledges copies of what is done', async () => {
  const f = new Fixture();
  f.inbox.receive(state('1'));
  f.inbox.receive(state('1'));
  await f.end('1');
  expect(f.started).toEqual(['1']);
  expect(f.acknowledged).toEqual(['1']);
  f.inbox.receive(state('1'));
  expect(f.started).toEqual(['1']);
  expect(f.acknowledged).toEqual(['1', '1']);
});

test('on a new connection a state is done again, a one-shot message is not', async () => {
  const f = new Fixture();
  f.inbox.receive(state('1'));
  await f.end('1');
  f.inbox.receive(once('2'));
  await f.end('2');
  f.inbox.reconnected();
  f.inbox.receive(once('2'));
  f.inbox.receive(state('1'));
  expect(f.started).toEqual(['1', '2', '1']);
  expect(f.acknowledged).toEqual(['1', '2', '2']);
});

test('what came on an earlier connection is done again when the later one brings it, whenever it was done', async () => {
  const f = new Fixture();
  f.inbox.receive(state('1'));
  f.inbox.receive(once('2', 'b'));
  f.inbox.reconnected();
  await f.end('1');
  await f.end('2');
  f.inbox.receive(state('1'));
  f.inbox.receive(once('2', 'b'));
  expect(f.started).toEqual(['1', '2', '1']);
  await f.end('1');
  f.inbox.receive(state('1'));
  expect(f.started).toEqual(['1', '2', '1']);
  expect(f.acknowledged).toEqual(['1', '2', '2', '1', '1']);
});

test('one lane in order, lanes side by side, not more than allowed', async () => {
  const f = new Fixture({ tuning: { concurrency: 2 } });
  for (const message of [once('a1'), once('a2'), once('b1', 'b'), once('c1', 'c')]) {
    f.inbox.receive(message);
  }
  expect(f.started).toEqual(['a1', 'b1']);
  await f.end('b1');
  expect(f.started).toEqual(['a1', 'b1', 'c1']);
  await f.end('a1');
  expect(f.started).toEqual(['a1', 'b1', 'c1', 'a2']);
});

test('a newer state takes the place of older ones that wait; they are acknowledged with it', async () => {
  const f = new Fixture();
  for (const id of ['1', '2', '3', '4']) {
    f.inbox.receive(state(id));
  }
  await f.end('1');
  expect(f.started).toEqual(['1', '4']);
  expect(f.acknowledged).toEqual(['1']);
  await f.end('4');
  expect(f.acknowledged).toEqual(['1', '2', '3', '4']);
});

test('a state does not overtake a one-shot message', async () => {
  const f = new Fixture();
  for (const message of [state('1'), once('2'), state('3')]) {
    f.inbox.receive(message);
  }
  await f.end('1');
  await f.end('2');
  await f.end('3');
  expect(f.started).toEqual(['1', '2', '3']);
});

test('what failed is tried again later, unacknowledged, and blocks no other lane', async () => {
  const f = new Fixture({ tuning: { concurrency: 1 } });
  f.inbox.receive(state('1'));
  await f.end('1', new Error('no'));
  expect(f.inbox.retrying).toBe(1);
  expect(f.errors).toHaveLength(1);
  f.inbox.receive(once('2', 'b'));
  expect(f.started).toEqual(['1', '2']);
  await f.end('2');
  await f.time.runUntil(100, 10);
  expect(f.started).toEqual(['1', '2', '1']);
  await f.end('1');
  expect(f.acknowledged).toEqual(['2', '1']);
  expect(f.inbox.retrying).toBe(0);
});

test('a newer state takes the place of a failed one, at its time', async () => {
  const f = new Fixture();
  f.inbox.receive(state('1'));
  await f.end('1', 'retry');
  f.inbox.receive(state('2'));
  expect(f.started).toEqual(['1']);
  await f.time.runUntil(100, 10);
  expect(f.started).toEqual(['1', '2']);
  await f.end('2');
  expect(f.acknowledged).toEqual(['1', '2']);
});

test('a state that came while the older one was failing takes its place too', async () => {
  const f = new Fixture();
  f.inbox.receive(state('1'));
  f.inbox.receive(state('2'));
  await f.end('1', 'retry');
  await f.time.runUntil(100, 10);
  expect(f.started).toEqual(['1', '2']);
});

test('waits ever longer between attempts', async () => {
  const f = new Fixture({ retry: { baseMs: 10, factor: 2, capMs: 40, jitter: 0 } });
  f.inbox.receive(state('1'));
  const waits: number[] = [];
  for (let attempt = 0; attempt < 4; attempt++) {
    const before = f.started.length;
    const from = f.time.now();
    await f.end('1', 'retry');
    while (f.started.length === before) {
      await f.time.runUntil(f.time.now() + 1, 10);
    }
    waits.push(f.time.now() - from);
  }
  expect(waits).toEqual([10, 20, 40, 40]);
});

test('memory is bounded: too much is dropped unacknowledged, old ids are forgotten', async () => {
  const f = new Fixture({ maxQueued: 2, remembered: 1 });
  expect(f.inbox.receive(once('1'))).toBe(true);
  expect(f.inbox.receive(once('2'))).toBe(true);
  expect(f.inbox.receive(once('3'))).toBe(false);
  await f.end('1');
  await f.end('2');
  f.inbox.receive(once('1'));
  expect(f.started).toEqual(['1', '2', '1']);
  expect(f.acknowledged).toEqual(['1', '2']);
});

test('what this side itself has to do is never dropped', async () => {
  const f = new Fixture({ maxQueued: 1, isOwn: ({ lane }) => lane === 'own' });
  f.inbox.receive(once('1'));
  expect(f.inbox.receive(once('2'))).toBe(false);
  expect(f.inbox.receive(once('3', 'own'))).toBe(true);
  await f.end('3');
  expect(f.acknowledged).toEqual(['3']);
});

test('defect 48: nothing is started or acknowledged after the end', async () => {
  const f = new Fixture();
  f.inbox.receive(state('1'));
  f.stop.abort();
  await f.end('1');
  expect(f.acknowledged).toEqual([]);
  expect(f.inbox.receive(state('2'))).toBe(false);
});

test('work that leads to more work without end lets others have their turn', async () => {
  const stop = new AbortController();
  let done = 0;
  const inbox: Inbox<number> = new Inbox<number>(
    {
      apply: async () => {
        done++;
        if (done < 200_000) {
          inbox.receive(done);
        }
        return 'done';
      },
      acknowledge: () => undefined,
      laneOf: () => 'one',
      idOf: String,
      runtime: { clock: systemClock, random: Math.random },
      supersedes: () => true,
    },
    stop.signal,
  );
  inbox.receive(0);
  await new Promise((resolve) => setTimeout(resolve, 1));
  expect(done).toBeGreaterThan(0);
  expect(done).toBeLessThan(200_000);
  stop.abort();
});

test('work is done in the context in which its message came, if one is kept, also when it had to wait', async () => {
  const storage = new AsyncLocalStorage<string>();
  const found: (string | undefined)[] = [];
  const f = new Fixture({
    apply: async () => {
      found.push(storage.getStore());
      return found.length === 1 ? 'retry' : 'done';
    },
    tuning: { concurrency: 1 },
    context: () => AsyncLocalStorage.snapshot(),
  });
  storage.run('first', () => f.inbox.receive(state('1', 'a')));
  storage.run('second', () => f.inbox.receive(state('2', 'b')));
  await f.end('');
  await f.time.runUntil(60_000, 1_000);
  await f.end('');
  expect(found).toEqual(['first', 'second', 'first']);
});
