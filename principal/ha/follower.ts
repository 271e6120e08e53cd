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

/** An object that a standby has to hear of. */
export interface DirtyObject {
  readonly kind: ReplicatedKind;
  /** As last seen; what is sent is its state at that time. */
  readonly last: KubeObject;
  /** When it came out of step, by the monotonic clock, ms. */
  readonly since: number;
}

interface Sent extends DirtyObject {
  readonly sequence: bigint;
  readonly now: KubeObject | undefined;
}

/** What a {@link Follower} needs. */
export interface FollowerOptions {
  readonly principalUid: string;
  agentOf(kind: ReplicatedKind, object: KubeObject): string;
  sent(): void;
  /** It has taken its first snapshot. */
  ready(): void;
  acknowledged(kind: ReplicatedKind, object: KubeObject): void;
  /** What it lacks is less than before. */
  progressed(): void;
  closed(): void;
}

/** Bounds what a standby that does not acknowledge makes us keep of sent events; the rest waits as names of objects. */
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
  #unacknowledged: Sent[] = [];
  #sequence = 0n;
  #acknowledgedUpTo = 0n;
  #isReady = false;
  #isFull = false;
  readonly #firstAck: NodeJS.Timeout;

  constructor(identity: string, stream: ReplicaStream, firstAckMs: number, options: FollowerOptions) {
    this.identity = identity;
    this.stream = stream;
    this.#options = options;
    this.#firstAck = setTimeout(() => {
      stream.end(new GrpcError(grpcStatus.deadlineExceeded, `no first acknowledgement within ${firstAckMs / 1000} s`));
    }, firstAckMs).unref();
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
    return this.#dirty.size + this.#unacknowledged.length;
  }

  /** For how long the oldest of them has been out of step, ms. */
  get lagMs(): number {
    const [first] = this.#dirty.values();
    const since = Math.min(first?.since ?? Infinity, this.#unacknowledged[0]?.since ?? Infinity);
    return since === Infinity ? 0 : performance.now() - since;
  }

  /** Whether the object has changed since it was sent. */
  isDirty(kind: ReplicatedKind, object: KubeObject): boolean {
    return this.#dirty.has(keyOf(kind, object));
  }

  /** The object has changed, or is gone. */
  changed(kind: ReplicatedKind, last: KubeObject): void {
    const key = keyOf(kind, last);
    const since = this.#dirty.get(key)?.since ?? performance.now();
    this.#dirty.set(key, { kind, last, since });
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
    clearTimeout(this.#firstAck);
    if (!this.#isReady) {
      this.#isReady = true;
      this.#options.ready();
    }
    this.#acknowledgedUpTo = sequence > this.#acknowledgedUpTo ? sequence : this.#acknowledgedUpTo;
    const done = this.#unacknowledged.findIndex((sent) => sent.sequence > this.#acknowledgedUpTo);
    const count = done < 0 ? this.#unacknowledged.length : done;
    for (const { kind, now } of this.#unacknowledged.splice(0, count)) {
      if (now !== undefined) {
        this.#options.acknowledged(kind, now);
      }
    }
    this.#send();
    this.#options.progressed();
  }

  closed(): void {
    clearTimeout(this.#firstAck);
    this.#options.closed();
  }

  #send(): void {
    while (this.#isReady && !this.#isFull && this.#unacknowledged.length < mostUnacknowledged && !this.stream.ended) {
      const [next] = this.#dirty;
      if (next === undefined) {
        return;
      }
      const [key, dirty] = next;
      this.#dirty.delete(key);
      const now = currentState(dirty);
      this.#sequence++;
      this.#unacknowledged.push({ ...dirty, sequence: this.#sequence, now });
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

  #eventOf({ kind, last }: DirtyObject, now: KubeObject | undefined) {
    const type = now === undefined ? eventTypes.delete : eventTypes.specUpdate;
    const origin = { source: principalSource, principalUid: this.#options.principalUid };
    const object = (now ?? last) as KubeObject & { metadata: { uid: string; resourceVersion: string } };
    return encodeEvent(objectEvent(kind.target as ObjectTarget, type, sentObject(object) as typeof object, origin));
  }
}

function keyOf(kind: ReplicatedKind, { metadata: { namespace = '', name } }: KubeObject): string {
  return `${kind.name}/${namespace}/${name}`;
}

/** The object as the cache has it; undefined when it is gone or takes part no more. */
function currentState({ kind, last }: Pick<DirtyObject, 'kind' | 'last'>): KubeObject | undefined {
  const found = kind.informer.get(last.metadata);
  return found !== undefined && kind.includes(found) ? found : undefined;
}

/** An object as it is sent: a standby must not run an operation again that the active hub was asked for. */
export function sentObject(object: KubeObject): KubeObject {
  const { operation: _, ...rest } = object as KubeObject & { operation?: unknown };
  return rest;
}
