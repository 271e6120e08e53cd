import { liveMemory } from '../../lib/base/testing.ts';

/** Longest turn of the event loop, or step in one, of code that answers hostile input, in ms of CPU time. */
export const maxTurnMs = 100;
/** Most that the heap and the buffers of code that answers hostile input grow by, in bytes. */
export const maxGrownBytes = 256 * 1024 * 1024;
/**
 * How often a step that exceeds it is repeated. The shortest run counts: what a step costs it costs each time, while the
 * garbage collector and a busy machine add up to 500 ms to any.
 */
const repetitions = 5;

async function shortestMs(first: number, again: () => Promise<number>): Promise<number> {
  let ms = first;
  for (let at = 0; ms > maxTurnMs && at < repetitions; at++) {
    ms = Math.min(ms, await again());
  }
  return ms;
}

/**
 * Measures code under test that runs in this thread, step by step. A step that nothing else runs beside takes at least as
 * long as each of its turns of the event loop.
 */
export class StepMeter {
  /** CPU time of the longest step, in ms. Unlike a duration it does not depend on other programs. */
  longestMs = 0;
  readonly #memory = new MemoryMeter();
  #steps = 0;

  /** {@link MemoryMeter.grownBytes} */
  get grownBytes(): number {
    return this.#memory.grownBytes;
  }

  /** Runs a step, which can be repeated; returns its value and its CPU time in ms. */
  async measure<T>(step: () => T | Promise<T>): Promise<{ readonly value: T; readonly ms: number }> {
    const run = async () => {
      const before = cpuMs();
      const value = await step();
      return { value, ms: cpuMs() - before };
    };
    const first = await run();
    const ms = await shortestMs(first.ms, async () => (await run()).ms);
    this.longestMs = Math.max(this.longestMs, ms);
    if (this.#steps++ % 16 === 0) {
      this.#memory.look();
    }
    return { value: first.value, ms };
  }

  /** The worst figures, for people. */
  toString(): string {
    return `at most ${this.longestMs.toFixed(0)} ms of CPU in a step; ${this.#memory}`;
  }
}

/** Measures the turns of this thread's event loop from its making on. */
export class TurnMeter {
  /** CPU time of the longest turn, in ms. Unlike a delay it does not depend on other programs. */
  longestMs = 0;
  readonly #memory = new MemoryMeter();
  #before = cpuMs();
  #timer: NodeJS.Timeout | undefined;

  constructor() {
    this.#look();
  }

  /** {@link MemoryMeter.mostBytes} */
  get mostBytes(): number {
    return this.#memory.mostBytes;
  }

  /** {@link MemoryMeter.grownBytes} */
  get grownBytes(): number {
    return this.#memory.grownBytes;
  }

  /** Runs a step, which can be repeated; returns its value. Of its turns the longest counts. */
  async measure<T>(step: () => Promise<T>): Promise<T> {
    const before = this.longestMs;
    const run = async () => {
      this.#note();
      this.longestMs = 0;
      const value = await step();
      this.#note();
      return { value, ms: this.longestMs };
    };
    const first = await run();
    this.longestMs = Math.max(before, await shortestMs(first.ms, async () => (await run()).ms));
    return first.value;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** The worst figures, for people. */
  toString(): string {
    return `at most ${this.longestMs.toFixed(0)} ms of CPU in a turn; ${this.#memory}`;
  }

  #note(): void {
    const now = cpuMs();
    this.longestMs = Math.max(this.longestMs, now - this.#before);
    this.#before = now;
  }

  #look(): void {
    this.#note();
    this.#memory.look();
    this.#timer = setTimeout(() => this.#look(), 1).unref();
  }
}

/**
 * Measures the heap and the buffers of this thread, when it looks. Garbage counts up to the limit: on a machine with much memory
 * the collector lets far more lie, so a reading above the limit is taken again after a collection.
 */
class MemoryMeter {
  /** The most that was seen, in bytes. */
  mostBytes: number;
  readonly #first: number;

  constructor() {
    this.#first = heldBytes();
    this.mostBytes = this.#first;
  }

  /** Growth since the start at the worst moment, in bytes. */
  get grownBytes(): number {
    return this.mostBytes - this.#first;
  }

  look(): void {
    if (heldBytes() > this.#first + maxGrownBytes) {
      liveMemory();
    }
    this.mostBytes = Math.max(this.mostBytes, heldBytes());
  }

  toString(): string {
    return `${(this.mostBytes / 2 ** 20).toFixed(0)} MiB, ${(this.grownBytes / 2 ** 20).toFixed(0)} more than at the start`;
  }
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function heldBytes(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
