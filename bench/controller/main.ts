import { setTimeout as sleep } from 'node:timers/promises';
import { ocmManifestWorks } from '../../e2e/ocm/index.ts';
import { until } from '../../lib/base/testing.ts';
import type { KubeClient } from '../../lib/kube/index.ts';
import { benchOptions } from '../options.ts';
import { processesOf, secondsBetween } from '../processes.ts';
import { countsBetween, type RequestCounts, total } from '../requests.ts';
import { megabytes, print, seconds, table } from '../table.ts';
import { clusterNames, enroll, enrolledClusters, register, select, startControllerHub } from './hub.ts';
import { type ControllerProcess, startControllerProcess } from './process.ts';
import { startWorkAgents, type WorkAgents } from './work-agents.ts';
import { countWrites, type WriteCounter } from './writes.ts';

const help = `Usage: npm run bench -- controller [--clusters N] [--seconds N]

A hub's API server with managed clusters, and the controller: how long until a new GitOpsCluster has written all works (keys and
certificates included), how many API writes that takes, how many when nothing happens, when one cluster joins, when
something is deleted, and when the controller is restarted. A stand-in acknowledges the works.

  --clusters N   (500)
  --seconds N    how long nothing happens (60)
`;

/** Limit for fleets of many clusters on a small machine. */
const anHour = { timeoutMs: 3_600_000 };

interface Bench {
  readonly client: KubeClient;
  readonly agents: WorkAgents;
  readonly counter: WriteCounter;
}

/** Runs the benchmark and prints its tables. */
export async function benchController(args: string[]): Promise<void> {
  const options = benchOptions(args, help, { clusters: 500, seconds: 60 });
  if (options === undefined) {
    return;
  }
  const names = clusterNames(options.clusters + 1);
  const newcomer = names.pop() ?? '';
  const hub = await startControllerHub();
  const { client } = hub;
  let agents: WorkAgents | undefined;
  let counter: WriteCounter | undefined;
  let controller: ControllerProcess | undefined;
  try {
    print(`A hub with ${names.length} managed clusters is made …`);
    await register(client, [...names, newcomer]);
    await select(client, names);
    agents = await startWorkAgents(client);
    counter = countWrites(client);
    controller = await startControllerProcess(hub);
    const bench = { client, agents, counter };
    const rows: string[][] = [];

    const began = performance.now();
    let lastAddedAt = began;
    agents.onAdded(() => {
      lastAddedAt = performance.now();
    });
    const before = await counter.served();
    const changesBefore = counter.changes();
    const processes = await processesOf(hub);
    await enroll(client);
    await settled(bench, names.length);
    const spent = secondsBetween(processes, await processesOf(hub));
    const writes = without(['POST gitopsclusters'], countsBetween(before, await counter.served()));
    const usage = await controller.usage();
    print(`\n${names.length} clusters enrolled`);
    print(
      table(
        ['', ''],
        [
          ['from the GitOpsCluster to the last of all works', seconds((lastAddedAt - began) / 1000)],
          ['ManifestWorks', String(agents.works)],
          ['CPU of the controller', seconds(usage.cpuSeconds)],
          ["CPU of the hub's API server", seconds(spent('hub API server'))],
          ['CPU of etcd', seconds(spent('etcd'))],
          ['CPU of this process: stand-ins, counting', seconds(spent('benchmark'))],
          ['peak RSS', megabytes(usage.peakRssBytes)],
          ['reconciles of clusters', String(await controller.reconciles())],
          ['writes per cluster', (total(writes) / names.length).toFixed(2)],
        ],
      ),
    );
    print(`\n${table(['writes', 'in all', 'per cluster'], perKind(writes, names.length))}`);
    print(
      `\n${table(['kind', 'writes', 'changes', 'without a change'], withoutChange(writes, countsBetween(changesBefore, counter.changes()), bench))}`,
    );

    rows.push(
      await measured(bench, `${options.seconds} s in which nothing happens`, () => sleep(options.seconds * 1000)),
    );
    rows.push(
      await measured(bench, 'one cluster joins', async () => {
        await select(client, [...names, newcomer]);
        await until(() => bench.agents.of(newcomer).length >= 3, anHour);
      }),
    );
    const [victim = ''] = names;
    const [work = ''] = agents.of(victim);
    rows.push(
      await measured(bench, 'one ManifestWork is deleted', async () => {
        await client.delete(ocmManifestWorks, { namespace: victim, name: work });
        await until(() => !bench.agents.of(victim).includes(work), anHour);
        await until(() => bench.agents.of(victim).includes(work), anHour);
      }),
    );
    await controller.stop();
    const restarting = await measured(bench, 'the controller is restarted', async () => {
      const again = await startControllerProcess(hub);
      controller = again;
      // Every cluster has been reconciled.
      await until(async () => (await again.reconciles()) > names.length, anHour);
    });
    rows.push(restarting);
    print(`\n${table(['', 'until done', 'writes', 'which'], rows)}`);
    const after = await controller.usage();
    print(
      `\n${table(
        ['after the restart', ''],
        [
          ['until its caches are complete', seconds(controller.startSeconds)],
          ['CPU', seconds(after.cpuSeconds)],
          ['peak RSS', megabytes(after.peakRssBytes)],
        ],
      )}`,
    );
  } finally {
    await controller?.stop();
    await counter?.stop();
    await agents?.stop();
    await hub.stop();
  }
}

/** Resolves when every cluster counts as enrolled and nothing has been written for a while. */
async function settled({ client, counter }: Bench, clusters: number): Promise<void> {
  await until(async () => {
    await sleep(500); // polls seldom, so that the measurement does not load the hub
    return (await enrolledClusters(client)) === clusters;
  }, anHour);
  await quiet(counter);
}

async function quiet(counter: WriteCounter): Promise<void> {
  const sum = () => total(counter.changes());
  for (let last = -1; last !== sum(); ) {
    last = sum();
    await sleep(3_000);
  }
}

/** A row of the table: the duration of an action, and the writes until no more follow. */
async function measured({ counter }: Bench, what: string, act: () => Promise<unknown>): Promise<string[]> {
  const before = await counter.served();
  const began = performance.now();
  await act();
  const took = (performance.now() - began) / 1000;
  await quiet(counter);
  const own = ['APPLY placements', 'PATCH placements/status', 'DELETE manifestworks'];
  const writes = without(own, countsBetween(before, await counter.served()));
  const which = Array.from(writes, ([kind, count]) => `${count} ${kind}`);
  return [what, seconds(took), String(total(writes)), which.join(', ')];
}

/** Leaves out writes of the benchmark itself. */
function without(own: readonly string[], writes: RequestCounts): RequestCounts {
  return new Map([...writes].filter(([write]) => !own.includes(write)));
}

function perKind(writes: RequestCounts, clusters: number): string[][] {
  return Array.from(writes, ([kind, count]) => [kind, String(count), (count / clusters).toFixed(2)]);
}

/** By kind, the number of writes that changed nothing. */
function withoutChange(writes: RequestCounts, changes: RequestCounts, { agents }: Bench): string[][] {
  const written = new Map<string, number>();
  for (const [key, count] of writes) {
    const kind = key.replace(/^\w+ /, '').replace(/\/.*/, '');
    written.set(kind, (written.get(kind) ?? 0) + count);
  }
  return Array.from(written, ([kind, count]) => {
    // The stand-ins' status updates and the user's GitOpsCluster are changes too.
    const others = kind === 'manifestworks' ? agents.written : kind === 'gitopsclusters' ? 1 : 0;
    const changed = (changes.get(kind) ?? 0) - others;
    return [kind, String(count), String(changed), String(count - changed)];
  });
}
