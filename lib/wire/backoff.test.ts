import { describe, expect, test } from 'vitest';
import { Backoff } from './backoff.ts';

/** A sequence of numbers in [0, 1) that depends on the seed alone (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe('1,000 agents whose principal goes away at the same moment', () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = randomOf(seed);
  // What `runWireClient` uses unless told otherwise.
  const options = { initialMs: 200, maxMs: 10_000, random };

  /** When each agent tries for the first time after the principal is back, counted from then. */
  function returns(awayMs: number): number[] {
    return Array.from({ length: 1000 }, () => {
      const backoff = new Backoff(options);
      let now = backoff.next();
      while (now < awayMs) now += backoff.next();
      return now - awayMs;
    });
  }

  test.each([1000, 5000, 30_000, 600_000])(`are back within 10 s after %d ms, seed ${seed}`, (awayMs) => {
    expect(Math.max(...returns(awayMs))).toBeLessThanOrEqual(10_000);
  });

  test.each([30_000, 600_000])(`do not come all at once after %d ms, seed ${seed}`, (awayMs) => {
    const perSecond = new Map<number, number>();
    for (const at of returns(awayMs))
      perSecond.set(Math.floor(at / 1000), (perSecond.get(Math.floor(at / 1000)) ?? 0) + 1);
    expect(Math.max(...perSecond.values())).toBeLessThan(300);
  });
});
