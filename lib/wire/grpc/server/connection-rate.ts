import { networkOf } from '../../../base/index.ts';

/** Limits of a server's connections, in all and per address. */
export interface ConnectionLimits {
  /** Open connections altogether. Default 16,384. */
  readonly maxConnections: number;
  /** Open connections on which no call has authenticated yet. Default 4,096. */
  readonly maxUnauthenticated: number;
  /**
   * New connections a second from one address (of IPv6 from one /64), on average. Default 500. Connections above the
   * rate wait, and are refused when they would wait longer than 10 s. A fleet may share one address.
   */
  readonly connectionsPerSecond: number;
  /** New connections from one address that are taken at once. Default 2,000. */
  readonly burst: number;
}

/** See `ConnectionLimits`. */
export const defaultConnectionLimits: ConnectionLimits = {
  maxConnections: 16_384,
  maxUnauthenticated: 4096,
  connectionsPerSecond: 500,
  burst: 2000,
};

/** Longest wait for a new connection, in ms. Clients give up after about as long. */
const maxWaitMs = 10_000;
/** Addresses that are remembered; idle ones are forgotten, so this is more than can be active. */
const maxAddresses = 65_536;

/**
 * Limits how often each address connects, by the generic cell rate algorithm: one time per address, until when its
 * connections are paid for.
 */
export class ConnectionRate {
  readonly #intervalMs: number;
  readonly #burst: number;
  readonly #paidUntil = new Map<string, number>();

  constructor({ connectionsPerSecond, burst }: Pick<ConnectionLimits, 'connectionsPerSecond' | 'burst'>) {
    this.#intervalMs = 1000 / connectionsPerSecond;
    this.#burst = burst;
  }

  /** How long, in ms, a new connection from this address has to wait; undefined to refuse it. */
  admit(address: string, now: number): number | undefined {
    const key = networkOf(address);
    const paidUntil = Math.max(this.#paidUntil.get(key) ?? now, now);
    const wait = paidUntil - now - (this.#burst - 1) * this.#intervalMs;
    if (wait > maxWaitMs) {
      return undefined;
    }
    if (this.#paidUntil.size >= maxAddresses && !this.#paidUntil.has(key)) {
      this.#forget(now);
    }
    this.#paidUntil.set(key, paidUntil + this.#intervalMs);
    return Math.max(0, wait);
  }

  #forget(now: number): void {
    for (const [key, paidUntil] of this.#paidUntil) {
      if (paidUntil <= now) {
        this.#paidUntil.delete(key);
      }
    }
    // With too many active addresses the oldest are forgotten; they start with a full burst again.
    for (const key of this.#paidUntil.keys()) {
      if (this.#paidUntil.size < maxAddresses) {
        break;
      }
      this.#paidUntil.delete(key);
    }
  }
}
