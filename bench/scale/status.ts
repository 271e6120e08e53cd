import { setTimeout as sleep } from 'node:timers/promises';
import { type ArgoObject, pairApplications as applicationType } from '../../e2e/pair/index.ts';
import { Informer } from '../../lib/kube/index.ts';
import { latencies, latencyHeading, percentile } from '../figures.ts';
import { agentNames } from '../load/options.ts';
import { Generator } from './generator.ts';
import { applicationName, type Hub, startScaleHub } from './hub.ts';
import { scaleOptions } from './options.ts';
import { type Principal, startPrincipal } from './principal.ts';
import { usageOf } from './process-meter.ts';
import { processesOf, usageHeading, usageRows } from './processes.ts';
import { describedRequests, requestsBetween, writesOf } from './requests.ts';
import { ShownStatuses } from './shown-statuses.ts';
import { milliseconds, print, table } from './table.ts';

const help = `Usage: npm run bench -- status [--agents N] [--applications N] [--per-second N] [--seconds N]

Agents report changed statuses: how long each takes from the change on its cluster to a watch event on the hub, and how many
writes to the hub's API server it costs. An agent sends the next status of an Application when the one before is
acknowledged; one that another follows before it is sent or written is skipped. The floor is a bare client that writes statuses
of the same size back to back, before and after: more than that the hub's API server does not take on this machine. Where more
changes than that, each Application can have its turn no oftener than all of them together take; a delay is good when it is
not longer than such a turn, and it is fair when all Applications and all agents have their turns alike.

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
  if (options === undefined) {
    return;
  }
  const { agents, applications, seconds: duration } = options;
  const perAgent = Math.round(applications / agents);
  const names = agentNames(agents);
  const hub = await startScaleHub();
  const ended = new AbortController();
  let principal: Principal | undefined;
  let generator: Generator | undefined;
  try {
    print(`A hub with ${agents} agents and ${perAgent} Applications for each is made …`);
    await hub.map(names);
    await hub.fill(names, perAgent);
    const shown = new ShownStatuses();
    const hubView = new Informer<ArgoObject>({ client: hub.cluster.client, type: applicationType });
    hubView.subscribe({ updated: (old, now) => shown.take(old, now) });
    const watching = hubView.run(ended.signal);
    await hubView.synced();
    const floorBefore = await bareWrites(hub, names, perAgent);
    principal = await startPrincipal(hub);
    generator = await Generator.start({ server: principal.server, pki: hub.pki, agents, applications: perAgent });
    await generator.allInSync(generator.connect());
    print(`All are in sync; statuses change for a few seconds, and then for ${duration} s that count …`);
    await generator.change(options['per-second'], 3);
    await quiet(shown);
    shown.clear();
    const parts = { hub, principal, generator };
    const [requests, processes] = await Promise.all([hub.requests(), processesOf(parts)]);
    const began = performance.now();
    const changes = await generator.change(options['per-second'], duration);
    await quiet(shown);
    const lasted = (shown.lastAt - began) / 1000;
    const used = await processesOf(parts);
    const made = requestsBetween(requests, await hub.requests());
    const floorAfter = await bareWrites(hub, names, perAgent);
    const writes = writesOf(made, 'applications');
    const skipped = changes.sent - writes;
    const heading = [
      '',
      'made',
      'superseded at agents',
      'sent',
      'superseded at the principal',
      'writes',
      'writes each',
    ];
    const figures = [changes.made, changes.superseded, changes.sent, skipped, writes].map(String);
    const what = `${agents} agents, ${options['per-second']} status changes a second for ${duration} s`;
    print(`\n${table(heading, [[what, ...figures, (writes / changes.made).toFixed(3)]])}`);
    print(` asked of the hub's API server: ${describedRequests(made)}`);

    const written = writes / lasted;
    const floor = (floorBefore.perSecond + floorAfter.perSecond) / 2;
    const turnMs = (1000 * applications) / Math.min(floor, options['per-second']);
    print(`\n${latencyHeading}`);
    const changing = shown.delays.filter((_, index) => (shown.seenAt[index] ?? 0) <= began + duration * 1000);
    print(latencies('from the change on its cluster to its watch event', shown.delays));
    print(latencies('  of these, while statuses changed', changing));
    print(latencies('between two statuses of one Application', shown.intervals));
    const [p50, p90, p99, greatest] = changes.acknowledgedMs.map((ms) => ms.toFixed(1).padStart(9));
    print(` ${'from sending to acknowledgement'.padEnd(52)}${p50}${p90}${p99}${greatest}   n=${changes.sent}`);
    const counts = names.map((agent) => shown.ofAgent.get(agent) ?? 0);
    print(` Statuses shown of one agent: ${Math.min(...counts)} at least, ${Math.max(...counts)} at most`);
    print(
      `\n Floor: a bare client writes ${floorBefore.perSecond.toFixed(0)} statuses a second before and ` +
        `${floorAfter.perSecond.toFixed(0)} after, each of which costs the hub's API server ${milliseconds(floorBefore.cpuMs)} ` +
        'of CPU',
    );
    print(
      ` Written: ${written.toFixed(0)} a second, ${share(written, floor)} of that. Each of ${applications} Applications that ` +
        `change without pause can have its turn every ${(turnMs / 1000).toFixed(2)} s at the floor's pace: the delay's p99 is ` +
        `${(percentile(shown.delays, 99) / turnMs).toFixed(2)} such turns, ` +
        `${(percentile(changing, 99) / turnMs).toFixed(2)} while statuses changed (the last ones of all come at once)`,
    );
    print(`\n${table(usageHeading(`While ${changes.made} statuses changed`), usageRows(processes, used))}`);
    ended.abort();
    await watching;
  } finally {
    ended.abort();
    await generator?.stop();
    await principal?.stop();
    await hub.stop();
  }
}

const share = (part: number, whole: number) => `${((100 * part) / whole).toFixed(0)} %`;

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
    while (performance.now() - began < floorMs) {
      await write();
    }
  };
  await Promise.all(Array.from({ length: floorWidth }, worker));
  const seconds = (performance.now() - began) / 1000;
  const { cpuSeconds } = await usageOf(apiServer.pid);
  return { perSecond: writes / seconds, cpuMs: (1000 * (cpuSeconds - before.cpuSeconds)) / writes };
}

/** Resolves when nothing was seen for a second. */
async function quiet(shown: ShownStatuses): Promise<void> {
  for (let before = -1; before !== shown.delays.length; await sleep(1_000)) {
    before = shown.delays.length;
  }
}
