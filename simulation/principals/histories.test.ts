import { queryObjects } from 'node:v8';
import { expect, test } from 'vitest';
import { effort, until } from '../../lib/base/testing.ts';
import { SimulatedReplica } from './replica.ts';
import { simulateSeveral } from './simulate-several.ts';

const first = Number(process.env.SIMULATION_SEED ?? '1');
const seeds = effort(100, 5_000);

test('a seed always gives the same history', async () => {
  const run = async () => {
    const lines: string[] = [];
    const outcome = await simulateSeveral(5, { trace: (line) => lines.push(line) });
    return { outcome, lines };
  };
  const once = await run();
  expect(once.lines.length).toBeGreaterThan(20);
  expect(await run()).toEqual(once);
});

test('nothing of a history stays in memory', async () => {
  // Tests of other files, in the same process, may have left theirs.
  const count = () => queryObjects(SimulatedReplica, { format: 'count' });
  const before = count();
  for (let seed = 1; seed <= 10; seed++) {
    await simulateSeveral(seed);
  }
  await until('the replicas to be collected', () => count() <= before);
});

test(`several principals share the agents in the histories ${first} to ${first + seeds - 1}`, async () => {
  const failed: string[] = [];
  for (let seed = first; seed < first + seeds; seed++) {
    const { problems } = await simulateSeveral(seed);
    if (problems.length > 0) {
      failed.push(`seed ${seed} (npm run simulate -- --principals several --seed ${seed}): ${problems.join('; ')}`);
    }
  }
  expect(failed).toEqual([]);
}, 600_000);
