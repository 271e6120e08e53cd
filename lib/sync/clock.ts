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
  after: (ms, run) => {
    const due = performance.now() + ms;
    let timer: NodeJS.Timeout;
    // Node's timers have a resolution of 1 ms and may fire early; the caller would then find nothing due.
    const wait = () => {
      timer = setTimeout(
        () => (performance.now() < due ? wait() : run()),
        Math.max(0, Math.ceil(due - performance.now())),
      );
      timer.unref();
    };
    wait();
    return () => clearTimeout(timer);
  },
};
