import { benchRest } from '../rest/main.ts';
import { scaleOptions } from './options.ts';

const help = `Usage: npm run bench -- idle [--from FOLDER ...] [--clusters N] [--seconds N]

Each program at rest: memory, and what it takes to start. Principal and agent with each other and a few Applications, the controller
after it has enrolled a fleet. A column for each folder of programs: a checkout, or what the image runs (npm run build writes it to
dist).

  --from FOLDER   as often as there are folders to compare (this checkout)
  --clusters N    of the controller; 0 leaves it out (50)
  --seconds N     how long nothing happens before memory is read (30)
`;

/** Applications of the one agent at rest. */
const fewApplications = 5;
const checkout = new URL('../..', import.meta.url).pathname;

/** Runs the benchmark and prints its tables. */
export async function benchIdle(args: string[]): Promise<void> {
  const options = scaleOptions(args, help, { seconds: 30, clusters: 50 }, ['from']);
  if (options !== undefined) {
    const { clusters, seconds, from = [checkout] } = options;
    await benchRest({ from, applications: fewApplications, clusters, seconds });
  }
}
