import { parseArgs } from 'node:util';
import {
  type Application,
  applications,
  type Fleet,
  gitOpsClusters,
  guestbookValues,
  programLogs,
  selectedClusters,
  startFleet,
  waitForObject,
} from '../e2e/fleet/index.ts';
import { argoCdCrds, installCrds } from '../e2e/hub/index.ts';
import { Informer, pods, secrets } from '../lib/kube/index.ts';
import { fingerprintsOf, inspectCertificate, isIssuedBy, textOf } from '../lib/pki/index.ts';
import { latencies, latencyHeading } from './figures.ts';

const help = `Usage: npm run bench -- rotation [--changes N] [--clusters N] [--rate N] [--csr]

A hub with controller and principal, managed clusters with their agents, all as processes on real API servers, enrolled
as a user would. Changes of Applications flow from the hub to all clusters while the certificate authority is replaced.
Prints how late the changes arrive and the longest time without any. Then the programs are started anew, one after the
other, to see that what they have now is of the new authority and works.

  --changes N   changes in all (2000)
  --clusters N  managed clusters (3)
  --rate N      changes per second (60)
  --csr         the clusters ask for their certificates (clientCertificate: CSR)
`;

const namespace = 'argocd';
const perCluster = 8;
const generous = { timeoutMs: 300_000 };

/** Runs the benchmark and prints its figures. */
export async function benchRotation(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      changes: { type: 'string', default: '2000' },
      clusters: { type: 'string', default: '3' },
      rate: { type: 'string', default: '60' },
      csr: { type: 'boolean', default: false },
      help: { type: 'boolean' },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    return;
  }
  const fleet = await startFleet({ clusters: Number(values.clusters), labels: selectedClusters });
  const ended = new AbortController();
  try {
    await enroll(fleet, values.csr ? 'CSR' : 'Generated');
    const flow = await Flow.open(fleet, ended.signal);
    const flowing = flow.run(Number(values.changes), Number(values.rate));
    await flow.reached(Number(values.changes) / 4);
    flow.phase = 'while the authority is replaced';
    const rotation = await rotate(fleet, values.csr);
    flow.phase = 'after that';
    await flowing;
    print(flow, rotation);
    await startAnew(fleet, flow);
  } catch (error) {
    process.stderr.write(`${await programLogs(fleet)}\n`);
    throw error;
  } finally {
    ended.abort();
    await fleet.stop();
  }
}

async function enroll(fleet: Fleet, clientCertificate: string): Promise<void> {
  for (const { cluster } of fleet.members.values()) await installCrds(cluster.client, await argoCdCrds());
  const argoCDAgentAddon = { argoCD: 'Existing', clientCertificate };
  await fleet.install({
    ...guestbookValues,
    gitOpsCluster: { ...guestbookValues.gitOpsCluster, argoCDAgentAddon },
  });
  const key = { namespace, name: 'gitops-cluster' };
  const wanted = fleet.members.size;
  await waitForObject(
    fleet.hub.client,
    gitOpsClusters,
    key,
    (found) => found?.status?.clusters?.connected === wanted,
    generous,
  );
}

/** Replaces the authority; resolves when nothing trusts the former one any more. */
async function rotate(fleet: Fleet, isAsked: boolean): Promise<{ switchedMs: number; doneMs: number | undefined }> {
  const { client } = fleet.hub;
  const key = { namespace, name: 'argocd-agent-ca' };
  const former = textOf((await client.get(secrets, key))?.data, 'tls.crt') ?? '';
  const begin = performance.now();
  const annotations = { 'apps.open-cluster-management.io/rotate': new Date().toISOString() };
  await client.mergePatch(secrets, key, { metadata: { annotations } });
  await waitForObject(
    client,
    secrets,
    { namespace, name: 'argocd-agent-principal-tls' },
    (found) => !isIssuedBy(textOf(found?.data, 'tls.crt') ?? '', former),
    generous,
  );
  const switchedMs = performance.now() - begin;
  // Certificates that clusters have asked for live on to their renewal, and the former authority with them.
  if (isAsked) return { switchedMs, doneMs: undefined };
  await waitForObject(
    client,
    secrets,
    { namespace, name: 'argocd-agent-ca-trust' },
    (found) => fingerprintsOf(textOf(found?.data, 'ca.crt') ?? '').length === 1,
    generous,
  );
  return { switchedMs, doneMs: performance.now() - begin };
}

/** Changes of Applications on their way from the hub to the clusters. */
class Flow {
  readonly #fleet: Fleet;
  readonly #waiting = new Map<string, { revision: string; begin: number; arrived: (at: number) => void }>();
  /** By phase and cluster. */
  readonly #arrivals = new Map<string, Map<string, { at: number; delay: number }[]>>();
  /** What the arrivals from now on are counted under. */
  phase = 'before the authority is replaced';
  sent = 0;

  private constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  static async open(fleet: Fleet, signal: AbortSignal): Promise<Flow> {
    const flow = new Flow(fleet);
    for (const [name, { cluster }] of fleet.members) {
      const informer = new Informer<Application>({ client: cluster.client, type: applications });
      void informer.run(signal);
      await informer.synced();
      const look = (application: Application) => flow.#arrived(name, application);
      informer.subscribe({ added: look, updated: (_, now) => look(now) });
    }
    for (const cluster of fleet.members.keys()) {
      for (let i = 0; i < perCluster; i++) {
        await fleet.hub.client.create(applications, application(cluster, i));
        await flow.change(cluster, i, 'first');
      }
    }
    flow.#arrivals.clear();
    flow.sent = 0;
    return flow;
  }

  /** Makes changes at a rate; of one Application the next when the last has arrived. Resolves when all have. */
  async run(count: number, rate: number): Promise<void> {
    const lanes = [...this.#fleet.members.keys()].flatMap((cluster) =>
      Array.from({ length: perCluster }, (_, i) => ({ cluster, i })),
    );
    const begin = performance.now();
    let next = 0;
    await Promise.all(
      lanes.map(async ({ cluster, i }) => {
        for (let turn = next++; turn < count; turn = next++) {
          const due = begin + (turn * 1_000) / rate - performance.now();
          if (due > 0) await new Promise((resolve) => setTimeout(resolve, due));
          await this.change(cluster, i, `r${turn}`);
        }
      }),
    );
  }

  async reached(count: number): Promise<void> {
    while (this.sent < count) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  /** Makes one change; resolves when it is on the cluster. */
  async change(cluster: string, i: number, revision: string): Promise<number> {
    const name = nameOf(cluster, i);
    const { promise, resolve } = Promise.withResolvers<number>();
    const begin = performance.now();
    this.#waiting.set(name, { revision, begin, arrived: resolve });
    await this.#fleet.hub.client.mergePatch(
      applications,
      { namespace, name },
      { spec: { source: { targetRevision: revision } } },
    );
    this.sent += 1;
    return promise;
  }

  /** Of each phase the delays of changes and the longest time between two arrivals on one cluster, in milliseconds. */
  figures(): { phase: string; delays: number[]; longestGap: number }[] {
    return [...this.#arrivals].map(([phase, clusters]) => {
      const lists = [...clusters.values()];
      const gaps = lists.flatMap((list) => list.slice(1).map(({ at }, i) => at - (list[i]?.at ?? at)));
      return { phase, delays: lists.flat().map(({ delay }) => delay), longestGap: Math.max(...gaps) };
    });
  }

  #arrived(cluster: string, { metadata: { name }, spec }: Application): void {
    const found = this.#waiting.get(name);
    if (found === undefined || spec?.source?.targetRevision !== found.revision) return;
    const now = performance.now();
    this.#waiting.delete(name);
    const delay = now - found.begin;
    const clusters = this.#arrivals.get(this.phase) ?? new Map<string, { at: number; delay: number }[]>();
    clusters.set(cluster, [...(clusters.get(cluster) ?? []), { at: now, delay }]);
    this.#arrivals.set(this.phase, clusters);
    found.arrived(delay);
  }
}

const nameOf = (cluster: string, i: number) => `${cluster}-app-${i}`;

function application(cluster: string, i: number): Application {
  return {
    metadata: { namespace, name: nameOf(cluster, i) },
    spec: {
      project: 'default',
      source: { repoURL: 'https://git.example.com/apps.git', path: 'app', targetRevision: 'none' },
      destination: { name: cluster, namespace: 'default' },
    },
  };
}

function print(flow: Flow, rotation: { switchedMs: number; doneMs: number | undefined }): void {
  const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
  process.stdout.write(`\nChanges of Applications, hub to managed cluster:\n${latencyHeading}\n`);
  for (const { phase, delays } of flow.figures()) process.stdout.write(`${latencies(phase, delays)}\n`);
  process.stdout.write('\nLongest time without a change on a cluster, ms:\n');
  for (const { phase, longestGap } of flow.figures()) {
    process.stdout.write(` ${phase.padEnd(52)}${longestGap.toFixed(0).padStart(9)}\n`);
  }
  process.stdout.write(`\n changes made and arrived: ${flow.sent}\n`);
  process.stdout.write(` servers changed over ${seconds(rotation.switchedMs)} after the request`);
  process.stdout.write(
    rotation.doneMs === undefined ? '\n' : `, the former authority was gone after ${seconds(rotation.doneMs)}\n`,
  );
}

/** Starts the principal, then each agent anew: what they connect with now is all of the new authority. */
async function startAnew(fleet: Fleet, flow: Flow): Promise<void> {
  const begin = performance.now();
  await removePods(fleet.hub.client, 'argocd-agent-principal');
  await Promise.all([...fleet.members.keys()].map((cluster) => flow.change(cluster, 0, 'principal anew')));
  process.stdout.write(` principal started anew: a change arrives on every cluster after ${since(begin)}\n`);
  const again = performance.now();
  for (const { cluster } of fleet.members.values()) await removePods(cluster.client, 'argocd-agent-agent');
  await Promise.all([...fleet.members.keys()].map((cluster) => flow.change(cluster, 0, 'agents anew')));
  process.stdout.write(` agents started anew: a change arrives on every cluster after ${since(again)}\n`);
  const issuer = textOf((await fleet.hub.client.get(secrets, { namespace, name: 'argocd-agent-ca' }))?.data, 'tls.crt');
  process.stdout.write(` authority: ${inspectCertificate(issuer ?? '').commonName}\n`);
}

const since = (begin: number) => `${((performance.now() - begin) / 1000).toFixed(1)} s`;

async function removePods(client: Fleet['hub']['client'], program: string): Promise<void> {
  for (const { metadata } of await client.list(pods, { namespace })) {
    if (metadata.name.startsWith(program)) await client.delete(pods, metadata);
  }
}
