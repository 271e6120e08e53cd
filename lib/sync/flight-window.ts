import type { Flight } from './decision.ts';

/** Window size on a new link. */
const beginning = 8;
/** Longest useful wait at the peer. An event that waits longer should wait here, where it can still become newer. */
const leastPatienceMs = 1_000;
/** A peer that answers with no more extra latency than this can take more. */
const shortWaitMs = 250;
/** Lower bound of the window after events were not answered in time. */
const leastAfterLoss = 4;
/** A peer that answers nothing for this time has forgotten the events; it is not merely busy. */
const forgetfulAfterMs = 30_000;
/** Share of a new latency in the running mean. */
const gain = 1 / 8;

/**
 * Bounds the events in flight, and decides which of them are merely late. An overloaded peer acknowledges late. An event
 * that waits there becomes stale, while one that waits here is decided when it is sent. So the window covers the events that
 * the peer processes in about a second, in addition to the latency of the link.
 *
 * The size follows additive increase, multiplicative decrease: it grows with each prompt answer and is halved when an answer
 * is late, once for all events that were in flight together. The window is at least one.
 */
export class FlightWindow {
  readonly #most: number;
  readonly #patienceMs: number;
  readonly #resendMs: number;
  /** Flights that count towards the window, in the order of sending. */
  readonly #counted = new Set<Flight>();
  #size: number;
  #halvedAt = Number.NEGATIVE_INFINITY;
  /** The shortest answer on this link. */
  #leastMs = Number.POSITIVE_INFINITY;
  #meanMs = 0;
  /** Time of sending of the newest answered flight, and time of the last answer. */
  #reached = Number.NEGATIVE_INFINITY;
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** When the first was sent on this link. */
  #firstSentAt = Number.POSITIVE_INFINITY;

  /** @param options `resendMs`: time without acknowledgements after which unanswered events count as lost */
  constructor(options: { readonly most: number; readonly resendMs: number }) {
    this.#most = options.most;
    this.#resendMs = options.resendMs;
    // A link that delays answers is configured with a later resend.
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

  /** A flight was answered, `latencyMs` after its event was first sent. It still counts until {@link leave}. */
  answered(flight: Flight, latencyMs: number, now: number): void {
    this.#reached = Math.max(this.#reached, flight.sentAt);
    this.#answeredAt = now;
    // The duration of an intent or a deletion does not measure the peer's load.
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

  /** Whether an overdue flight is late, not lost: the peer still acknowledges earlier ones. */
  isLate(flight: Flight, now: number): boolean {
    return !this.#isOvertaken(flight) && now - this.#answeredAt < Math.max(this.#resendMs, 2 * this.#meanMs);
  }

  /**
   * Flights were not answered in time. A peer that answers nothing may be overloaded, so the window shrinks. After
   * {@link forgetfulAfterMs} the peer has forgotten the events, and the window grows again to resend them sooner.
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

  /** A new link: its latency and the peer's load are unknown. */
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
      // It was in flight already when the window was halved.
      return;
    } else if (this.#size < 2) {
      // It was alone in flight, so its latency is the link's present latency.
      this.#leastMs = latencyMs;
    } else {
      this.#size = Math.max(1, Math.min(this.#size, this.#counted.size) / 2);
      this.#halvedAt = now;
    }
  }

  /** Flights that later ones have overtaken are blocked at the peer, and must not block others here. */
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
