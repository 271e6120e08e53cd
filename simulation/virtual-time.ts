import type { Clock } from '../lib/sync/index.ts';

interface Timer {
  readonly at: number;
  readonly seq: number;
  readonly run: () => void;
  readonly owner: object | undefined;
  cancelled: boolean;
}

/** Promise continuations are given this many turns after each event; more than any chain of awaits in the code has. */
const turns = 24;

const epoch = Date.UTC(2026, 0, 1);

/** A clock whose time only passes when there is nothing else to do, and always in the same order. */
export class VirtualTime implements Clock {
  readonly #heap: Timer[] = [];
  #now = 0;
  #seq = 0;
  #events = 0;
  #running: object | undefined;
  #isOver = false;

  /** Whose event is running, with all that follows at once from it. */
  get running(): object | undefined {
    return this.#running;
  }

  /** Nothing happens any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Events run so far. */
  get events(): number {
    return this.#events;
  }

  now(): number {
    return this.#now;
  }

  /** The time as an API server writes it. */
  timestamp(): string {
    return new Date(epoch + this.#now).toISOString();
  }

  /** @param owner whose event it is */
  after(ms: number, run: () => void, owner?: object): () => void {
    if (this.#isOver) {
      return () => undefined;
    }
    const timer: Timer = { at: this.#now + Math.max(0, ms), seq: this.#seq++, run, owner, cancelled: false };
    push(this.#heap, timer);
    return () => {
      timer.cancelled = true;
    };
  }

  /** Runs what is due until the given time, or until nothing is left. False when that took more than `maxEvents`. */
  async runUntil(time: number, maxEvents: number): Promise<boolean> {
    for (let count = 0; count < maxEvents; ) {
      const next = this.#heap[0];
      if (next === undefined || next.at > time) {
        this.#now = Number.isFinite(time) ? Math.max(this.#now, time) : this.#now;
        return true;
      }
      pop(this.#heap);
      if (next.cancelled) {
        continue;
      }
      count++;
      this.#events++;
      this.#now = next.at;
      this.#running = next.owner;
      next.run();
      for (let turn = 0; turn < turns; turn++) {
        await null;
      }
    }
    return false;
  }

  /** The end: what is due later never comes. Resolves when what goes on at once has gone on. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.#heap.length = 0;
    for (let turn = 0; turn < turns; turn++) {
      await null;
    }
  }
}

function before(a: Timer, b: Timer): boolean {
  return a.at === b.at ? a.seq < b.seq : a.at < b.at;
}

function push(heap: Timer[], timer: Timer): void {
  let i = heap.push(timer) - 1;
  while (i > 0) {
    const up = (i - 1) >> 1;
    const parent = heap[up] as Timer;
    if (!before(timer, parent)) {
      break;
    }
    heap[i] = parent;
    i = up;
  }
  heap[i] = timer;
}

function pop(heap: Timer[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) {
    return;
  }
  let i = 0;
  for (;;) {
    let down = 2 * i + 1;
    if (down >= heap.length) {
      break;
    }
    if (down + 1 < heap.length && before(heap[down + 1] as Timer, heap[down] as Timer)) {
      down++;
    }
    if (!before(heap[down] as Timer, last)) {
      break;
    }
    heap[i] = heap[down] as Timer;
    i = down;
  }
  heap[i] = last;
}
