import { after } from '../base/index.ts';

/** Time as the engine sees it, so that a simulation can own it. */
export interface Clock {
  /** Milliseconds since any fixed point; never goes back. */
  now(): number;
  /** Calls `run` once, when `now` is `ms` milliseconds further or more, never before; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
}

/** The process's own monotonic clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after: (ms, run) => after(ms, run, { unref: true }),
};
