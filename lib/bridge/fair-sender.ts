/** How much is sent in one turn of the event loop: some milliseconds of work. */
export interface FairSenderLimits {
  /** By all peers together. */
  readonly messages: number;
  readonly bytes: number;
  /** By one peer. */
  readonly messagesPerPeer: number;
}

const defaultLimits: FairSenderLimits = { messages: 32, bytes: 512 * 1024, messagesPerPeer: 8 };

/**
 * Shares the sending of a process among its peers. To send the state of thousands of objects is work for seconds; without
 * a limit no acknowledgement, heartbeat or request would be read meanwhile. Therefore each turn of the event loop sends a
 * limited amount, and a peer with more to send continues in a later turn, behind the peers that wait already.
 */
export class FairSender {
  readonly #limits: FairSenderLimits;
  readonly #later: (run: () => void) => void;
  #messages = 0;
  #bytes = 0;
  readonly #messagesByPeer = new Map<() => void, number>();
  #isNextDue = false;
  /** The peers that wait, in the order in which they asked. */
  readonly #waiting = new Set<() => void>();

  /** @param later calls back in the next turn of the event loop, after input has been read */
  constructor(
    limits: FairSenderLimits = defaultLimits,
    later: (run: () => void) => void = (run) => void setImmediate(run),
  ) {
    this.#limits = limits;
    this.#later = later;
  }

  /** Whether a peer may send a message now; if not, `resume` is called in a later turn. `resume` identifies the peer. */
  tryAcquire(resume: () => void): boolean {
    if (!this.#isUsedUp && (this.#messagesByPeer.get(resume) ?? 0) < this.#limits.messagesPerPeer) {
      return true;
    }
    this.#waiting.add(resume);
    return false;
  }

  /** The peer has sent a message of so many bytes. */
  sent(resume: () => void, bytes: number): void {
    this.#messages++;
    this.#bytes += bytes;
    this.#messagesByPeer.set(resume, (this.#messagesByPeer.get(resume) ?? 0) + 1);
    this.#expectNext();
  }

  get #isUsedUp(): boolean {
    return this.#messages >= this.#limits.messages || this.#bytes >= this.#limits.bytes;
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
    this.#messagesByPeer.clear();
    // A peer with still more to send asks again, and then stands behind all that wait now.
    for (const resume of [...this.#waiting]) {
      if (this.#isUsedUp) {
        break;
      }
      this.#waiting.delete(resume);
      resume();
    }
    if (this.#waiting.size > 0) {
      this.#expectNext();
    }
  }
}
