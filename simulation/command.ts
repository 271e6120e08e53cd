import { parseArgs } from 'node:util';
import type { HistoryOptions, HistoryOutcome } from './simulate.ts';
import { type Ingredient, ingredients } from './unkindness.ts';

const usage = `Usage: npm run simulate -- [options]

Runs random histories of a hub and its clusters, with faults, and checks that both sides are equal at the end. Each seed is one
history of a hub with one principal, and one of a hub with several.

  --seeds N            how many seeds (1000)
  --from N             the first one (1)
  --seed N             one seed, printed line by line
  --principals WHICH   histories with \`one\` principal or with \`several\` only
  --unkind NAMES       histories that have all of these ingredients and no others, with commas in between:
                       ${Object.keys(ingredients).join(', ')}
  --stop-at-failure    stop at the first history that fails
`;

const options = {
  seeds: { type: 'string', default: '1000' },
  from: { type: 'string', default: '1' },
  seed: { type: 'string' },
  principals: { type: 'string' },
  unkind: { type: 'string' },
  'stop-at-failure': { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** How a history is told on the command line. */
export type TellerOptions = Pick<HistoryOptions, 'trace' | 'unkind'>;

/** Tells the history of a seed. */
type Teller = (seed: number, options: TellerOptions) => Promise<HistoryOutcome>;

/** Runs the simulator as a command, with histories of these kinds. */
export async function runSimulator(tellers: Readonly<Record<string, Teller>>): Promise<void> {
  try {
    const { values } = parseArgs({ options });
    if (values.help) {
      process.stdout.write(usage);
      return;
    }
    const chosen = Object.entries(tellers).filter(([name]) => name === (values.principals ?? name));
    if (chosen.length === 0) {
      throw wrong(`--principals must be one of ${Object.keys(tellers).join(', ')}`);
    }
    const unkind = values.unkind === undefined ? undefined : ingredientsOf(values.unkind);
    if (values.seed !== undefined) {
      await tellOne(wholeNumber('seed', values.seed), unkind, chosen);
    } else {
      const [from, count] = [wholeNumber('from', values.from), wholeNumber('seeds', values.seeds)];
      await tellMany(from, count, { stopsAtFailure: values['stop-at-failure'], unkind }, chosen);
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))) {
      throw error;
    }
    process.stderr.write(`${error.message}\n\n${usage}`);
    process.exitCode = 1;
  }
}

function wholeNumber(name: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) {
    throw wrong(`--${name} must be a whole number, not ${JSON.stringify(text)}`);
  }
  return Number(text);
}

function wrong(message: string): Error {
  return Object.assign(new Error(message), { code: 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE' });
}

function ingredientsOf(text: string): Ingredient[] {
  const names = text.split(',').filter((name) => name !== '');
  const unknown = names.filter((name) => !Object.hasOwn(ingredients, name));
  if (unknown.length > 0) {
    throw wrong(`--unkind has names that are none of ${Object.keys(ingredients).join(', ')}: ${unknown.join(', ')}`);
  }
  return names as Ingredient[];
}

async function tellOne(
  seed: number,
  unkind: TellerOptions['unkind'],
  tellers: readonly [string, Teller][],
): Promise<void> {
  for (const [, tell] of tellers) {
    const outcome = await tell(seed, { trace: (line) => console.log(line), unkind });
    console.log(outcome);
    process.exitCode = outcome.problems.length === 0 ? process.exitCode : 1;
  }
}

async function tellMany(
  from: number,
  count: number,
  { stopsAtFailure, unkind }: { readonly stopsAtFailure: boolean; readonly unkind: TellerOptions['unkind'] },
  tellers: readonly [string, Teller][],
): Promise<void> {
  const startedAt = performance.now();
  const totals = { failed: 0, events: 0, writes: 0, time: 0 };
  let replay = '';
  process.on('uncaughtExceptionMonitor', () => console.log(`a history ends this process (replay: ${replay})`));
  // Much fails in a history, and where it was thrown costs much to find out. One seed alone shows it.
  Error.stackTraceLimit = 0;
  for (let seed = from; seed < from + count; seed++) {
    for (const [name, tell] of tellers) {
      const same = unkind === undefined ? '' : ` --unkind '${unkind}'`;
      replay = `npm run simulate -- --principals ${name} --seed ${seed}${same}`;
      const { problems, events, writes, time } = await tell(seed, { unkind });
      totals.events += events;
      totals.writes += writes;
      totals.time += time;
      if (problems.length > 0) {
        totals.failed++;
        console.log(`seed ${seed} fails (replay: ${replay})\n  ${problems.join('\n  ')}`);
        process.exitCode = 1;
        if (stopsAtFailure) {
          return;
        }
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
