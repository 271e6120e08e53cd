/** How much is sent in one turn of the event loop: some milliseconds of work. */
export interface TurnLimits {
  /** By all peers together. */
  readonly messages: number;
  readonly bytes: number;
  /** By one of them. */
  readonly messagesOfOne: number;
}

const defaultLimits: TurnLimits = { messages: 32, bytes: 512 * 1024, messagesOfOne: 8 };

/**
 * Lets the peers of a process send in turns. To send what thousands of objects have become is work for seconds, during which
 * nobody would be heard: acknowledgements, signs of life, requests. So in one turn of the event loop only so much is sent,
 * and who has more to send goes on in a later turn, after the others that wait.
 */
export class SendTurns {
  readonly #limits: TurnLimits;
  readonly #later: (run: () => void) => void;
  #messages = 0;
  #bytes = 0;
  readonly #messagesOf = new Map<() => void, number>();
  #isNextDue = false;
  /** Who wants to go on, in the order of asking. */
  readonly #waiting = new Set<() => void>();

  /** @param later calls back in the next turn, when it has been looked for what came in */
  constructor(limits: TurnLimits = defaultLimits, later: (run: () => void) => void = (run) => void setImmediate(run)) {
    this.#limits = limits;
    this.#later = later;
  }

  /** Whether a peer, known by what lets it go on, may send a message now. If not, it is let go on in a later turn. */
  mayI(goOn: () => void): boolean {
    if (!this.#isOver && (this.#messagesOf.get(goOn) ?? 0) < this.#limits.messagesOfOne) {
      return true;
    }
    this.#waiting.add(goOn);
    return false;
  }

  /** The peer has sent a message of so many bytes. */
  sent(goOn: () => void, bytes: number): void {
    this.#messages++;
    this.#bytes += bytes;
    this.#messagesOf.set(goOn, (this.#messagesOf.get(goOn) ?? 0) + 1);
    this.#expectNext();
  }

  get #isOver(): boolean {
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
    this.#messagesOf.clear();
    // Who has still more to send asks again, and then stands behind all that wait now.
    for (const goOn of [...this.#waiting]) {
      if (this.#isOver) {
        break;
      }
      this.#waiting.delete(goOn);
      goOn();
    }
    if (this.#waiting.size > 0) {
      this.#expectNext();
    }
  }
}
