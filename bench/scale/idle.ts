import { setTimeout as sleep } from 'node:timers/promises';
import { agentNames } from '../load/options.ts';
import { Generator } from './generator.ts';
import { startScaleHub } from './hub.ts';
import { scaleOptions } from './options.ts';
import { type Principal, startPrincipal } from './principal.ts';
import { megabytes, print, seconds, table } from './table.ts';

const help = `Usage: npm run bench -- idle [--agents N] [--applications N] [--seconds N]

Agents are connected and nothing happens: memory and processor time of the principal. Once without a word from the agents, and
once with the cluster cache report that each managed agent sends every 10 s.

  --agents N         (1000)
  --applications N   on the hub, for all agents together (5000)
  --seconds N        how long each is looked at (30)
`;

/** What Node.js does once after a busy time must not count. */
const settleMs = 15_000;

/** Runs the benchmark and prints its table. */
export async function benchIdle(args: string[]): Promise<void> {
  const options = scaleOptions(args, help, { agents: 1_000, applications: 5_000, seconds: 30 });
  if (options === undefined) {
    return;
  }
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
