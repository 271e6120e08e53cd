import { setTimeout as sleep } from 'node:timers/promises';
import { agentNames } from '../load/options.ts';
import { benchRest } from '../rest/main.ts';
import { Generator } from './generator.ts';
import { startScaleHub } from './hub.ts';
import { scaleOptions } from './options.ts';
import { type Principal, startPrincipal } from './principal.ts';
import { megabytes, print, seconds, table } from './table.ts';

const help = `Usage: npm run bench -- idle [--from FOLDER ...] [--clusters N] [--agents N] [--applications N] [--seconds N]

First each program at rest: memory, and what it takes to start. Principal and agent with each other and a few Applications, the
controller after it has enrolled a fleet. A column for each folder of programs: a checkout, or what the image runs
(npm run build writes it to dist).

Then agents are connected and nothing happens: memory and processor time of the principal. Once without a message from the
agents, and once with the cluster cache report that each managed agent sends every 10 s.

  --from FOLDER      programs at rest, as often as there are folders to compare (this checkout)
  --clusters N       clusters of the controller at rest; 0 leaves it out (50)
  --agents N         0 leaves the second part out (1000)
  --applications N   on the hub, for all agents together (5000)
  --seconds N        how long each is looked at (30)
`;

/** Applications of the one agent at rest. */
const fewApplications = 5;
const checkout = new URL('../..', import.meta.url).pathname;

/** What Node.js does once after a busy time must not count. */
const settleMs = 15_000;

/** Runs the benchmark and prints its tables. */
export async function benchIdle(args: string[]): Promise<void> {
  const options = scaleOptions(args, help, { agents: 1_000, applications: 5_000, seconds: 30, clusters: 50 }, ['from']);
  if (options === undefined) {
    return;
  }
  const { agents, applications, clusters, seconds: lasting, from = [checkout] } = options;
  await benchRest({ from, applications: fewApplications, clusters, seconds: lasting });
  if (agents > 0) {
    await benchManyIdle({ agents, applications, seconds: lasting });
  }
}

async function benchManyIdle(options: { agents: number; applications: number; seconds: number }): Promise<void> {
  const { agents, applications } = options;
  const perAgent = Math.round(applications / agents);
  const names = agentNames(agents);
  const hub = await startScaleHub();
  let principal: Principal | undefined;
  let generator: Generator | undefined;
  try {
    print(`A hub with ${agents} agents and ${perAgent} Applications for each is made …`);
    await hub.map(names);
    await hub.fill(names, perAgent);
    principal = await startPrincipal(hub);
    const rows = [await measured('before any agent is there', principal, 1_000)];
    generator = await Generator.start({ server: principal.server, pki: hub.pki, agents, applications: perAgent });
    const began = generator.connect();
    await generator.allInSync(began);
    const lasts = Math.round(2 * (settleMs / 1000 + options.seconds));
    print(`All are in sync; now they are looked at, which takes ${lasts} s …`);
    await sleep(settleMs);
    rows.push(await measured('silent', principal, options.seconds * 1000));
    generator.sendClusterCacheInfo(10);
    await sleep(settleMs);
    rows.push(await measured('cluster cache reports', principal, options.seconds * 1000));
    const { losses } = await generator.count();
    const heading = [`${agents} agents idle`, 'CPU per minute', 'RSS', 'peak RSS', 'heap used', 'outside the heap'];
    print(table(heading, rows));
    if (losses > 0) {
      print(` ${losses} connections were lost meanwhile`);
    }
  } finally {
    await generator?.stop();
    await principal?.stop();
    await hub.stop();
  }
}

async function measured(what: string, principal: Principal, forMs: number): Promise<string[]> {
  const before = await principal.usage();
  const began = performance.now();
  await sleep(forMs);
  const after = await principal.usage();
  const perMinute = ((after.cpuSeconds - before.cpuSeconds) / (performance.now() - began)) * 60_000;
  return [
    what,
    seconds(perMinute),
    megabytes(after.rssBytes),
    megabytes(after.peakRssBytes),
    megabytes(await principal.metric('nodejs_heap_size_used_bytes')),
    megabytes(await principal.metric('nodejs_external_memory_bytes')),
  ];
}
