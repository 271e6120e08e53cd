import { BoundedMap } from '../../lib/base/index.ts';
import type { OpenSessionsListener } from './open-sessions.ts';

/** A connection that has lived for longer has not ended too soon: certificates are renewed, programs are updated. */
const steadyMs = 15 * 60_000;
/** Connections that ended too soon count for this time. */
const countedMs = 3_600_000;
/** So many are no accident. */
const enough = 5;
/** More than a principal has agents. */
const mostAgents = 10_000;

/** Connections of an agent that ended one after the other. */
export interface UnsteadyConnection {
  readonly agent: string;
  readonly count: number;
  /** How long they lived, in milliseconds: the shortest and the longest. */
  readonly shortestMs: number;
  readonly longestMs: number;
}

/**
 * Notices agents whose connections end soon, again and again: a proxy or firewall on the way closes what is idle or old, or the agent
 * does not stay up. Each connection is counted once.
 */
export class UnsteadyConnections implements OpenSessionsListener {
  readonly #report: (found: UnsteadyConnection) => void;
  readonly #now: () => number;
  readonly #since = new BoundedMap<string, number>(mostAgents);
  readonly #ended = new BoundedMap<string, readonly { readonly at: number; readonly livedMs: number }[]>(mostAgents);

  /** @param now milliseconds of a clock that never goes back */
  constructor(report: (found: UnsteadyConnection) => void, now: () => number = () => performance.now()) {
    this.#report = report;
    this.#now = now;
  }

  connected(agent: string): void {
    this.#since.set(agent, this.#now());
  }

  disconnected(agent: string): void {
    const now = this.#now();
    const livedMs = now - (this.#since.get(agent) ?? Number.NEGATIVE_INFINITY);
    this.#since.delete(agent);
    if (livedMs > steadyMs) {
      return;
    }
    const recent = (this.#ended.get(agent) ?? []).filter(({ at }) => now - at < countedMs);
    const ended = [...recent, { at: now, livedMs }];
    if (ended.length < enough) {
      this.#ended.set(agent, ended);
      return;
    }
    this.#ended.delete(agent);
    const lives = ended.map((one) => one.livedMs);
    this.#report({ agent, count: ended.length, shortestMs: Math.min(...lives), longestMs: Math.max(...lives) });
  }
}
