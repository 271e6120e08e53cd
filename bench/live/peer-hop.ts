import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';

const help = `Usage: npm run bench -- hop [--samples N]

An object is read through the resource proxy of the principal that has the agent, and of another one, which passes the request
on, in turns. The agent answers at once, and all share one process, so that the difference is what one hop costs.

  --samples N  requests each way (2000)
`;

/** Runs the benchmark, and prints what a hop costs. */
export async function benchHop(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { samples: { type: 'string', default: '2000' }, help: { type: 'boolean' } },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const script = new URL('../../principal/live/testing/one-hop.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, values.samples], { stdio: 'inherit' });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) {
    throw new Error(`the measurement ended with code ${code}`);
  }
}
