import { setTimeout as sleep } from 'node:timers/promises';
import { type ArgoObject, applications as applicationType } from '../../e2e/pair/index.ts';
import { Informer } from '../../lib/kube/index.ts';
import { latencies, latencyHeading } from '../figures.ts';
import { agentNames } from '../load/options.ts';
import { Generator } from './generator.ts';
import { applicationName, type Hub, startHub } from './hub.ts';
import { scaleOptions } from './options.ts';
import { type Principal, startPrincipal } from './principal.ts';
import { usageOf } from './process-meter.ts';
import { milliseconds, print, table } from './table.ts';

const help = `Usage: npm run bench -- status [--agents N] [--applications N] [--per-second N] [--seconds N]

Agents report changed statuses: how long each takes from the change on its cluster to a watch event on the hub, and how many
writes to the hub's API server it costs. An agent sends the next status of an Application when the one before is
acknowledged; one that another follows before it is sent or written is skipped. The floor is a bare client that writes statuses
of the same size back to back: more than that the hub's API server does not take on this machine.

  --agents N         (100)
  --applications N   on the hub, for all agents together; all change in turn (1000)
  --per-second N     status changes of all agents together (1000)
  --seconds N        for how long (30)
`;

const floorMs = 5_000;
const floorWidth = 16;

/** Runs the benchmark and prints its tables. */
export async function benchStatus(args: string[]): Promise<void> {
  const options = scaleOptions(args, help, { agents: 100, applications: 1_000, 'per-second': 1_000, seconds: 30 });
  if (options === undefined) return;
  const { agents, applications, seconds } = options;
  const perAgent = Math.round(applications / agents);
  const names = agentNames(agents);
  const hub = await startHub();
  const ended = new AbortController();
  let principal: Principal | undefined;
  let generator: Generator | undefined;
  try {
    print(`A hub with ${agents} agents and ${perAgent} Applications for each is made …`);
    await hub.map(names);
    await hub.fill(names, perAgent);
    const delays: number[] = [];
    let lastSeenAt = 0;
    const hubView = new Informer<ArgoObject>({ client: hub.cluster.client, type: applicationType });
    hubView.subscribe({
      updated(old, now) {
        const changedAt = timeOfChange(now);
        if (changedAt === undefined || changedAt === timeOfChange(old)) return;
        lastSeenAt = performance.now();
        delays.push(performance.timeOrigin + lastSeenAt - changedAt);
      },
    });
    const watching = hubView.run(ended.signal);
    await hubView.synced();
    const floor = await bareWrites(hub, names, perAgent);
    principal = await startPrincipal(hub);
    generator = await Generator.start({ server: principal.server, pki: hub.pki, agents, applications: perAgent });
    await generator.allInSync(generator.connect());
    await generator.change(options['per-second'], 3);
    await quiet(delays);
    delays.length = 0;
    const apiServer = hub.cluster.apiServer.pid;
    const before = await Promise.all([hub.requests('applications'), principal.usage(), usageOf(apiServer)]);
    const began = performance.now();
    const changes = await generator.change(options['per-second'], seconds);
    await quiet(delays);
    const after = await Promise.all([hub.requests('applications'), principal.usage(), usageOf(apiServer)]);
    const writes = writesOf(after[0]) - writesOf(before[0]);
    const written = writes / ((lastSeenAt - began) / 1000);
    const skipped = changes.sent - writes;
    const perChange = (cpu: number) => milliseconds((1000 * cpu) / changes.made);
    print(
      table(
        [
          'status changes',
          'made',
          'superseded at agents',
          'sent',
          'superseded at the principal',
          'writes',
          'writes each',
        ],
        [
          [
            `${agents} agents, ${options['per-second']} a second for ${seconds} s`,
            ...[changes.made, changes.superseded, changes.sent, skipped, writes].map(String),
            (writes / changes.made).toFixed(3),
          ],
        ],
      ),
    );
    print(`\n${latencyHeading}`);
    print(latencies('from the change on its cluster to the watch event on the hub', delays));
    const [p50, p90, p99, greatest] = changes.acknowledgedMs.map((ms) => ms.toFixed(1).padStart(9));
    print(` ${'from sending to acknowledgement'.padEnd(52)}${p50}${p90}${p99}${greatest}   n=${changes.sent}`);
    print(
      `\n Floor: a bare client writes ${floor.perSecond.toFixed(0)} statuses a second, each of which costs the hub's API server ` +
        `${milliseconds(floor.cpuMs)} of CPU`,
    );
    print(
      ` Written: ${written.toFixed(0)} a second, so that each of the ${applications} Applications, if it changes without pause, ` +
        `has its turn every ${(applications / written).toFixed(1)} s`,
    );
    print(
      ` CPU for each change: principal ${perChange(after[1].cpuSeconds - before[1].cpuSeconds)}, ` +
        `hub API server ${perChange(after[2].cpuSeconds - before[2].cpuSeconds)}`,
    );
    ended.abort();
    await watching;
  } finally {
    ended.abort();
    await generator?.stop();
    await principal?.stop();
    await hub.stop();
  }
}

/** Writes statuses for a few seconds with a bare client, as many at a time as are useful. */
async function bareWrites(
  hub: Hub,
  names: readonly string[],
  perAgent: number,
): Promise<{ perSecond: number; cpuMs: number }> {
  const { client, apiServer } = hub.cluster;
  let writes = 0;
  const write = async () => {
    const namespace = names[writes % names.length] ?? '';
    const name = applicationName(Math.floor(writes / names.length) % perAgent);
    const health = { status: 'Progressing', message: `write ${writes++}` };
    await client.mergePatch(applicationType, { namespace, name }, { status: { health } });
  };
  const before = await usageOf(apiServer.pid);
  const began = performance.now();
  const worker = async () => {
    while (performance.now() - began < floorMs) await write();
  };
  await Promise.all(Array.from({ length: floorWidth }, worker));
  const seconds = (performance.now() - began) / 1000;
  const { cpuSeconds } = await usageOf(apiServer.pid);
  return { perSecond: writes / seconds, cpuMs: (1000 * (cpuSeconds - before.cpuSeconds)) / writes };
}

/** Resolves when nothing was added for a second. */
async function quiet(list: readonly unknown[]): Promise<void> {
  for (let before = -1; before !== list.length; await sleep(1_000)) before = list.length;
}

/** When the status was changed on the managed cluster, in milliseconds since the epoch: the generator writes it there. */
function timeOfChange({ status }: ArgoObject): number | undefined {
  const { message } = (status?.health ?? {}) as { message?: string };
  return message === undefined ? undefined : Number(message);
}

function writesOf(requests: Readonly<Record<string, number>>): number {
  return ['PATCH', 'PUT', 'POST', 'APPLY'].reduce((sum, verb) => sum + (requests[verb] ?? 0), 0);
}
