import { after } from '../../lib/base/index.ts';
import type { KubeObject } from '../../lib/kube/index.ts';
import {
  encodeEvent,
  eventTypes,
  GrpcError,
  grpcStatus,
  type ObjectTarget,
  objectEvent,
  principalSource,
  type ReplicaHandlers,
  type ReplicaStream,
} from '../../lib/wire/index.ts';
import type { ReplicatedKind } from './kinds.ts';
import { replicatedKey } from './news.ts';

/** An object that a standby has to hear of. */
export interface DirtyObject {
  readonly kind: ReplicatedKind;
  /** As last seen; what is sent is its state at that time. */
  readonly last: KubeObject;
  /** It was deleted: the cache need not have it. */
  readonly isGone: boolean;
  /** When it came out of step, by the monotonic clock, ms. */
  readonly since: number;
}

/** The place of an object in the window of what was sent and is not acknowledged. */
interface Place {
  readonly kind: ReplicatedKind;
  /** The oldest state that is not acknowledged. */
  oldest: SentState;
  /** The last one that was sent. */
  newest: SentState;
}

interface SentState {
  readonly sequence: bigint;
  readonly since: number;
  /** Undefined when it was deleted. */
  readonly object: KubeObject | undefined;
}

/** What a {@link Follower} needs. */
export interface FollowerOptions {
  readonly principalUid: string;
  agentOf(kind: ReplicatedKind, object: KubeObject): string;
  sent(): void;
  /** It has taken its first snapshot. */
  ready(): void;
  acknowledged(kind: ReplicatedKind, object: KubeObject): void;
  /** What it lacks may be less than before. */
  progressed(): void;
  closed(): void;
}

/** Objects in the window, without those that the standby refuses. The rest waits as names of objects. */
const mostUnacknowledged = 1_000;

/**
 * A standby that follows this principal. Holds the *set* of objects that it has to hear of, so that a slow standby costs no
 * more memory than there are objects, and no event is ever dropped: what it gets is each object's newest state. The numbers
 * of its events have no gaps.
 */
export class Follower implements ReplicaHandlers {
  readonly identity: string;
  readonly stream: ReplicaStream;
  readonly #options: FollowerOptions;
  readonly #dirty = new Map<string, DirtyObject>();
  readonly #window = new Map<string, Place>();
  /** What the standby cannot write, by {@link replicatedKey}: acknowledgements do not stand for it. */
  #refused: ReadonlySet<string> = new Set();
  #sequence = 0n;
  #acknowledgedUpTo = 0n;
  #isReady = false;
  #isFull = false;
  readonly #firstAck: () => void;

  constructor(identity: string, stream: ReplicaStream, firstAckMs: number, options: FollowerOptions) {
    this.identity = identity;
    this.stream = stream;
    this.#options = options;
    const tooLate = () =>
      stream.end(new GrpcError(grpcStatus.deadlineExceeded, `no first acknowledgement within ${firstAckMs / 1000} s`));
    this.#firstAck = after(firstAckMs, tooLate, { unref: true });
    stream.onDrain(() => {
      this.#isFull = false;
      this.#send();
    });
  }

  /** Number of the last event. */
  get sequence(): bigint {
    return this.#sequence;
  }

  /** Whether it has taken a snapshot. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Objects whose state it has not acknowledged. */
  get lag(): number {
    let count = this.#dirty.size;
    for (const key of this.#window.keys()) {
      count += this.#dirty.has(key) ? 0 : 1;
    }
    return count;
  }

  /** Objects that it cannot write. */
  get refused(): ReadonlySet<string> {
    return this.#refused;
  }

  /** For how long the oldest of them has been out of step, ms. */
  get lagMs(): number {
    const [first] = this.#dirty.values();
    let since = first?.since ?? Infinity;
    for (const { oldest } of this.#window.values()) {
      since = Math.min(since, oldest.since);
    }
    return since === Infinity ? 0 : performance.now() - since;
  }

  /** Whether the standby may have the object as it is: it has not changed since it was sent, and is not refused. */
  mayHave(kind: ReplicatedKind, object: KubeObject): boolean {
    const key = replicatedKey(kind, object.metadata);
    return !this.#dirty.has(key) && !this.#refused.has(key);
  }

  /**
   * The standby cannot write these objects, and no others.
   * @param objects as this hub has them, with the kind, by {@link replicatedKey}
   */
  refuses(
    objects: ReadonlyMap<string, { readonly kind: ReplicatedKind; readonly object: KubeObject | undefined }>,
  ): void {
    this.#refused = new Set(objects.keys());
    for (const [key, { kind, object }] of objects) {
      if (!this.#window.has(key)) {
        const state = { sequence: 0n, since: performance.now(), object };
        this.#window.set(key, { kind, oldest: state, newest: state });
      }
    }
    this.#settle();
  }

  /** The object has changed. */
  changed(kind: ReplicatedKind, now: KubeObject): void {
    this.#outOfStep(kind, now, false);
  }

  /** The object is gone. */
  gone(kind: ReplicatedKind, last: KubeObject): void {
    this.#outOfStep(kind, last, true);
  }

  #outOfStep(kind: ReplicatedKind, last: KubeObject, isGone: boolean): void {
    const key = replicatedKey(kind, last.metadata);
    const since = this.#dirty.get(key)?.since ?? performance.now();
    this.#dirty.set(key, { kind, last, isGone, since });
    this.#send();
  }

  acknowledged(sequence: bigint): void {
    if (sequence > this.#sequence) {
      this.stream.end(
        new GrpcError(
          grpcStatus.invalidArgument,
          `event ${sequence} is acknowledged, the last one is ${this.#sequence}`,
        ),
      );
      return;
    }
    this.#firstAck();
    if (!this.#isReady) {
      this.#isReady = true;
      this.#options.ready();
    }
    this.#acknowledgedUpTo = sequence > this.#acknowledgedUpTo ? sequence : this.#acknowledgedUpTo;
    this.#settle();
  }

  closed(): void {
    this.#firstAck();
    this.#options.closed();
  }

  /** Takes what is acknowledged out of the window. */
  #settle(): void {
    const upTo = this.#acknowledgedUpTo;
    for (const [key, place] of this.#window) {
      if (this.#refused.has(key) || place.oldest.sequence > upTo) {
        continue;
      }
      const isNewest = place.newest.sequence <= upTo;
      const { object } = isNewest ? place.newest : place.oldest;
      if (object !== undefined) {
        this.#options.acknowledged(place.kind, object);
      }
      if (isNewest) {
        this.#window.delete(key);
      } else {
        place.oldest = place.newest;
      }
    }
    this.#send();
    this.#options.progressed();
  }

  #send(): void {
    while (this.#isReady && !this.#isFull && !this.stream.ended) {
      const next = this.#next();
      if (next === undefined) {
        return;
      }
      const [key, dirty] = next;
      this.#dirty.delete(key);
      const now = currentState(dirty);
      this.#sequence++;
      const state: SentState = { sequence: this.#sequence, since: dirty.since, object: now };
      this.#window.set(key, { kind: dirty.kind, oldest: this.#window.get(key)?.oldest ?? state, newest: state });
      this.#isFull = !this.stream.send({
        event: this.#eventOf(dirty, now),
        agentName: this.#options.agentOf(dirty.kind, now ?? dirty.last),
        direction: 'outbound',
        sequenceNum: this.#sequence,
        processedAtUnix: BigInt(Math.floor(Date.now() / 1000)),
      });
      this.#options.sent();
    }
  }

  /** What is to be sent next: when the window is full, only what has its place there already. */
  #next(): [string, DirtyObject] | undefined {
    // Each refused object has a place.
    if (this.#window.size - this.#refused.size < mostUnacknowledged) {
      const [next] = this.#dirty;
      return next;
    }
    // The window has a bound, and what waits has none.
    for (const key of this.#window.keys()) {
      const dirty = this.#dirty.get(key);
      if (dirty !== undefined) {
        return [key, dirty];
      }
    }
    return undefined;
  }

  #eventOf({ kind, last }: DirtyObject, now: KubeObject | undefined) {
    const type = now === undefined ? eventTypes.delete : eventTypes.specUpdate;
    const origin = { source: principalSource, principalUid: this.#options.principalUid };
    const object = (now ?? last) as KubeObject & { metadata: { uid: string; resourceVersion: string } };
    return encodeEvent(objectEvent(kind.target as ObjectTarget, type, sentObject(object) as typeof object, origin));
  }
}

/**
 * The object as the cache has it; undefined when it is gone. What the cache has no more may only be kept out by its label: the standby
 * gets what it was before, and is told of a deletion when that is known.
 */
function currentState({ kind, last, isGone }: DirtyObject): KubeObject | undefined {
  const found = kind.informer.get(last.metadata);
  if (found !== undefined && kind.includes(found)) {
    return found;
  }
  return isGone ? undefined : last;
}

/** An object as it is sent: a standby must not run an operation again that the active hub was asked for. */
export function sentObject(object: KubeObject): KubeObject {
  const { operation: _, ...rest } = object as KubeObject & { operation?: unknown };
  return rest;
}
