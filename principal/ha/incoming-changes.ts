import type { BackoffOptions, Logger } from '../../lib/base/index.ts';
import { type KubeObject, type ObjectKey, WorkQueue } from '../../lib/kube/index.ts';
import type { ReplicatedKind } from './kinds.ts';
import { replicatedKey } from './news.ts';

/** The newest state of an object on the active hub. */
export interface IncomingChange {
  readonly kind: ReplicatedKind;
  readonly ref: ObjectKey;
  /** Undefined when it was deleted there. */
  readonly object: KubeObject | undefined;
  /** It had the label that keeps it out when it was deleted there: one of its name here may be this hub's own. */
  readonly wasKeptOut?: boolean;
  /** Number of its event. */
  readonly sequence: bigint;
}

/** What {@link IncomingChanges} needs. */
export interface IncomingChangesOptions {
  write(change: IncomingChange, signal: AbortSignal): Promise<void>;
  /** All up to this number is done, except for objects that were {@link IncomingChanges.excuse excused}. */
  done(sequence: bigint): void;
  /** Which objects {@link IncomingChanges.refused cannot be written} has changed. */
  refused?(): void;
  /** Whether to stop reading the stream. */
  full(isFull: boolean): void;
  readonly logger: Logger;
}

interface Entry {
  change: IncomingChange;
  /** Number of the oldest event about the object that is not done. */
  since: bigint;
  readonly at: number;
  /** What came while `change` was being written: the newest, and since when. */
  next: Pick<Entry, 'change' | 'since' | 'at'> | undefined;
  isWriting: boolean;
}

/** Above this the stream is not read; below the half of it again. */
const mostWaiting = 2_000;
/** Objects that are held apart because they are refused. What is beyond holds up the others. */
export const mostRefused = 1_000;
/** An object is refused when its write has failed so often in a row. */
const failuresOfRefused = 3;
/** A refused object may take long to fail, and must not take the turns of others. */
const writersOfRefused = 4;
const backoff: BackoffOptions = { initialMs: 200, maxMs: 15_000 };

/**
 * Changes of the active hub that are being written here: of each object the newest, different objects at the same time, until
 * the API server has taken it. A number counts as done when that is so for all up to it. An object that is refused again and again
 * is tried on apart from the others, and holds them up no more once the active hub knows of it.
 */
export class IncomingChanges {
  readonly #entries = new Map<string, Entry>();
  readonly #queue: WorkQueue;
  readonly #refusedQueue: WorkQueue;
  readonly #refused = new Map<string, Pick<IncomingChange, 'kind' | 'ref'>>();
  /** Refused objects that the active hub knows of. */
  #excused: ReadonlySet<string> = new Set();
  readonly #options: IncomingChangesOptions;
  #isFull = false;
  #last = 0n;

  constructor(options: IncomingChangesOptions) {
    this.#options = options;
    const common = {
      backoff,
      onFailure: (key: string, failures: number, error: unknown) => this.#failed(key, failures, error),
    };
    this.#queue = new WorkQueue({
      ...common,
      name: 'replication',
      concurrency: 16,
      handler: async (key, signal) => {
        if (this.#refused.has(key)) {
          this.#refusedQueue.add(key);
        } else {
          await this.#write(key, signal);
        }
      },
    });
    this.#refusedQueue = new WorkQueue({
      ...common,
      name: 'refused-replication',
      concurrency: writersOfRefused,
      handler: (key, signal) => this.#write(key, signal),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#queue.run(signal), this.#refusedQueue.run(signal)]);
  }

  /** Objects that are not as on the active hub yet. */
  get lag(): number {
    return this.#entries.size;
  }

  /** Those of them that hold up the number that is done. */
  get holdingUp(): number {
    let count = 0;
    for (const key of this.#entries.keys()) {
      count += this.#excused.has(key) ? 0 : 1;
    }
    return count;
  }

  /** Those that cannot be written, by {@link replicatedKey}; at most {@link mostRefused}. */
  get refused(): ReadonlyMap<string, Pick<IncomingChange, 'kind' | 'ref'>> {
    return this.#refused;
  }

  /** The active hub is about to hear of these refused objects, and of no others: only those that it knew before are held apart. */
  excuseOnly(keys: Iterable<string>): void {
    this.#excused = new Set([...keys].filter((key) => this.#excused.has(key)));
  }

  /** The active hub knows that these objects, which are refused, are not written: no number waits for them. */
  excuse(keys: Iterable<string>): void {
    this.#excused = new Set(keys);
    this.#tellDone();
  }

  /** Whether the object, by {@link replicatedKey}, is not written yet. */
  isPending(key: string): boolean {
    return this.#entries.has(key);
  }

  /** All objects that are not written yet. */
  get pending(): Iterable<string> {
    return this.#entries.keys();
  }

  /** For how long the oldest of them has waited, ms. */
  get lagMs(): number {
    const now = performance.now();
    let oldest = now;
    for (const { at } of this.#entries.values()) {
      oldest = Math.min(oldest, at);
    }
    return now - oldest;
  }

  /** All objects up to this number are known to be in step, except for those that are being written. */
  startFrom(sequence: bigint): void {
    this.#last = sequence;
  }

  add(change: IncomingChange): void {
    this.#received(change.sequence);
    const key = replicatedKey(change.kind, change.ref);
    const known = this.#entries.get(key);
    if (known === undefined) {
      const at = performance.now();
      this.#entries.set(key, { change, since: change.sequence, at, next: undefined, isWriting: false });
    } else if (known.isWriting) {
      const { since, at } = known.next ?? { since: change.sequence, at: performance.now() };
      known.next = { change, since, at };
    } else {
      known.change = change;
    }
    this.#queueOf(key).add(key);
    this.#tellFull();
  }

  /** A message that needs nothing to be written. */
  skip(sequence: bigint): void {
    this.#received(sequence);
    this.#tellDone();
  }

  #received(sequence: bigint): void {
    if (sequence > this.#last) {
      this.#last = sequence;
    }
  }

  async #write(key: string, signal: AbortSignal): Promise<void> {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.isWriting) {
      return;
    }
    entry.isWriting = true;
    try {
      await this.#options.write(entry.change, signal);
    } catch (error) {
      entry.isWriting = false;
      entry.change = entry.next?.change ?? entry.change;
      entry.next = undefined;
      throw error;
    }
    this.#entries.delete(key);
    this.#accepted(key);
    const { next } = entry;
    if (next !== undefined) {
      this.#entries.set(key, { ...next, next: undefined, isWriting: false });
      this.#queue.add(key);
    }
    this.#tellDone();
    this.#tellFull();
  }

  #queueOf(key: string): WorkQueue {
    return this.#refused.has(key) ? this.#refusedQueue : this.#queue;
  }

  #failed(key: string, failures: number, error: unknown): void {
    const entry = this.#entries.get(key);
    const isKnown = entry === undefined || this.#refused.has(key);
    if (isKnown || failures < failuresOfRefused || this.#refused.size >= mostRefused) {
      return;
    }
    this.#refused.set(key, entry.change);
    this.#options.logger.warn(
      { object: key, error },
      'an object of the active hub cannot be written here: it is tried on, and the others go on without it',
    );
    this.#options.refused?.();
    this.#tellFull();
  }

  #accepted(key: string): void {
    if (this.#refused.delete(key)) {
      this.#options.logger.info(
        { object: key },
        'an object of the active hub that could not be written here is written',
      );
      this.#options.refused?.();
    }
  }

  #tellDone(): void {
    // The entries are in no order: one that changed while it was written came again later. There are few.
    let upTo = this.#last;
    for (const [key, { since }] of this.#entries) {
      upTo = !this.#excused.has(key) && since <= upTo ? since - 1n : upTo;
    }
    this.#options.done(upTo);
  }

  #tellFull(): void {
    const size = this.#entries.size - this.#refused.size;
    const isFull = this.#isFull ? size > mostWaiting / 2 : size > mostWaiting;
    if (isFull !== this.#isFull) {
      this.#isFull = isFull;
      this.#options.full(isFull);
    }
  }
}
