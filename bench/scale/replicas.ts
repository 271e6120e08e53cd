import { type ArgoObject, pairApplications as applicationType } from '../../e2e/pair/index.ts';
import { Informer } from '../../lib/kube/index.ts';
import { percentile } from '../figures.ts';
import { agentNames } from '../load/options.ts';
import { startScaleHub } from './hub.ts';
import { scaleOptions } from './options.ts';
import type { Principal } from './principal.ts';
import { chosenFaults, replicaFaults } from './replica-faults.ts';
import { editAll, type ReplicaContext, type ReplicaFleet, silence, withReplicas } from './replica-fleet.ts';
import { ShownStatuses } from './shown-statuses.ts';
import { megabytes, milliseconds, print, seconds, table } from './table.ts';
import { underFault, underFaultHeading } from './under-fault.ts';

const help = `Usage: npm run bench -- replicas [--agents N] [--applications N] [--per-second N] [--seconds N] [--most N]
                                 [--fault NAME ...]

The same fleet at 1, 2 and 3 replicas of the principal: how many agents a second get all that they are to have, what each replica
takes, and what one change of an Application costs them together. Then faults in the middle of edits and reports, each with a
new fleet: when the agents that had to move are in sync again, how late edits and reports are meanwhile, and whether an edit is
lost or delivered twice. All share one machine: agents a second do not rise when its processors are busy.

  --agents N         (300)
  --applications N   on the hub, for all agents together (3000)
  --per-second N     edits a second, and status changes a second (50)
  --seconds N        for how long (20)
  --most N           replicas in the last part (3)
  --fault NAME       only this one; may be repeated:
${Object.entries(replicaFaults)
  .map(([name, { summary }]) => `                       ${name.padEnd(12)}${summary}\n`)
  .join('')}`;

/** Runs the benchmark and prints its tables. */
export async function benchReplicas(args: string[]): Promise<void> {
  const defaults = { agents: 300, applications: 3_000, 'per-second': 50, seconds: 20, most: 3 };
  const options = scaleOptions(args, help, defaults, ['fault']);
  if (options === undefined) {
    return;
  }
  const faults = chosenFaults(options.fault);
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
      print(`${count} of at most ${options.most} replicas …`);
      rows.push(await withReplicas(context, count, (fleet, began) => measured(context, fleet, began)));
    }
    const heading = ['replicas', 'all in sync', 'agents/s', 'CPU', 'RSS of each', 'CPU/edit', 'reports p50', 'p99'];
    print(`\n${table(heading, rows)}`);
    if (options.most > 1) {
      const faulty: string[][] = [];
      for (const fault of faults) {
        print(`\n${fault}: ${replicaFaults[fault].summary} …`);
        faulty.push(await underFault(context, options.most, fault));
      }
      print(`\n${table(underFaultHeading(options.most), faulty)}`);
    }
    ended.abort();
    await watching;
  } finally {
    ended.abort();
    await hub.stop();
  }
}

async function measured(
  context: ReplicaContext,
  { principals, generator }: ReplicaFleet,
  began: number,
): Promise<string[]> {
  const { names, shown } = context;
  const atStart = principals.reduce((sum, one) => sum + one.atStart.cpuSeconds, 0);
  await generator.allInSync(began);
  const inSync = (Math.max(...generator.inSync.values()) - began) / 1000;
  const connecting = (await cpuOf(principals)) - atStart;
  await silence(generator, shown);

  const before = await cpuOf(principals);
  const edits = await editAll(context, generator);
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

async function cpuOf(principals: readonly Principal[]): Promise<number> {
  const usages = await Promise.all(principals.map((one) => one.usage()));
  return usages.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0);
}
