import { expect, test } from 'vitest';
import { effort } from '../lib/base/testing.ts';
import { simulate } from './simulate.ts';

/** How many histories each of the files `histories-<part>.test.ts` runs; the files run in parallel. */
const seeds = effort(200, 1_000);

/** Both sides are equal and at rest after histories of edits and faults. */
export function testHistories(part: number): void {
  const first = Number(process.env.SIMULATION_SEED ?? '1') + (part - 1) * seeds;
  test(`both sides are equal and at rest after the histories ${first} to ${first + seeds - 1}`, async () => {
    const failed: string[] = [];
    for (let seed = first; seed < first + seeds; seed++) {
      const { problems } = await simulate(seed);
      if (problems.length > 0) {
        failed.push(`seed ${seed} (replay: npm run simulate -- --seed ${seed}): ${problems.join('; ')}`);
      }
    }
    expect(failed).toEqual([]);
  }, 300_000);
}
