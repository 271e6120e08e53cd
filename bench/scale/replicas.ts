import { setTimeout as sleep } from 'node:timers/promises';
import { type ArgoObject, pairApplications as applicationType, freePort } from '../../e2e/pair/index.ts';
import { Informer } from '../../lib/kube/index.ts';
import { percentile } from '../figures.ts';
import { agentNames } from '../load/options.ts';
import { Generator } from './generator.ts';
import { applicationName, type Hub, startScaleHub } from './hub.ts';
import { scaleOptions } from './options.ts';
import { type Principal, startPrincipal } from './principal.ts';
import { ShownStatuses } from './shown-statuses.ts';
import { megabytes, milliseconds, print, seconds, table } from './table.ts';

const help = `Usage: npm run bench -- replicas [--agents N] [--applications N] [--per-second N] [--seconds N] [--most N]

The same fleet at 1, 2 and 3 replicas of the principal: how many agents a second get all that they are to have, what each replica
takes, and what one change of an Application costs them together. Then one of the last ones is killed with SIGKILL in the middle
of edits and reports: when its agents are in sync with another one, how late reports are meanwhile, and whether an edit is lost
or delivered twice. All share one machine: agents a second do not rise when its processors are busy.

  --agents N         (300)
  --applications N   on the hub, for all agents together (3000)
  --per-second N     edits a second, and status changes a second (50)
  --seconds N        for how long (20)
  --most N           replicas in the last part (3)
`;

/** For how long nothing must come before everything counts as arrived. */
const silenceMs = 2_000;
const takeoverLimitMs = 120_000;

interface Context {
  readonly hub: Hub;
  readonly names: readonly string[];
  readonly perAgent: number;
  readonly perSecond: number;
  readonly duration: number;
  readonly shown: ShownStatuses;
}

interface Fleet {
  readonly principals: readonly Principal[];
  readonly generator: Generator;
}

/** Runs the benchmark and prints its tables. */
export async function benchReplicas(args: string[]): Promise<void> {
  const options = scaleOptions(args, help, {
    agents: 300,
    applications: 3_000,
    'per-second': 50,
    seconds: 20,
    most: 3,
  });
  if (options === undefined) {
    return;
  }
  const perAgent = Math.max(1, Math.round(options.applications / options.agents));
  const names = agentNames(options.agents);
  const hub = await startScaleHub();
  const ended = new AbortController();
  try {
    print(`A hub with ${names.length} agents and ${perAgent} Applications for each is made …`);
    await hub.map(names);
    await hub.fill(names, perAgent);
    const shown = new ShownStatuses();
    const view = new Informer<ArgoObject>({ client: hub.cluster.client, type: applicationType });
    view.subscribe({ updated: (old, now) => shown.take(old, now) });
    const watching = view.run(ended.signal);
    await view.synced();
    const context = { hub, names, perAgent, perSecond: options['per-second'], duration: options.seconds, shown };
    const rows: string[][] = [];
    for (let count = 1; count <= options.most; count++) {
      rows.push(await withFleet(context, count, (fleet, began) => measured(context, fleet, began)));
    }
    const heading = ['replicas', 'all in sync', 'agents/s', 'CPU', 'RSS of each', 'CPU/edit', 'reports p50', 'p99'];
    print(`\n${table(heading, rows)}`);
    if (options.most > 1) {
      print(`\nOne of ${options.most} is killed in the middle of ${options.seconds} s of edits and reports …`);
      await withFleet(context, options.most, async (fleet, began) => {
        await fleet.generator.allInSync(began);
        await killed(context, fleet);
      });
    }
    ended.abort();
    await watching;
  } finally {
    ended.abort();
    await hub.stop();
  }
}

/** Starts replicas and agents, which connect at once, for as long as `use` takes. */
async function withFleet<T>(
  { hub, names, perAgent }: Context,
  count: number,
  use: (fleet: Fleet, began: number) => Promise<T>,
): Promise<T> {
  const principals: Principal[] = [];
  let generator: Generator | undefined;
  try {
    for (let number = 0; number < count; number++) {
      const address = `127.0.0.1:${await freePort()}`;
      const sharing = ['--enable-replicas', `--replica-listen=${address}`, `--replica-address=${address}`];
      principals.push(await startPrincipal(hub, sharing));
    }
    const server = principals.map((one) => one.server).join(',');
    generator = await Generator.start({ server, pki: hub.pki, agents: names.length, applications: perAgent });
    return await use({ principals, generator }, generator.connect());
  } finally {
    await generator?.stop();
    await Promise.all(principals.map((one) => one.stop()));
  }
}

async function measured(context: Context, { principals, generator }: Fleet, began: number): Promise<string[]> {
  const { names, shown } = context;
  const atStart = principals.reduce((sum, one) => sum + one.atStart.cpuSeconds, 0);
  await generator.allInSync(began);
  const inSync = (Math.max(...generator.inSync.values()) - began) / 1000;
  const connecting = (await cpuOf(principals)) - atStart;
  await silence(generator, shown);

  const before = await cpuOf(principals);
  const edits = await edit(context, generator);
  const editing = ((await cpuOf(principals)) - before) / edits.made;
  shown.clear();
  await generator.change(context.perSecond, context.duration);
  await silence(generator, shown);
  const memory = await Promise.all(principals.map(async (one) => megabytes((await one.usage()).rssBytes)));
  return [
    String(principals.length),
    seconds(inSync),
    (names.length / inSync).toFixed(0),
    seconds(connecting),
    memory.join(' '),
    milliseconds(editing * 1000),
    milliseconds(percentile(shown.delays, 50)),
    milliseconds(percentile(shown.delays, 99)),
  ];
}

/** SIGKILL for the first replica while edits and reports go on. */
async function killed(context: Context, { principals, generator }: Fleet): Promise<void> {
  const { duration, perSecond, shown } = context;
  const [victim] = principals;
  await silence(generator, shown);
  shown.clear();
  const work = Promise.all([edit(context, generator), generator.change(perSecond, duration)]);
  await sleep((duration / 3) * 1000);
  const holders = new Map(generator.connected);
  const killedAt = performance.timeOrigin + performance.now();
  await victim?.kill();
  const [edits] = await work;
  const moved = () =>
    [...generator.connected].filter(([agent, at]) => at !== holders.get(agent)).map(([agent]) => agent);
  const left = () => moved().filter((agent) => (generator.inSync.get(agent) ?? 0) < killedAt).length;
  for (const limit = performance.now() + takeoverLimitMs; left() > 0 && performance.now() < limit; ) {
    await sleep(100);
  }
  await silence(generator, shown);
  const received = edits.received();
  const times = moved().flatMap((agent) => (generator.inSync.get(agent) ?? 0) - killedAt);
  const meanwhile = shown.delays;
  print(
    `\n${table(
      ['One of them is killed', 'agents moved', 'in sync p50', 'max', 'reports p50', 'p99', 'edits', 'lost', 'twice'],
      [
        [
          `${principals.length} replicas`,
          String(times.length),
          milliseconds(percentile(times, 50)),
          milliseconds(Math.max(0, ...times)),
          milliseconds(percentile(meanwhile, 50)),
          milliseconds(percentile(meanwhile, 99)),
          String(edits.made),
          String(Math.max(0, edits.made - (await received))),
          String(Math.max(0, (await received) - edits.made)),
        ],
      ],
    )}`,
  );
}

let round = 0;

/** Edits Applications at a steady pace, each at most once, so that no two edits become one; resolves when all have arrived. */
async function edit(
  { hub, names, perAgent, perSecond, duration }: Context,
  generator: Generator,
): Promise<{ made: number; received: () => Promise<number> }> {
  const before = (await generator.count()).changesReceived;
  const received = async () => (await generator.count()).changesReceived - before;
  const made = Math.min(names.length * perAgent, Math.round(perSecond * duration));
  const began = performance.now();
  const targetRevision = `round-${++round}`;
  for (let index = 0; index < made; index++) {
    await sleep(Math.max(0, began + (1000 * index) / perSecond - performance.now()));
    const key = {
      namespace: names[index % names.length] ?? '',
      name: applicationName(Math.floor(index / names.length)),
    };
    await hub.cluster.client.mergePatch(applicationType, key, { spec: { source: { targetRevision } } });
  }
  return { made, received };
}

/** Resolves when nothing has come for a while, in either direction. */
async function silence(generator: Generator, shown: ShownStatuses): Promise<void> {
  for (let before = ''; ; await sleep(silenceMs)) {
    const now = `${(await generator.count()).changesReceived} ${shown.delays.length}`;
    if (now === before) {
      return;
    }
    before = now;
  }
}

async function cpuOf(principals: readonly Principal[]): Promise<number> {
  const usages = await Promise.all(principals.map((one) => one.usage()));
  return usages.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
}
