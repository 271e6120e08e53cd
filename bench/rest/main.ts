import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { argoCdCrds, installCrds } from '../../e2e/hub/index.ts';
import {
  freePort,
  giveAgentCredentials,
  mapAgent,
  namespace,
  pairApplications,
  startHub,
} from '../../e2e/pair/index.ts';
import { startRedis } from '../../e2e/redis/index.ts';
import { type SharedCluster, startCluster } from '../../e2e/testbed/index.ts';
import { namespaces } from '../../lib/kube/index.ts';
import {
  benchGitOpsClusters,
  clusterNames,
  controllerAccount,
  enroll,
  register,
  select,
  startControllerHub,
} from '../controller/hub.ts';
import { startWorkAgents } from '../controller/work-agents.ts';
import { applicationName } from '../scale/hub.ts';
import { realisticApplication } from '../scale/realistic.ts';
import { megabytes, print, seconds, table } from '../scale/table.ts';
import { isWell, type MeasuredProgram, startMeasured } from './program.ts';

/** What is measured. */
export interface RestOptions {
  /** Folders of the programs that are compared, each a column. */
  readonly from: readonly string[];
  /** Applications of the one agent. */
  readonly applications: number;
  /** Managed clusters that the controller has enrolled; 0 leaves the controller out. */
  readonly clusters: number;
  /** How long nothing happens before memory is read. */
  readonly seconds: number;
}

/** What one program needs. Bytes and seconds. */
interface Rest {
  readonly program: string;
  readonly startCpuSeconds: number;
  readonly startSeconds: number;
  readonly rssBytes: number;
  readonly peakRssBytes: number;
}

/** Measures each program at rest, alone with what it works for, and prints a table with a column for each folder. */
export async function benchRest(options: RestOptions): Promise<void> {
  const columns: Rest[][] = [];
  for (const folder of options.from) {
    const from = resolve(folder);
    const fleet = options.clusters > 0 ? [await restOfController(from, options)] : [];
    columns.push([...(await restOfPair(from, options)), ...fleet]);
  }
  const figures = [
    ['RSS', (rest: Rest) => megabytes(rest.rssBytes)],
    ['peak RSS', (rest: Rest) => megabytes(rest.peakRssBytes)],
    ['CPU until ready', (rest: Rest) => seconds(rest.startCpuSeconds)],
    ['time until ready', (rest: Rest) => seconds(rest.startSeconds)],
  ] as const;
  const rows = (columns[0] ?? []).flatMap(({ program }, index) =>
    figures.map(([what, show]) => [
      `${program}: ${what}`,
      ...columns.map((column) => (column[index] ? show(column[index]) : '')),
    ]),
  );
  print(table([`at rest for ${options.seconds} s`, ...options.from], rows));
}

const measured = async (program: string, running: MeasuredProgram): Promise<Rest> => {
  const { rssBytes, peakRssBytes } = await running.usage();
  const { cpuSeconds, seconds: startSeconds } = running.start;
  return { program, startCpuSeconds: cpuSeconds, startSeconds, rssBytes, peakRssBytes };
};

/** Principal and agent on API servers of their own, with a few Applications. */
async function restOfPair(from: string, options: RestOptions): Promise<Rest[]> {
  const agentName = 'cluster1';
  const running: MeasuredProgram[] = [];
  const [hub, managed, redis] = await Promise.all([startHub(), startCluster({ name: 'managed' }), startRedis()]);
  try {
    await managed.client.create(namespaces, { metadata: { name: namespace } });
    await installCrds(managed.client, await argoCdCrds());
    await hub.hub.client.create(namespaces, { metadata: { name: agentName } });
    await mapAgent(hub.hub.client, agentName);
    await giveAgentCredentials(managed.client, hub.authority, agentName);
    for (let index = 0; index < options.applications; index++) {
      await hub.hub.client.create(pairApplications, realisticApplication(agentName, applicationName(index)));
    }
    const start = async (role: string, cluster: SharedCluster, args: readonly string[], nodeOptions: string) => {
      const [health, metrics] = [await freePort(), await freePort()];
      const program = await startMeasured({
        from,
        name: 'argocd-agent',
        args: [
          role,
          `--kubeconfig=${cluster.kubeconfig}`,
          `--namespace=${namespace}`,
          `--healthz-port=${health}`,
          `--metrics-port=${metrics}`,
          ...args,
        ],
        logFile: join(cluster.dir, `${role}.log`),
        nodeOptions,
        isReady: () => isWell(health),
      });
      running.push(program);
      return program;
    };
    const port = await freePort();
    const principal = await start(
      'principal',
      hub.hub,
      [
        '--listen-host=127.0.0.1',
        `--listen-port=${port}`,
        '--auth=mtls:subject:CN=([^,]+)',
        '--allowed-namespaces=*',
        `--resource-proxy-listen=127.0.0.1:${await freePort()}`,
        `--redis-proxy-listen=127.0.0.1:${await freePort()}`,
        `--redis-server-address=127.0.0.1:${redis.port}`,
      ],
      inTwoGibibytes,
    );
    const agent = await start(
      'agent',
      managed,
      [
        '--agent-mode=managed',
        '--creds=mtls:any',
        '--server-address=127.0.0.1',
        `--server-port=${port}`,
        `--redis-addr=127.0.0.1:${redis.port}`,
      ],
      inHalfAGibibyte,
    );
    while ((await managed.client.list(pairApplications, { namespace })).length < options.applications) {
      await sleep(100);
    }
    await sleep(options.seconds * 1000);
    return [await measured('principal', principal), await measured('agent', agent)];
  } finally {
    await Promise.all(running.map((program) => program.stop()));
    await Promise.all([hub.stop(), managed.stop(), redis.stop()]);
  }
}

/** The controller after it has enrolled a fleet. */
async function restOfController(from: string, options: RestOptions): Promise<Rest> {
  const hub = await startControllerHub(process.env.ARGOCD_CRDS);
  const agents = await startWorkAgents(hub.client);
  let controller: MeasuredProgram | undefined;
  try {
    const names = clusterNames(options.clusters);
    await register(hub.client, names);
    await select(hub.client, names);
    controller = await startMeasured({
      from,
      name: 'gitops-controller',
      args: [
        `--kubeconfig=${await hub.kubeconfigFor({ serviceAccount: controllerAccount })}`,
        '--agent-image=quay.io/open-cluster-management/argocd-fleet:bench',
        `--health-probe-bind-address=127.0.0.1:${await freePort()}`,
        `--metrics-bind-address=127.0.0.1:${await freePort()}`,
      ],
      logFile: join(hub.dir, 'controller.log'),
      nodeOptions: inHalfAGibibyte,
      isReady: async (log) => log.includes('caches are complete'),
    });
    await enroll(hub.client);
    const key = { namespace, name: 'fleet' };
    const enrolled = async () => {
      const found = (await hub.client.get(benchGitOpsClusters, key)) as {
        status?: { clusters?: { enrolled?: number } };
      };
      return found?.status?.clusters?.enrolled;
    };
    while ((await enrolled()) !== names.length) {
      await sleep(200);
    }
    await sleep(options.seconds * 1000);
    return await measured(`controller, ${names.length} clusters`, controller);
  } finally {
    await controller?.stop();
    await agents.stop();
    await hub.stop();
  }
}

/** What Node.js chooses in the memory that the charts give the principal. */
const inTwoGibibytes = '--max-old-space-size=1024 --max-semi-space-size=32';
/** What it chooses in the memory that they give agent and controller. */
const inHalfAGibibyte = '--max-old-space-size=256 --max-semi-space-size=8';
