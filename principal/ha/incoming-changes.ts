import type { BackoffOptions, Logger } from '../../lib/base/index.ts';
import { type KubeObject, type ObjectKey, WorkQueue } from '../../lib/kube/index.ts';
import type { ReplicatedKind } from './kinds.ts';

/** The newest state of an object on the active hub. */
export interface IncomingChange {
  readonly kind: ReplicatedKind;
  readonly ref: ObjectKey;
  /** Undefined when it was deleted there. */
  readonly object: KubeObject | undefined;
  /** Number of its event. */
  readonly sequence: bigint;
}

/** What {@link IncomingChanges} needs. */
export interface IncomingChangesOptions {
  write(change: IncomingChange, signal: AbortSignal): Promise<void>;
  /** All up to this number is done. */
  done(sequence: bigint): void;
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
const backoff: BackoffOptions = { initialMs: 200, maxMs: 15_000 };

/**
 * Changes of the active hub that are being written here: of each object the newest, different objects at the same time, until
 * the API server has taken it. A number counts as done when that is so for all up to it.
 */
export class IncomingChanges {
  readonly #entries = new Map<string, Entry>();
  readonly #queue: WorkQueue;
  readonly #options: IncomingChangesOptions;
  #isFull = false;
  #last = 0n;

  constructor(options: IncomingChangesOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      name: 'replication',
      concurrency: 16,
      backoff,
      handler: (key, signal) => this.#write(key, signal),
      onFailure: (key, failures, error) => {
        if (failures > 2) {
          options.logger.warn(
            { object: key, error, failures },
            'an object of the active hub cannot be written here yet',
          );
        }
      },
      logger: options.logger,
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run(signal);
  }

  /** Objects that are not as on the active hub yet. */
  get lag(): number {
    return this.#entries.size;
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
    const key = `${change.kind.name}/${change.ref.namespace ?? ''}/${change.ref.name}`;
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
    this.#queue.add(key);
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
    if (entry === undefined) {
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
    const { next } = entry;
    if (next !== undefined) {
      this.#entries.set(key, { ...next, next: undefined, isWriting: false });
      this.#queue.add(key);
    }
    this.#tellDone();
    this.#tellFull();
  }

  #tellDone(): void {
    // The entries are in no order: one that changed while it was written came again later. There are few.
    let upTo = this.#last;
    for (const { since } of this.#entries.values()) {
      upTo = since <= upTo ? since - 1n : upTo;
    }
    this.#options.done(upTo);
  }

  #tellFull(): void {
    const size = this.#entries.size;
    const isFull = this.#isFull ? size > mostWaiting / 2 : size > mostWaiting;
    if (isFull !== this.#isFull) {
      this.#isFull = isFull;
      this.#options.full(isFull);
    }
  }
}
