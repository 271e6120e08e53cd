import { BoundedMap } from './bounded.ts';
import { TokenBucket } from './token-bucket.ts';

/** How much work is done in one turn of the event loop. */
export interface TurnLimits {
  /** By all peers together. */
  readonly messages: number;
  readonly bytes: number;
  /** From the first message of the turn on, whatever the program does. */
  readonly milliseconds: number;
  /** By one peer. */
  readonly messagesPerPeer: number;
  readonly millisecondsPerPeer: number;
  /** How long a peer rests for the time that its last message took beyond `millisecondsPerPeer`, as a multiple; 0: not at all. */
  readonly restFactor: number;
  /** What a peer may have in the long run. Default: no limit. */
  readonly share?: PeerShare;
}

/** A limit on the time that the messages of one peer take, whatever their size and number. */
export interface PeerShare {
  /** Milliseconds in each second. */
  readonly perSecond: number;
  /** Milliseconds at once after a pause. */
  readonly burst: number;
  /** Each message counts at least so many milliseconds, for the work that follows its delivery. */
  readonly perMessage: number;
}

/** The work of one peer in the current turn. */
interface Used {
  messages: number;
  milliseconds: number;
}

/** A peer that rests. */
interface Rest {
  until: number;
  timer: NodeJS.Timeout;
  /** What waits for its end. */
  readonly waiting: Set<() => void>;
}

/** Shorter rests are left out: timers are not finer. */
const shortestRestMs = 1;
/** A process may be stopped amid a message, which is not its peer's fault. */
const longestRestMs = 1_000;
/** Peers whose share is known. One that is forgotten begins with a whole burst, as after a pause. */
const maxShares = 10_000;

/**
 * Shares the event loop among peers. To send the state of thousands of objects, or to read it, is work for seconds; without
 * a limit no acknowledgement, heartbeat or request would be read meanwhile. Therefore each turn of the event loop does a
 * limited amount, and a peer with more to do continues in a later turn, behind the peers that wait already.
 *
 * One message always has its turn, however large it is. A peer whose message took longer than its part of a turn then rests,
 * so that its messages take a limited part of the time: while it rests nothing of it is processed, however many calls it has.
 * So does one that has used up its share of the time with many small messages.
 */
export class FairTurns<Peer> {
  readonly #limits: TurnLimits;
  readonly #later: (run: () => void) => void;
  readonly #byPeer = new Map<Peer, Used>();
  #messages = 0;
  #bytes = 0;
  /** When the current turn began. */
  #began = 0;
  #isNextDue = false;
  /** What waits, in the order in which it asked. */
  readonly #waiting = new Set<() => void>();
  readonly #resting = new Map<Peer, Rest>();
  readonly #shares = new BoundedMap<Peer, TokenBucket>(maxShares);

  /** @param later calls back in the next turn of the event loop, after input has been read */
  constructor(limits: TurnLimits, later: (run: () => void) => void = (run) => void setImmediate(run)) {
    this.#limits = limits;
    this.#later = later;
  }

  /** Whether a peer may process a message now; if not, `resume` is called in a later turn. */
  tryAcquire(peer: Peer, resume: () => void): boolean {
    const rest = this.#resting.get(peer);
    if (rest !== undefined) {
      rest.waiting.add(resume);
      return false;
    }
    if (!this.#isUsedUp && !this.#isUsedUpBy(peer)) {
      return true;
    }
    this.#waiting.add(resume);
    return false;
  }

  /** `resume` need not be called any more. */
  withdraw(resume: () => void): void {
    this.#waiting.delete(resume);
    for (const { waiting } of this.#resting.values()) {
      waiting.delete(resume);
    }
  }

  /** The peer has processed a message of so many bytes in so much time. */
  used(peer: Peer, bytes: number, milliseconds = 0): void {
    if (!this.#isNextDue) {
      this.#began = performance.now() - milliseconds;
    }
    this.#messages++;
    this.#bytes += bytes;
    const used = this.#byPeer.get(peer) ?? { messages: 0, milliseconds: 0 };
    const { millisecondsPerPeer, restFactor } = this.#limits;
    const left = Math.max(0, millisecondsPerPeer - used.milliseconds);
    used.messages++;
    used.milliseconds += milliseconds;
    this.#byPeer.set(peer, used);
    const now = performance.now();
    if (milliseconds > left) {
      this.#rest(peer, (this.#resting.get(peer)?.until ?? now) + (milliseconds - left) * restFactor, now);
    }
    this.#rest(peer, now + this.#waitForShare(peer, milliseconds), now);
    this.#expectNext();
  }

  get #isUsedUp(): boolean {
    const { messages, bytes, milliseconds } = this.#limits;
    return (
      this.#messages >= messages ||
      this.#bytes >= bytes ||
      (this.#messages > 0 && performance.now() - this.#began >= milliseconds)
    );
  }

  #isUsedUpBy(peer: Peer): boolean {
    const used = this.#byPeer.get(peer);
    return (
      used !== undefined &&
      (used.messages >= this.#limits.messagesPerPeer || used.milliseconds >= this.#limits.millisecondsPerPeer)
    );
  }

  /** Takes the time of a message from the share of its peer, and returns the milliseconds until there is some left. */
  #waitForShare(peer: Peer, milliseconds: number): number {
    const { share } = this.#limits;
    if (share === undefined) {
      return 0;
    }
    let bucket = this.#shares.get(peer);
    if (bucket === undefined) {
      bucket = new TokenBucket(share);
      this.#shares.set(peer, bucket);
    }
    bucket.reserve(Math.max(milliseconds, share.perMessage));
    return bucket.waitMs;
  }

  /** Lets a peer rest until a time, unless it rests longer already. */
  #rest(peer: Peer, until: number, now: number): void {
    const known = this.#resting.get(peer);
    const restMs = Math.min(until - now, longestRestMs);
    if (restMs < shortestRestMs || (known !== undefined && now + restMs <= known.until)) {
      return;
    }
    clearTimeout(known?.timer);
    const timer = setTimeout(() => this.#wake(peer), restMs).unref();
    this.#resting.set(peer, { until: now + restMs, timer, waiting: known?.waiting ?? new Set() });
  }

  #wake(peer: Peer): void {
    const { waiting = [] } = this.#resting.get(peer) ?? {};
    this.#resting.delete(peer);
    for (const resume of waiting) {
      this.#waiting.add(resume);
      this.#expectNext();
    }
  }

  #expectNext(): void {
    if (this.#isNextDue) {
      return;
    }
    this.#isNextDue = true;
    this.#later(() => this.#next());
  }

  #next(): void {
    this.#isNextDue = false;
    this.#messages = 0;
    this.#bytes = 0;
    this.#byPeer.clear();
    // A peer with still more to do asks again, and then stands behind all that wait now.
    for (const resume of [...this.#waiting]) {
      if (this.#isUsedUp) {
        break;
      }
      if (this.#waiting.delete(resume)) {
        resume();
      }
    }
    if (this.#waiting.size > 0) {
      this.#expectNext();
    }
  }
}
