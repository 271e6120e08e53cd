import type { Machine, SeededDice, VirtualTime } from '../index.ts';

const epoch = Date.UTC(2026, 0, 1);

/**
 * Gives what runs in a history the history's time and dice instead of this process's, until the returned function is called: timers,
 * clocks and random numbers, as programs find them. Every timer belongs to the machine whose event is running.
 * @throws Error from a timer that is set while no machine's event is running
 */
export function useVirtualGlobals(time: VirtualTime, dice: SeededDice): () => void {
  const saved = {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    setInterval: globalThis.setInterval,
    clearInterval: globalThis.clearInterval,
    setImmediate: globalThis.setImmediate,
    Date: globalThis.Date,
  };
  const { random } = Math;
  const { timeout } = AbortSignal;
  const after = (ms: number, run: () => void) => {
    if (time.isOver) {
      return () => undefined;
    }
    const machine = time.running as Machine | undefined;
    if (machine === undefined) {
      throw new Error('a timer of no machine');
    }
    return machine.after(ms, run);
  };
  class Timer {
    cancel: () => void = () => undefined;
    ref(): this {
      return this;
    }
    unref(): this {
      return this;
    }
  }
  const begin = (run: () => void, ms: number, isRepeated: boolean) => {
    const timer = new Timer();
    const fire = () => {
      if (isRepeated) {
        timer.cancel = after(ms, fire);
      }
      run();
    };
    timer.cancel = after(ms, fire);
    return timer;
  };
  const clear = (timer: Timer | undefined) => timer?.cancel();
  class VirtualDate extends saved.Date {
    constructor(...args: [number | string | Date] | []) {
      super(...((args.length === 0 ? [VirtualDate.now()] : args) as [number]));
    }
    static override now(): number {
      return epoch + Math.floor(time.now());
    }
  }
  Object.assign(globalThis, {
    setTimeout: (run: () => void, ms = 0) => begin(run, ms, false),
    clearTimeout: clear,
    setInterval: (run: () => void, ms = 0) => begin(run, ms, true),
    clearInterval: clear,
    setImmediate: (run: () => void) => begin(run, 0, false),
    Date: VirtualDate,
  });
  Math.random = dice.roll;
  performance.now = () => time.now();
  AbortSignal.timeout = (ms) => {
    const controller = new AbortController();
    after(ms, () => controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')));
    return controller.signal;
  };
  return () => {
    Object.assign(globalThis, saved);
    Math.random = random;
    Reflect.deleteProperty(performance, 'now');
    AbortSignal.timeout = timeout;
  };
}
