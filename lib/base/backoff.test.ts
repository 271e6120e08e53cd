import { describe, expect, test } from 'vitest';
import { Random } from '../../e2e/random/index.ts';
import { Backoff } from './backoff.ts';

describe('1,000 agents whose principal goes away at the same moment', () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const dice = new Random(seed);
  // What `runWireClient` uses unless told otherwise.
  const options = { initialMs: 200, maxMs: 10_000, random: () => dice.next() };

  /** When each agent tries for the first time after the principal is back, counted from then. */
  function returns(awayMs: number): number[] {
    return Array.from({ length: 1000 }, () => {
      const backoff = new Backoff(options);
      let now = backoff.next();
      while (now < awayMs) {
        now += backoff.next();
      }
      return now - awayMs;
    });
  }

  test.each([1000, 5000, 30_000, 600_000])(`are back within 10 s after %d ms, seed ${seed}`, (awayMs) => {
    expect(Math.max(...returns(awayMs))).toBeLessThanOrEqual(10_000);
  });

  test.each([30_000, 600_000])(`do not come all at once after %d ms, seed ${seed}`, (awayMs) => {
    const perSecond = new Map<number, number>();
    for (const at of returns(awayMs)) {
      perSecond.set(Math.floor(at / 1000), (perSecond.get(Math.floor(at / 1000)) ?? 0) + 1);
    }
    expect(Math.max(...perSecond.values())).toBeLessThan(300);
  });
});
