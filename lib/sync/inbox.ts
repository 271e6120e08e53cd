import type { Clock } from './clock.ts';
import { type RetryDelays, retryDelay } from './retry-delay.ts';
import type { Runtime, Tuning } from './runtime.ts';

/** `done`: written, or settled so that sending it again would change nothing. `retry`: not possible now. */
export type InboxOutcome = 'done' | 'retry';

/** How an {@link Inbox} works. */
export interface InboxOptions<M> {
  /**
   * Processes the message. It must be safe to repeat. A thrown error counts as `retry` and is reported to `onError`.
   */
  readonly apply: (message: M, signal: AbortSignal) => Promise<InboxOutcome>;
  /** Acknowledges a processed message. Called at most once per received copy. */
  readonly acknowledge: (message: M) => void;
  /** Messages of one lane run one after the other, in the order they came; lanes run side by side. */
  readonly laneOf: (message: M) => string;
  /** Equal for two copies of the same message. */
  readonly idOf: (message: M) => string;
  /** Whether the older of two messages of a lane need not be done when the newer one is. */
  readonly supersedes: (newer: M, older: M) => boolean;
  /**
   * Whether a message must not be done twice although it is safe to repeat: a copy on a later connection is then
   * acknowledged without doing it. Default: none.
   */
  readonly once?: (message: M) => boolean;
  readonly onError?: (error: unknown, message: M, attempt: number) => void;
  readonly runtime: Pick<Runtime, 'clock' | 'random' | 'context'>;
  /** Waiting for a retry does not count as working on a message. */
  readonly tuning?: Tuning | undefined;
  /** How many messages may wait. Further ones are dropped unacknowledged, so that the sender repeats them later. */
  readonly maxQueued?: number;
  /** Whether a message is this side's own, which nobody would repeat: it is never dropped. Default: none. */
  readonly isOwn?: (message: M) => boolean;
  /** How many processed messages are remembered, to acknowledge late copies of them. */
  readonly remembered?: number;
  readonly retry?: RetryDelays;
}

interface Received<M> {
  message: M;
  readonly id: string;
  /** The connection on which it came. */
  connection: number;
}

interface Item<M> extends Received<M> {
  attempt: number;
  /** A copy that came on a later connection while this one was in work: to be done as well. */
  again: M | undefined;
  working: boolean;
  /** Does work in the context in which the message came; undefined: in none. */
  readonly inContext: ReturnType<NonNullable<Runtime['context']>> | undefined;
  /** Superseded messages, acknowledged when this one is done. */
  readonly superseded: Received<M>[];
}

interface Lane<M> {
  readonly name: string;
  /** The first is the one in work or waiting for its retry. */
  readonly items: Item<M>[];
  state: 'ready' | 'working' | 'backing-off';
  cancelRetry: (() => void) | undefined;
}

/** Messages started without a pause for the rest of the program. */
const longestStreak = 1_000;
const defaultRetry: RetryDelays = { baseMs: 100, factor: 2, capMs: 30_000, jitter: 1 };

/**
 * Processes the messages of a peer.
 *
 * Invariants:
 * 1. A message is acknowledged only after `apply` returned `done` for it, or for a newer one that supersedes it.
 * 2. Messages of one lane never overlap and keep their order; lanes do not wait for each other beyond `concurrency`.
 * 3. A copy of a message that is waiting or in work is dropped; a copy of a processed one is acknowledged again. A copy
 *    on a later connection replaces the one that waits, as it arrived with newer context, and is processed although the
 *    former one was, unless that is processed once.
 * 4. Memory is bounded by `maxQueued` and `remembered`, whatever the peer sends; this side's own messages come on top.
 * 5. The rest of the program runs in between, however many messages wait.
 * 6. A failed message is retried with growing delays; a newer state supersedes it and keeps the delay.
 */
export class Inbox<M> {
  readonly #options: InboxOptions<M>;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #concurrency: number;
  readonly #maxQueued: number;
  readonly #remembered: number;
  readonly #retry: RetryDelays;
  readonly #signal: AbortSignal;

  readonly #lanes = new Map<string, Lane<M>>();
  readonly #ready = new Set<Lane<M>>();
  /** Messages that wait or are in work, superseded ones included, by id. */
  readonly #known = new Map<string, Item<M>>();
  /** Ids that were processed, oldest first. */
  readonly #done = new Set<string>();
  readonly #doneOnce = new Set<string>();
  #connection = 0;
  #working = 0;
  #backingOff = 0;
  /** Pieces of work begun since the last pause. */
  #streak = 0;
  #evaluating = false;

  /** @param signal ends all work: nothing is started or acknowledged after it */
  constructor(options: InboxOptions<M>, signal: AbortSignal) {
    this.#options = options;
    this.#clock = options.runtime.clock;
    this.#random = options.runtime.random;
    this.#concurrency = options.tuning?.concurrency ?? 64;
    this.#maxQueued = options.maxQueued ?? 20_000;
    this.#remembered = options.remembered ?? 4_096;
    this.#retry = options.retry ?? defaultRetry;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#stop(), { once: true });
  }

  /** Messages that are not processed yet. */
  get queued(): number {
    return this.#known.size;
  }

  /** Messages in work. */
  get working(): number {
    return this.#working;
  }

  /** Lanes whose first message failed and waits to be tried again. */
  get retrying(): number {
    return this.#backingOff;
  }

  /** Whether a message of this lane waits, is in work, or is to be tried again. */
  isBusy(lane: string): boolean {
    return (this.#lanes.get(lane)?.items.length ?? 0) > 0;
  }

  /**
   * A new connection: the sender has a reason to repeat a message, so ids of an earlier connection do not count as
   * processed, except those of messages that are processed once.
   */
  reconnected(): void {
    this.#connection++;
    this.#done.clear();
  }

  /** Takes a message. False when it was dropped because too much waits. */
  receive(message: M): boolean {
    if (this.#signal.aborted) {
      return false;
    }
    const id = this.#options.idOf(message);
    if (this.#done.has(id) || this.#doneOnce.has(id)) {
      this.#options.acknowledge(message);
      return true;
    }
    const known = this.#known.get(id);
    if (known !== undefined) {
      this.#refresh(known, id, message);
      return true;
    }
    if (this.#known.size >= this.#maxQueued && this.#options.isOwn?.(message) !== true) {
      return false;
    }
    const item = {
      message,
      id,
      attempt: 0,
      connection: this.#connection,
      again: undefined,
      working: false,
      inContext: this.#options.runtime.context?.(),
      superseded: [],
    };
    this.#known.set(id, item);
    this.#enqueue(item);
    this.#evaluate();
    return true;
  }

  #refresh(item: Item<M>, id: string, message: M): void {
    if (item.id !== id || item.connection === this.#connection || this.#options.once?.(message) === true) {
      return;
    }
    item.connection = this.#connection;
    if (item.working) {
      item.again = message;
    } else {
      item.message = message;
    }
  }

  #enqueue(item: Item<M>): void {
    const name = this.#options.laneOf(item.message);
    let lane = this.#lanes.get(name);
    if (lane === undefined) {
      lane = { name, items: [], state: 'ready', cancelRetry: undefined };
      this.#lanes.set(name, lane);
    }
    const untouchable = lane.state === 'working' ? 1 : 0;
    while (lane.items.length > untouchable) {
      const last = lane.items.at(-1);
      if (last === undefined || !this.#options.supersedes(item.message, last.message)) {
        break;
      }
      lane.items.pop();
      item.superseded.push(...last.superseded, received(last));
      // The wait before the next attempt stays: only the message to try is another.
      item.attempt = Math.max(item.attempt, last.attempt);
    }
    lane.items.push(item);
    if (lane.state === 'ready') {
      this.#ready.add(lane);
    }
  }

  #evaluate(): void {
    if (this.#evaluating) {
      return;
    }
    this.#evaluating = true;
    for (const lane of this.#ready) {
      if (this.#working >= this.#concurrency || this.#signal.aborted || this.#mustPause()) {
        break;
      }
      this.#ready.delete(lane);
      const item = lane.items[0];
      if (item === undefined) {
        this.#lanes.delete(lane.name);
      } else {
        void this.#work(lane, item);
      }
    }
    this.#evaluating = false;
  }

  /** Messages that complete without waiting and cause further ones would otherwise starve the rest of the program. */
  #mustPause(): boolean {
    this.#streak++;
    if (this.#streak < longestStreak) {
      return false;
    }
    if (this.#streak === longestStreak) {
      this.#clock.after(0, () => {
        this.#streak = 0;
        this.#evaluate();
      });
    }
    return true;
  }

  async #work(lane: Lane<M>, item: Item<M>): Promise<void> {
    lane.state = 'working';
    item.working = true;
    this.#working += 1;
    item.attempt += 1;
    let outcome: InboxOutcome = 'retry';
    try {
      const work = () => this.#options.apply(item.message, this.#signal);
      outcome = await (item.inContext?.(work) ?? work());
    } catch (error) {
      this.#options.onError?.(error, item.message, item.attempt);
    }
    this.#working -= 1;
    item.working = false;
    if (this.#signal.aborted) {
      return;
    }
    if (item.again !== undefined) {
      item.message = item.again;
      item.again = undefined;
      lane.state = 'ready';
      this.#ready.add(lane);
    } else if (outcome === 'done') {
      this.#finish(lane, item);
    } else {
      this.#backOff(lane, item);
    }
    this.#evaluate();
  }

  #finish(lane: Lane<M>, item: Item<M>): void {
    lane.items.shift();
    lane.state = 'ready';
    this.#ready.add(lane);
    for (const { id, message, connection } of [...item.superseded, item]) {
      this.#known.delete(id);
      if (this.#options.once?.(message) === true) {
        remember(this.#doneOnce, id, this.#remembered);
      } else if (connection === this.#connection) {
        // Else a copy on this connection may say something else: a sender that was restarted has the same ids.
        remember(this.#done, id, this.#remembered);
      }
      this.#options.acknowledge(message);
    }
  }

  #backOff(lane: Lane<M>, item: Item<M>): void {
    lane.state = 'backing-off';
    this.#backingOff += 1;
    const newest = lane.items[1];
    if (newest !== undefined && this.#options.supersedes(newest.message, item.message)) {
      lane.items.shift();
      newest.superseded.push(...item.superseded, received(item));
      newest.attempt = item.attempt;
    }
    lane.cancelRetry = this.#clock.after(retryDelay(this.#retry, item.attempt, this.#random()), () => {
      lane.cancelRetry = undefined;
      lane.state = 'ready';
      this.#backingOff -= 1;
      this.#ready.add(lane);
      this.#evaluate();
    });
  }

  #stop(): void {
    for (const lane of this.#lanes.values()) {
      lane.cancelRetry?.();
    }
    this.#lanes.clear();
    this.#ready.clear();
    this.#known.clear();
  }
}

/** Without what it has superseded itself. */
function received<M>({ message, id, connection }: Item<M>): Received<M> {
  return { message, id, connection };
}

function remember(ids: Set<string>, id: string, most: number): void {
  ids.add(id);
  if (ids.size > most) {
    for (const oldest of ids) {
      ids.delete(oldest);
      break;
    }
  }
}
