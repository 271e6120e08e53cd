/** Node's timers take no more milliseconds; with more they fire at once. 24.8 days. */
const longestTimerMs = 2 ** 31 - 1;

/** Whether a timer keeps the process alive. */
export interface TimerOptions {
  readonly unref?: boolean;
}

/**
 * Calls `run` once, `ms` milliseconds from now or later, never before, however long that is; the returned function cancels it.
 */
export function after(ms: number, run: () => void, { unref = false }: TimerOptions = {}): () => void {
  const due = performance.now() + ms;
  let timer: NodeJS.Timeout;
  // Node's timers have a resolution of 1 ms and may fire early; the caller would then find nothing due.
  const wait = () => {
    const left = Math.max(0, Math.ceil(due - performance.now()));
    timer = setTimeout(() => (performance.now() < due ? wait() : run()), Math.min(left, longestTimerMs));
    if (unref) {
      timer.unref();
    }
  };
  wait();
  return () => clearTimeout(timer);
}

/** Calls `run` every `ms` milliseconds, or every 24.8 days if that is sooner; the returned function ends it. */
export function every(ms: number, run: () => void, { unref = false }: TimerOptions = {}): () => void {
  const timer = setInterval(run, Math.min(Math.max(ms, 1), longestTimerMs));
  if (unref) {
    timer.unref();
  }
  return () => clearInterval(timer);
}

/** As `AbortSignal.timeout`, but takes any duration: one of more than 24.8 days ends then. */
export function timeoutSignal(ms: number): AbortSignal {
  return AbortSignal.timeout(Math.min(Math.max(Math.ceil(ms), 0), longestTimerMs));
}

/** A timer that starts anew whenever something happens. */
export interface IdleTimer {
  /** Something has happened. */
  refresh(): void;
  cancel(): void;
}

/** Calls `run` once when nothing has happened for `ms` milliseconds, however long that is. */
export function whenIdle(ms: number, run: () => void): IdleTimer {
  let last = performance.now();
  const look = () => {
    const left = last + ms - performance.now();
    if (left > 0) {
      cancel = after(left, look);
    } else {
      run();
    }
  };
  let cancel = after(ms, look);
  return {
    refresh: () => {
      last = performance.now();
    },
    cancel: () => cancel(),
  };
}
