import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runChaos } from './run.ts';
import { verdictText } from './verdict.ts';

const help = `Usage: npm run chaos -- [--minutes N] [--seed N] [--hubs N] [--replicas N] [--clusters N] [--applications N]
                        [--edit-every MS] [--fault-every MS] [--failover-every MS] [--logs FOLDER]

A fleet of real processes is broken at random for a while, under load, and then must be as if nothing had happened: kills of
principals and agents, lost and cut networks, restarts of API servers and etcd, admission that refuses for a while, new certificates,
planned failovers to a second hub and the death of the active one. Then the checker compares all sides with what users have asked for. Exit code 0: everything is as it must be; 1: something was found; 2: the run failed.

  --minutes N        how long faults happen (10)
  --seed N           the same faults again (random)
  --hubs N           1, or 2: the second one follows the first (2)
  --replicas N       principals of each hub (3)
  --clusters N       managed clusters; every second agent is autonomous (4)
  --applications N   of each agent at the start; at most twice as many later (10)
  --edit-every MS    mean time between two edits of one agent's Applications (250)
  --fault-every MS   mean time between two faults (2500)
  --failover-every MS  mean time between two failovers (75000)
  --logs FOLDER      where the programs' logs go when something is found
`;

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', short: 'h' },
    ...Object.fromEntries(
      [
        'minutes',
        'seed',
        'hubs',
        'failover-every',
        'replicas',
        'clusters',
        'applications',
        'edit-every',
        'fault-every',
        'logs',
      ].map((name) => [name, { type: 'string' as const }]),
    ),
  },
});
const given = values as Readonly<Record<string, string | undefined>>;

function number(name: string, otherwise: number): number {
  const value = Number(given[name] ?? otherwise);
  if (!Number.isFinite(value) || value < 0) {
    process.stderr.write(`--${name} must be a number, not ${JSON.stringify(given[name])}\n`);
    process.exit(2);
  }
  return value;
}

if (values.help) {
  process.stdout.write(help);
} else {
  const seed = number('seed', Math.floor(Math.random() * 2 ** 31));
  process.stdout.write(`Seed ${seed}\n`);
  try {
    const verdict = await runChaos({
      seed,
      durationMs: number('minutes', 10) * 60_000,
      hubs: number('hubs', 2) === 1 ? 1 : 2,
      replicas: number('replicas', 3),
      clusters: number('clusters', 4),
      applications: number('applications', 10),
      editEveryMs: number('edit-every', 250),
      faultEveryMs: number('fault-every', 2_500),
      failoverEveryMs: number('failover-every', 75_000),
      logs: given.logs ?? join(tmpdir(), `chaos-${seed}`),
      log: (line) => process.stdout.write(`${line}\n`),
    });
    process.stdout.write(`\n${verdictText(verdict)}\n`);
    process.exitCode = verdict.findings.length === 0 ? 0 : 1;
  } catch (error) {
    process.stderr.write(`seed ${seed}: ${(error as Error).stack}\n`);
    process.exitCode = 2;
  }
  process.exit();
}
