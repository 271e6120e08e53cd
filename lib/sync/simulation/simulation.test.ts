import { expect, test } from 'vitest';
import { simulate } from './simulate.ts';

const seeds = 1_200;

test(`both sides are equal and at rest after ${seeds} histories of edits and faults`, async () => {
  const first = Number(process.env.SIMULATION_SEED ?? '1');
  const failed: string[] = [];
  for (let seed = first; seed < first + seeds; seed++) {
    const { problems } = await simulate(seed);
    if (problems.length > 0) {
      failed.push(`seed ${seed} (replay: npm run simulate -- --seed ${seed}): ${problems.join('; ')}`);
    }
  }
  expect(failed).toEqual([]);
}, 60_000);

test('a seed always tells the same history', async () => {
  const tell = async () => {
    const lines: string[] = [];
    const outcome = await simulate(7, (line) => lines.push(line));
    return { outcome, lines };
  };
  const told = await tell();
  expect(told.lines.length).toBeGreaterThan(20);
  expect(await tell()).toEqual(told);
});
