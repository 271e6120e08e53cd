import { setTimeout as sleep } from 'node:timers/promises';
import { agentNames, Generator } from '../load/generator.ts';
import { benchOptions } from '../options.ts';
import { describedProcesses, processesOf, secondsBetween, usageHeading, usageRows } from '../processes.ts';
import { countsBetween, describedRequests } from '../requests.ts';
import { megabytes, milliseconds, print, seconds, table } from '../table.ts';
import { editSome } from './edits.ts';
import { type Hub, startScaleHub } from './hub.ts';
import { type Principal, startPrincipal } from './principal.ts';

const help = `Usage: npm run bench -- many [--agents N] [--applications N] [--changes N] [--limit SECONDS]

A hub with many Applications: how long the principal takes to start, the memory that it needs, alone and with all agents in
sync, what one change of an Application costs it, and what it costs when it is restarted and all agents come back. The first
row has a tenth of the agents and Applications: one change costs the same in both. What each process of the benchmark used of
the processors and asked of the hub's API server is told for each part; they share one machine.

  --agents N         (500)
  --applications N   on the hub, for all agents together (50000)
  --changes N        edits, of one agent after the other (2000)
  --limit SECONDS    for how long each part is waited for; then it is said how far it came (600)
`;

const idleSeconds = 10;
/** Nothing of what is asked of the hub's API server after so much silence belongs to what was before. */
const settleMs = 3_000;

interface Options {
  readonly perAgent: number;
  readonly changes: number;
  readonly limit: number;
}

/** Runs the benchmark and prints its tables. */
export async function benchMany(args: string[]): Promise<void> {
  const options = benchOptions(args, help, { agents: 500, applications: 50_000, changes: 2_000, limit: 600 });
  if (options === undefined) {
    return;
  }
  const perAgent = Math.round(options.applications / options.agents);
  const names = agentNames(options.agents);
  const few = Math.max(1, Math.round(options.agents / 10));
  const hub = await startScaleHub();
  try {
    const rows: string[][] = [];
    for (const [from, to] of [
      [0, few],
      [few, names.length],
    ] as const) {
      const some = names.slice(from, to);
      print(`\n${some.length} agents and ${some.length * perAgent} Applications are added to the hub …`);
      await hub.map(some);
      await hub.fill(some, perAgent, (created) => print(` ${created} Applications are there`));
      rows.push(...(await measured(hub, names.slice(0, to), { ...options, perAgent })));
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
      'writes/change',
    ];
    print(`\n${table(heading, rows)}`);
  } finally {
    await hub.stop();
  }
}

/** A principal and its fleet: first agents that have nothing, then the same ones when the principal is started anew. */
async function measured(hub: Hub, names: readonly string[], options: Options): Promise<string[][]> {
  const { perAgent } = options;
  const size = `${names.length * perAgent} of ${names.length} agents`;
  let principal: Principal | undefined;
  let generator: Generator | undefined;
  try {
    principal = await startPrincipal(hub);
    const { server, startSeconds } = principal;
    const fleet = await Generator.start({ server, pki: hub.pki, agents: names, applications: perAgent });
    print(`The principal has started after ${seconds(startSeconds)}; ${names.length} agents connect …`);
    generator = fleet;
    const context = { hub, principal, generator: fleet };
    const first = await untilInSync(`${size}, have nothing`, context, options, () => fleet.connect());
    if (first === undefined) {
      return [[size, ...startOf(principal), 'not reached']];
    }

    await settled(principal);
    const idle = await rate(principal, () => sleep(idleSeconds * 1000));
    const before = await hub.requests();
    const busy = await rate(principal, () => changeSome(hub, names, options, fleet));
    const made = countsBetween(before, await hub.requests());
    const perChange = ((busy.cpuSeconds - (idle.cpuSeconds / idle.seconds) * busy.seconds) / options.changes) * 1000;
    // The change itself is one.
    const writes = ((made.get('PATCH applications') ?? 0) - options.changes) / options.changes;
    const now = await principal.usage();
    const row = [
      size,
      ...startOf(principal),
      ...first,
      megabytes(now.rssBytes),
      megabytes(now.peakRssBytes),
      seconds((idle.cpuSeconds / idle.seconds) * 60),
      milliseconds(perChange),
      writes.toFixed(2),
    ];
    const again = await restarted(`${size}, come back`, context, options, (next) => {
      principal = next;
    });
    return [row, again];
  } finally {
    await generator?.stop();
    await principal?.stop();
  }
}

interface Context {
  readonly hub: Hub;
  readonly principal: Principal;
  readonly generator: Generator;
}

/** The principal is started anew on the same port: the agents have everything already. */
async function restarted(
  what: string,
  { hub, principal: former, generator }: Context,
  options: Options,
  replaced: (principal: Principal) => void,
): Promise<string[]> {
  await former.stop();
  const { port } = new URL(`tcp://${former.server}`);
  const principal = await startPrincipal(hub, { port: Number(port) });
  replaced(principal);
  print(`The principal was restarted, which took ${seconds(principal.startSeconds)}; the agents come back …`);
  const began = performance.timeOrigin + performance.now();
  const figures = await untilInSync(what, { hub, principal, generator }, options, () => began);
  const now = await principal.usage();
  return [
    what,
    ...startOf(principal),
    ...(figures ?? ['not reached', '']),
    megabytes(now.rssBytes),
    megabytes(now.peakRssBytes),
  ];
}

function startOf({ startSeconds, atStart }: Principal): string[] {
  return [seconds(startSeconds), seconds(atStart.cpuSeconds), megabytes(atStart.rssBytes)];
}

/** Waits until all agents are in sync, and tells what that cost whom. Returns time and CPU; undefined: not within the limit. */
async function untilInSync(
  what: string,
  context: Context,
  { limit }: Options,
  begin: () => number,
): Promise<string[] | undefined> {
  const { hub, principal, generator } = context;
  const [processes, requests, counts] = await Promise.all([
    processesOf(hub.cluster, context),
    hub.requests(),
    generator.count(),
  ]);
  const events = await eventsOf(principal);
  const began = begin();
  const elapsed = () => (performance.timeOrigin + performance.now() - began) / 1000;
  const left = await generator.inSyncWithin(began, limit * 1000, async () => {
    const [described, used] = await Promise.all([generator.described(), processesOf(hub.cluster, context)]);
    print(` after ${elapsed().toFixed(0)} s: ${described}\n   ${describedProcesses(used)}`);
  });
  const lasted = elapsed();
  const used = await processesOf(hub.cluster, context);
  const now = await eventsOf(principal);
  await sleep(settleMs);
  const asked = countsBetween(requests, await hub.requests());
  const { losses } = await generator.count();
  print(`\n${table(usageHeading(`${what}: until all are in sync`), usageRows(processes, used))}`);
  print(` events sent to agents: ${now.sent - events.sent}, received: ${now.received - events.received}`);
  print(` asked of the hub's API server: ${describedRequests(asked)}`);
  if (losses > counts.losses) {
    print(` connections lost: ${losses - counts.losses}`);
  }
  if (left > 0) {
    print(` ${left} agents are not in sync after ${lasted.toFixed(0)} s: ${await generator.described()}\n`);
    return undefined;
  }
  print('');
  return [seconds(lasted), seconds(secondsBetween(processes, used)('principal'))];
}

async function eventsOf(principal: Principal): Promise<{ sent: number; received: number }> {
  const [sent, received] = await Promise.all([
    principal.metric('principal_events_sent'),
    principal.metric('principal_events_received'),
  ]);
  return { sent, received };
}

/** Edits Applications, and waits until all agents have the changes. */
async function changeSome(
  hub: Hub,
  names: readonly string[],
  { perAgent, changes, limit }: Options,
  generator: Generator,
): Promise<void> {
  const before = (await generator.count()).changesReceived;
  const began = performance.now();
  await editSome(hub, names, { perAgent, count: changes });
  while ((await generator.count()).changesReceived - before < changes) {
    // Two edits of one Application may travel as one, when the first is not acknowledged yet.
    if ((await isQuiet(generator)) || performance.now() - began > limit * 1000) {
      return;
    }
  }
}

/** Waits until memory of the start is given back and nothing else is left to do: what it uses does not get less any more. */
async function settled(principal: Principal): Promise<void> {
  let former = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 24; round++) {
    const { cpuSeconds } = await rate(principal, () => sleep(5_000));
    if (cpuSeconds > former * 0.8) {
      return;
    }
    former = cpuSeconds;
  }
}

/** Whether agents got nothing for a second. */
async function isQuiet(generator: Generator): Promise<boolean> {
  const before = (await generator.count()).changesReceived;
  await sleep(1_000);
  return before === (await generator.count()).changesReceived;
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
