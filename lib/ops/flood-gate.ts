import { BoundedMap } from '../base/index.ts';

/** Lines of one kind about one peer that may come at once, and how long each takes to be made up for. */
const burst = 30;
const refillMs = 2_000;
/** Kinds of lines that are remembered; a stranger can make up addresses. */
const mostKinds = 2_000;

interface Allowance {
  left: number;
  since: number;
  suppressed: number;
}

/** Keeps a peer from filling the log: of lines of one kind about it, 30 may come at once and then one every 2 s. */
export class FloodGate {
  readonly #now: () => number;
  readonly #allowances = new BoundedMap<string, Allowance>(mostKinds);

  /** @param now milliseconds of a clock that never goes back */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** How many lines of this kind were left out since the last one that was not; undefined: this one is left out too. */
  admit(kind: string): number | undefined {
    const now = this.#now();
    let allowance = this.#allowances.get(kind);
    if (allowance === undefined) {
      allowance = { left: burst, since: now, suppressed: 0 };
      this.#allowances.set(kind, allowance);
    }
    const refilled = Math.floor((now - allowance.since) / refillMs);
    allowance.left = Math.min(burst, allowance.left + refilled);
    allowance.since += refilled * refillMs;
    if (allowance.left === 0) {
      allowance.suppressed++;
      return undefined;
    }
    allowance.left--;
    const { suppressed } = allowance;
    allowance.suppressed = 0;
    return suppressed;
  }
}
