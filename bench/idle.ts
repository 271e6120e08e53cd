import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  admitAgent,
  agentLine,
  freePort,
  giveAgentCredentials,
  namespace,
  type ProgramLine,
  pairApplications,
  prepareCluster,
  principalLine,
  startEmptyHub,
} from '../e2e/pair/index.ts';
import { startRedis } from '../e2e/redis/index.ts';
import { borrowCluster, type SharedCluster, startCluster } from '../e2e/testbed/index.ts';
import { until } from '../lib/base/testing.ts';
import { clusterNames, enroll, enrolledClusters, register, select, startControllerHub } from './controller/hub.ts';
import { type ControllerProcess, startControllerProcess } from './controller/process.ts';
import { startWorkAgents } from './controller/work-agents.ts';
import { benchOptions } from './options.ts';
import { inHalfAGibibyte, inTwoGibibytes, isWell, type MeasuredProgram, programIn, startMeasured } from './program.ts';
import { applicationName } from './scale/hub.ts';
import { realisticApplication } from './scale/realistic.ts';
import { megabytes, print, seconds, table } from './table.ts';

const help = `Usage: npm run bench -- idle [--from FOLDER ...] [--clusters N] [--seconds N]

Each program at rest: memory, and what it takes to start. Principal and agent with each other and a few Applications, the controller
after it has enrolled a fleet. A column for each folder of programs: a checkout, or what the image runs (npm run build writes it to
dist).

  --from FOLDER   as often as there are folders to compare (this checkout)
  --clusters N    of the controller; 0 leaves it out (50)
  --seconds N     how long nothing happens before memory is read (30)
`;

/** Applications of the one agent. */
const fewApplications = 5;
const checkout = new URL('..', import.meta.url).pathname;
const generous = { timeoutMs: 600_000 };

/** What one program needs. */
interface Rest {
  readonly name: string;
  readonly cells: readonly string[];
}

/** Measures each program at rest, alone with what it works for, and prints a table with a column for each folder. */
export async function benchIdle(args: string[]): Promise<void> {
  const options = benchOptions(args, help, { from: [checkout], clusters: 50, seconds: 30 });
  if (options === undefined) {
    return;
  }
  const { clusters, seconds: lasting } = options;
  const columns: Rest[][] = [];
  for (const folder of options.from) {
    const from = resolve(folder);
    const fleet = clusters > 0 ? [await restOfController(from, clusters, lasting)] : [];
    columns.push([...(await restOfPair(from, lasting)), ...fleet]);
  }
  const rows = (columns[0] ?? []).flatMap(({ name }, program) =>
    ['RSS', 'peak RSS', 'CPU until ready', 'time until ready'].map((what, figure) => [
      `${name}: ${what}`,
      ...columns.map((column) => column[program]?.cells[figure] ?? ''),
    ]),
  );
  print(table([`at rest for ${lasting} s`, ...options.from], rows));
}

const measured = async (name: string, program: MeasuredProgram): Promise<Rest> => {
  const { rssBytes, peakRssBytes } = await program.usage();
  const start = [seconds(program.atStart.cpuSeconds), seconds(program.startSeconds)];
  return { name, cells: [megabytes(rssBytes), megabytes(peakRssBytes), ...start] };
};

/** Principal and agent on API servers of their own, with a few Applications. */
async function restOfPair(from: string, lasting: number): Promise<Rest[]> {
  const agentName = 'cluster1';
  const running: MeasuredProgram[] = [];
  const [hub, managed, redis] = await Promise.all([
    startEmptyHub({}, borrowCluster),
    startCluster({ name: 'managed' }),
    startRedis(),
  ]);
  try {
    await prepareCluster(managed.client);
    await admitAgent(hub.hub.client, agentName);
    await giveAgentCredentials(managed.client, hub.authority, agentName);
    for (let index = 0; index < fewApplications; index++) {
      await hub.hub.client.create(pairApplications, realisticApplication(agentName, applicationName(index)));
    }
    const start = async (cluster: SharedCluster, nodeOptions: string, { args, healthPort }: ProgramLine) => {
      const program = await startMeasured({
        command: [...programIn('argocd-agent', from), ...args],
        logFile: join(cluster.dir, `${args[0]}.log`),
        nodeOptions,
        isReady: () => isWell(healthPort),
      });
      running.push(program);
      return program;
    };
    const line = await principalLine({
      kubeconfig: hub.hub.kubeconfig,
      resourceProxy: await freePort(),
      redisProxy: await freePort(),
      redis: redis.port,
    });
    const principal = await start(hub.hub, inTwoGibibytes, line);
    const ofAgent = await agentLine({ kubeconfig: managed.kubeconfig, server: line.port, redis: redis.port });
    const agent = await start(managed, inHalfAGibibyte, ofAgent);
    await until('the Applications are there', async () => {
      const copies = await managed.client.list(pairApplications, { namespace });
      return copies.length === fewApplications || undefined;
    });
    await sleep(lasting * 1000);
    return [await measured('principal', principal), await measured('agent', agent)];
  } finally {
    await Promise.all(running.map((program) => program.stop()));
    await Promise.all([hub.stop(), managed.stop(), redis.stop()]);
  }
}

/** The controller after it has enrolled a fleet. */
async function restOfController(from: string, clusters: number, lasting: number): Promise<Rest> {
  const hub = await startControllerHub();
  const agents = await startWorkAgents(hub.client);
  let controller: ControllerProcess | undefined;
  try {
    const names = clusterNames(clusters);
    await register(hub.client, names);
    await select(hub.client, names);
    controller = await startControllerProcess(hub, from);
    await enroll(hub.client);
    const isDone = async () => (await enrolledClusters(hub.client)) === clusters || undefined;
    await until('all clusters are enrolled', isDone, generous);
    await sleep(lasting * 1000);
    return await measured(`controller, ${clusters} clusters`, controller);
  } finally {
    await controller?.stop();
    await agents.stop();
    await hub.stop();
  }
}
