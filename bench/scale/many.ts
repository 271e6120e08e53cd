import { setTimeout as sleep } from 'node:timers/promises';
import { applications as applicationType } from '../../e2e/pair/index.ts';
import { agentNames } from '../load/options.ts';
import { Generator } from './generator.ts';
import { applicationName, type Hub, startHub } from './hub.ts';
import { inParallel } from './in-parallel.ts';
import { scaleOptions } from './options.ts';
import { type Principal, startPrincipal } from './principal.ts';
import { megabytes, milliseconds, print, seconds, table } from './table.ts';

const help = `Usage: npm run bench -- many [--agents N] [--applications N] [--changes N]

A hub with many Applications: how long the principal takes to start, the memory that it needs, alone and with all agents in
sync, and what one change of an Application costs it. The first row has a tenth of the agents and Applications: one change
costs the same in both.

  --agents N         (500)
  --applications N   on the hub, for all agents together (50000)
  --changes N        Applications that are changed, of agents taken at random (2000)
`;

const changesPerSecond = 100;
const idleSeconds = 10;

/** Runs the benchmark and prints its table. */
export async function benchMany(args: string[]): Promise<void> {
  const options = scaleOptions(args, help, { agents: 500, applications: 50_000, changes: 2_000 });
  if (options === undefined) return;
  const perAgent = Math.round(options.applications / options.agents);
  const names = agentNames(options.agents);
  const few = Math.max(1, Math.round(options.agents / 10));
  const hub = await startHub();
  try {
    const rows: string[][] = [];
    for (const [from, to] of [
      [0, few],
      [few, names.length],
    ] as const) {
      const some = names.slice(from, to);
      print(`${some.length} agents and ${some.length * perAgent} Applications are added to the hub …`);
      await hub.map(some);
      await hub.fill(some, perAgent);
      rows.push(await measured(hub, names.slice(0, to), perAgent, options.changes));
    }
    const heading = [
      'Applications',
      'start',
      'CPU',
      'RSS',
      'all in sync',
      'CPU',
      'RSS',
      'peak',
      'idle CPU/min',
      'CPU/change',
    ];
    print(table(heading, rows));
  } finally {
    await hub.stop();
  }
}

async function measured(hub: Hub, names: readonly string[], perAgent: number, changes: number): Promise<string[]> {
  const agents = names.length;
  let principal: Principal | undefined;
  let generator: Generator | undefined;
  try {
    principal = await startPrincipal(hub);
    generator = await Generator.start({ server: principal.server, pki: hub.pki, agents, applications: perAgent });
    const began = generator.connect();
    print(`The principal has started after ${seconds(principal.startSeconds)}; ${agents} agents connect …`);
    await generator.allInSync(began, 900_000);
    const syncSeconds = (Math.max(...generator.inSync.values()) - began) / 1000;
    const inSync = await principal.usage();
    await sleep(idleSeconds * 1000);

    const idle = await rate(principal, () => sleep(idleSeconds * 1000));
    const busy = await rate(principal, () => changeSome(hub, names, perAgent, changes, generator));
    const perChange = ((busy.cpuSeconds - (idle.cpuSeconds / idle.seconds) * busy.seconds) / changes) * 1000;
    const now = await principal.usage();
    return [
      `${agents * perAgent} of ${agents} agents`,
      seconds(principal.startSeconds),
      seconds(principal.atStart.cpuSeconds),
      megabytes(principal.atStart.rssBytes),
      seconds(syncSeconds),
      seconds(inSync.cpuSeconds - principal.atStart.cpuSeconds),
      megabytes(now.rssBytes),
      megabytes(now.peakRssBytes),
      seconds((idle.cpuSeconds / idle.seconds) * 60),
      milliseconds(perChange),
    ];
  } finally {
    await generator?.stop();
    await principal?.stop();
  }
}

/** Changes the specs of Applications at a steady pace, and waits until all agents have the changes. */
async function changeSome(
  hub: Hub,
  names: readonly string[],
  perAgent: number,
  changes: number,
  generator: Generator | undefined,
): Promise<void> {
  const { client } = hub.cluster;
  const before = (await generator?.count())?.changesReceived ?? 0;
  const began = performance.now();
  const indices = Array.from({ length: changes }, (_, index) => index);
  await inParallel(indices, 16, async (index) => {
    const wait = began + (index / changesPerSecond) * 1000 - performance.now();
    if (wait > 0) await sleep(wait);
    const namespace = names[Math.floor(Math.random() * names.length)] ?? '';
    const name = applicationName(Math.floor(Math.random() * perAgent));
    const spec = { source: { targetRevision: `change-${index}-${Date.now()}` } };
    await client.mergePatch(applicationType, { namespace, name }, { spec });
  });
  while (((await generator?.count())?.changesReceived ?? 0) - before < changes) {
    // Two changes of one Application may travel as one, when the first is not acknowledged yet.
    if (await isQuiet(generator)) return;
  }
}

/** Whether agents got nothing for a second. */
async function isQuiet(generator: Generator | undefined): Promise<boolean> {
  const before = (await generator?.count())?.changesReceived;
  await sleep(1_000);
  return before === (await generator?.count())?.changesReceived;
}

async function rate(
  principal: Principal,
  act: () => Promise<unknown>,
): Promise<{ cpuSeconds: number; seconds: number }> {
  const before = await principal.usage();
  const began = performance.now();
  await act();
  const after = await principal.usage();
  return { cpuSeconds: after.cpuSeconds - before.cpuSeconds, seconds: (performance.now() - began) / 1000 };
}
