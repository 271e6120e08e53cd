import type { Flight } from './decision.ts';

/** How many may be under way before anything is known of a link. */
const beginning = 8;
/** What waits longer than this at the peer waits there for nothing: here it could still become something newer. */
const leastPatienceMs = 1_000;
/** A peer that lets wait no longer than this can take more. */
const shortWaitMs = 250;
/** What was not answered in time makes the window no smaller than this. */
const leastAfterLoss = 4;
/** No peer is so busy that it answers nothing at all for so long. */
const forgetfulAfterMs = 30_000;
/** Share of a new latency in the running mean. */
const gain = 1 / 8;

/**
 * How many events may wait for their acknowledgements at once, and which of them are merely late. A peer with more to do
 * than it can do at once acknowledges late: what waits there gets old, and says in the end what is no longer true, while
 * what waits here is decided when it is sent. So as many are under way as the peer works off in about a second, in addition
 * to the time that an answer takes on the link itself.
 *
 * The size is found as that of other protocols' windows: it grows with each answer that came soon, and is halved when one
 * came late, once for all that were under way together. At least one may be under way.
 */
export class FlightWindow {
  readonly #most: number;
  readonly #patienceMs: number;
  readonly #resendMs: number;
  /** What takes a place, in the order of sending. */
  readonly #counted = new Set<Flight>();
  #size: number;
  #halvedAt = Number.NEGATIVE_INFINITY;
  /** The shortest answer on this link. */
  #leastMs = Number.POSITIVE_INFINITY;
  #meanMs = 0;
  /** When what was sent last of all that is answered was sent, and when the last answer came. */
  #reached = Number.NEGATIVE_INFINITY;
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** When the first was sent on this link. */
  #firstSentAt = Number.POSITIVE_INFINITY;

  /** @param options `resendMs`: how long a peer may acknowledge nothing before it has forgotten what it was told */
  constructor(options: { readonly most: number; readonly resendMs: number }) {
    this.#most = options.most;
    this.#resendMs = options.resendMs;
    // Who has answers held back says so by resending later.
    this.#patienceMs = Math.max(leastPatienceMs, options.resendMs - 4_000);
    this.#size = Math.min(beginning, this.#most);
  }

  /** Whether nothing more may be sent for the moment. */
  get isFull(): boolean {
    return this.#counted.size >= Math.floor(this.#size);
  }

  /** How long the peer has taken lately, in milliseconds. */
  get latencyMs(): number {
    return this.#meanMs;
  }

  /** A flight takes a place. */
  enter(flight: Flight): void {
    this.#counted.add(flight);
    this.#firstSentAt = Math.min(this.#firstSentAt, flight.sentAt);
  }

  /** A flight was answered, so long after its event was first sent. It has its place still. */
  answered(flight: Flight, latencyMs: number, now: number): void {
    this.#reached = Math.max(this.#reached, flight.sentAt);
    this.#answeredAt = now;
    // How long it takes to do what was asked for, or to take something away, says nothing of how busy the peer is.
    if (flight.outcome.is === 'held') {
      this.#meanMs = this.#meanMs === 0 ? latencyMs : this.#meanMs + (latencyMs - this.#meanMs) * gain;
      this.#resize(flight, latencyMs, now);
    }
    this.#letOvertake();
  }

  /** A flight has ended, answered or not. */
  leave(flight: Flight): void {
    this.#counted.delete(flight);
  }

  /** Whether a flight whose time is over is late, not lost: the peer goes on acknowledging, and is busy with earlier ones. */
  isLate(flight: Flight, now: number): boolean {
    return !this.#isOvertaken(flight) && now - this.#answeredAt < Math.max(this.#resendMs, 2 * this.#meanMs);
  }

  /**
   * Flights were not answered in time. Who answers nothing at all may have more to do than it can do, and must not get more;
   * but who goes on like that has forgotten it, and must not be waited for one by one.
   */
  lost(flights: readonly Flight[], now: number): void {
    if (flights.every((flight) => this.#isOvertaken(flight))) {
      return;
    }
    const isForgetful = now - Math.max(this.#answeredAt, this.#firstSentAt) > forgetfulAfterMs;
    this.#size = isForgetful
      ? Math.min(this.#most, 2 * this.#size)
      : Math.max(Math.min(this.#size, leastAfterLoss), this.#size / 2);
  }

  /** A new link: how fast it is, and the peer by now, is to be found out. */
  reset(): void {
    this.#counted.clear();
    this.#size = Math.min(beginning, this.#most);
    this.#halvedAt = Number.NEGATIVE_INFINITY;
    this.#leastMs = Number.POSITIVE_INFINITY;
    this.#reached = Number.NEGATIVE_INFINITY;
    this.#answeredAt = Number.NEGATIVE_INFINITY;
    this.#firstSentAt = Number.POSITIVE_INFINITY;
  }

  #resize(flight: Flight, latencyMs: number, now: number): void {
    this.#leastMs = Math.min(this.#leastMs, latencyMs);
    const waitedMs = latencyMs - this.#leastMs;
    if (waitedMs <= this.#patienceMs) {
      if (2 * this.#counted.size >= this.#size) {
        this.#size = Math.min(this.#most, this.#size + (waitedMs < shortWaitMs ? 1 : 1 / this.#size));
      }
    } else if (flight.sentAt <= this.#halvedAt) {
      // It was under way already when others came late.
      return;
    } else if (this.#size < 2) {
      // It was alone and had nothing to wait for: that is how long it takes now.
      this.#leastMs = latencyMs;
    } else {
      this.#size = Math.max(1, Math.min(this.#size, this.#counted.size) / 2);
      this.#halvedAt = now;
    }
  }

  /** What later ones have overtaken is held up at the peer, and must not hold up others here. */
  #letOvertake(): void {
    for (const flight of this.#counted) {
      if (!this.#isOvertaken(flight)) {
        return;
      }
      this.#counted.delete(flight);
    }
  }

  #isOvertaken(flight: Flight): boolean {
    return flight.sentAt + this.#patienceMs < this.#reached;
  }
}
