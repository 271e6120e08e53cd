import { parseArgs } from 'node:util';
import { simulate } from './simulate.ts';

const usage = `Usage: npm run simulate -- [options]

Runs random histories of a hub and its clusters, with faults, and checks that both sides are equal at the end.

  --seeds N            how many histories (1000)
  --from N             seed of the first one (1)
  --seed N             one history, printed line by line
  --stop-at-failure    stop at the first history that fails
`;

const options = {
  seeds: { type: 'string', default: '1000' },
  from: { type: 'string', default: '1' },
  seed: { type: 'string' },
  'stop-at-failure': { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

try {
  const { values } = parseArgs({ options });
  if (values.help) {
    process.stdout.write(usage);
  } else if (values.seed !== undefined) {
    await simulateOne(wholeNumber('seed', values.seed));
  } else {
    const [from, count] = [wholeNumber('from', values.from), wholeNumber('seeds', values.seeds)];
    await simulateMany(from, count, values['stop-at-failure']);
  }
} catch (error) {
  if (!(error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))) {
    throw error;
  }
  process.stderr.write(`${error.message}\n\n${usage}`);
  process.exitCode = 1;
}

function wholeNumber(name: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) {
    const message = `--${name} must be a whole number, not ${JSON.stringify(text)}`;
    throw Object.assign(new Error(message), { code: 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE' });
  }
  return Number(text);
}

async function simulateOne(seed: number): Promise<void> {
  const outcome = await simulate(seed, (line) => console.log(line));
  console.log(outcome);
  process.exitCode = outcome.problems.length === 0 ? 0 : 1;
}

async function simulateMany(from: number, count: number, stopAtFailure: boolean): Promise<void> {
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
      if (stopAtFailure) {
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
