/**
 * `npm run simulate -- --seeds 200000 [--from 1]` runs many histories, `-- --seed 42` one, telling everything that happens.
 */
import { parseArgs } from 'node:util';
import { simulate } from './simulate.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    'stop-at-failure': { type: 'boolean', default: false },
  },
});

if (values.seed !== undefined) {
  const outcome = await simulate(Number(values.seed), (line) => console.log(line));
  console.log(outcome);
  process.exitCode = outcome.problems.length === 0 ? 0 : 1;
} else {
  await simulateMany(Number(values.from), Number(values.seeds));
}

async function simulateMany(from: number, count: number): Promise<void> {
  const startedAt = performance.now();
  const totals = { failed: 0, events: 0, writes: 0, time: 0 };
  for (let seed = from; seed < from + count; seed++) {
    const { problems, events, writes, time } = await simulate(seed);
    totals.events += events;
    totals.writes += writes;
    totals.time += time;
    if (problems.length > 0) {
      totals.failed++;
      console.log(`seed ${seed} fails (replay: npm run simulate -- --seed ${seed})\n  ${problems.join('\n  ')}`);
      process.exitCode = 1;
      if (values['stop-at-failure']) {
        return;
      }
    }
    if ((seed - from + 1) % 10_000 === 0) {
      console.log(`${seed - from + 1} seeds, ${totals.failed} failed`);
    }
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  const simulated = (totals.time / 3_600_000).toFixed(1);
  console.log(
    `${count} seeds in ${seconds.toFixed(1)} s: ${totals.failed} failed, ${totals.events} events, ${totals.writes} writes, ${simulated} simulated hours`,
  );
}
