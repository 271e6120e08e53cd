import { parseArgs } from 'node:util';
import {
  type FleetApplication,
  fleetApplications,
  fleetGitOpsClusters,
  guestbookValues,
  programLogs,
  type RunningFleet,
  selectedClusters,
  startFleet,
} from '../e2e/fleet/index.ts';
import { argoCdCrds, installCrds } from '../e2e/hub/index.ts';
import { waitForObject } from '../e2e/testbed/index.ts';
import {
  type ConfigMap,
  configMaps,
  Informer,
  type KubeObject,
  type Lease,
  leases,
  pods,
  secrets,
} from '../lib/kube/index.ts';
import { fingerprintsOf, inspectCertificate, isIssuedBy, secretText } from '../lib/pki/index.ts';
import { latencies, latencyHeading } from './figures.ts';
import { Flow, type FlowKind } from './rotation-flow.ts';

const help = `Usage: npm run bench -- rotation [--changes N] [--clusters N] [--rate N] [--csr]

A hub with controller and principal, managed clusters with their agents, all as processes on real API servers, enrolled
as a user would. Changes of Applications flow from the hub to all clusters while the certificate authority is replaced.
Beside them, this process copies as many changes of its own from the hub to the clusters: what the machine and the API
servers alone make of it. Prints how late the changes arrive, the longest time without any, and how often an agent had to
connect anew. Then the programs are started anew, one after the other, to see that what they have now is of the new
authority and works.

  --changes N   changes in all (2000)
  --clusters N  managed clusters (3)
  --rate N      changes per second (60)
  --csr         the clusters ask for their certificates (clientCertificate: CSR)
`;

const namespace = 'argocd';
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
    const { signal } = ended;
    await copyDirectly(fleet, signal);
    const flow = await Flow.open(fleet, viaPrincipal, signal);
    const flows = [flow, await Flow.open(fleet, direct, signal)];
    const connections = await countConnections(fleet, signal);
    const [changes, rate] = [Number(values.changes), Number(values.rate)];
    // Side by side, so that whatever slows the machine down slows both.
    const flowing = Promise.all(flows.map((one) => one.run(changes, rate)));
    await flow.reached(changes / 4);
    const enter = (phase: string) => {
      for (const one of flows) {
        one.phase = phase;
      }
    };
    enter('while the authority is replaced');
    const before = connections();
    const times = await rotate(fleet, values.csr);
    enter('after that');
    await flowing;
    print(flows, { ...times, reconnects: connections() - before });
    await startAnew(fleet, flow);
  } catch (error) {
    process.stderr.write(`${await programLogs(fleet)}\n`);
    throw error;
  } finally {
    ended.abort();
    await fleet.stop();
  }
}

async function enroll(fleet: RunningFleet, clientCertificate: string): Promise<void> {
  for (const { cluster } of fleet.members.values()) {
    await installCrds(cluster.client, await argoCdCrds());
  }
  const argoCDAgentAddon = { argoCD: 'Existing', clientCertificate };
  await fleet.install({
    ...guestbookValues,
    gitOpsCluster: { ...guestbookValues.gitOpsCluster, argoCDAgentAddon },
  });
  const key = { namespace, name: 'gitops-cluster' };
  const wanted = fleet.members.size;
  await waitForObject(
    fleet.hub.client,
    fleetGitOpsClusters,
    key,
    (found) => found?.status?.clusters?.connected === wanted,
    generous,
  );
}

interface Rotation {
  readonly switchedMs: number;
  /** Undefined when the former authority stays for certificates that clusters have asked for. */
  readonly doneMs: number | undefined;
  /** Connections that agents made since the request. */
  readonly reconnects: number;
}

/** Replaces the authority; resolves when nothing trusts the former one any more. */
async function rotate(fleet: RunningFleet, isAsked: boolean): Promise<Omit<Rotation, 'reconnects'>> {
  const { client } = fleet.hub;
  const key = { namespace, name: 'argocd-agent-ca' };
  const former = secretText((await client.get(secrets, key))?.data, 'tls.crt') ?? '';
  const begin = performance.now();
  const annotations = { 'apps.open-cluster-management.io/rotate': new Date().toISOString() };
  await client.mergePatch(secrets, key, { metadata: { annotations } });
  await waitForObject(
    client,
    secrets,
    { namespace, name: 'argocd-agent-principal-tls' },
    (found) => !isIssuedBy(secretText(found?.data, 'tls.crt') ?? '', former),
    generous,
  );
  const switchedMs = performance.now() - begin;
  // Certificates that clusters have asked for live on to their renewal, and the former authority with them.
  if (isAsked) {
    return { switchedMs, doneMs: undefined };
  }
  await waitForObject(
    client,
    secrets,
    { namespace, name: 'argocd-agent-ca-trust' },
    (found) => fingerprintsOf(secretText(found?.data, 'ca.crt') ?? '').length === 1,
    generous,
  );
  return { switchedMs, doneMs: performance.now() - begin };
}

const viaPrincipal: FlowKind<FleetApplication> = {
  what: 'through principal and agent',
  type: fleetApplications,
  make: (metadata, cluster) => ({
    metadata,
    spec: {
      project: 'default',
      source: { repoURL: 'https://git.example.com/apps.git', path: 'app', targetRevision: 'none' },
      destination: { name: cluster, namespace: 'default' },
    },
  }),
  patch: (targetRevision) => ({ spec: { source: { targetRevision } } }),
  revisionOf: ({ spec }) => spec?.source?.targetRevision,
};

const directLabel = 'bench.example.com/direct';

/** What the machine and the API servers alone make of it: this process writes what it sees on the hub to the cluster. */
const direct: FlowKind<ConfigMap> = {
  what: 'copied by this process',
  type: configMaps,
  labelSelector: directLabel,
  make: (metadata, cluster) => ({ metadata: { ...metadata, labels: { [directLabel]: cluster } }, data: {} }),
  patch: (revision) => ({ data: { revision } }),
  revisionOf: ({ data }) => data?.revision,
};

async function copyDirectly({ hub, members }: RunningFleet, signal: AbortSignal): Promise<void> {
  const informer = new Informer<ConfigMap>({ client: hub.client, type: configMaps, labelSelector: directLabel });
  const copy = ({ metadata: { name, labels }, data = {} }: ConfigMap) => {
    const member = members.get(labels?.[directLabel] ?? '');
    const made = { metadata: { namespace, name, labels: { [directLabel]: 'copy' } }, data };
    member?.cluster.client.apply(configMaps, made, { fieldManager: 'bench', force: true }).catch((error) => {
      if (!signal.aborted) {
        process.stderr.write(`the direct copy of ${name}: ${error}\n`);
      }
    });
  };
  informer.subscribe({ added: copy, updated: (_, now) => copy(now) });
  void informer.run(signal);
  await informer.synced();
}

/** Counts the connections that agents make, by the principal's records of them. */
async function countConnections({ hub }: RunningFleet, signal: AbortSignal): Promise<() => number> {
  const informer = new Informer<Lease>({
    client: hub.client,
    type: leases,
    namespace,
    labelSelector: 'app.kubernetes.io/part-of=argocd-agent,app.kubernetes.io/component=connection',
  });
  const seen = new Set<string>();
  const look = ({ metadata, spec }: Lease) => {
    if (spec?.acquireTime) {
      seen.add(`${metadata.name} ${spec.acquireTime}`);
    }
  };
  informer.subscribe({ added: look, updated: (_, now) => look(now) });
  void informer.run(signal);
  await informer.synced();
  return () => seen.size;
}

function print(flows: readonly Pick<Flow<KubeObject>, 'what' | 'figures' | 'sent'>[], rotation: Rotation): void {
  const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
  const out = (text: string) => process.stdout.write(text);
  for (const { what, figures } of flows) {
    out(`\nChanges, hub to managed cluster, ${what}:\n${latencyHeading}\n`);
    for (const { phase, delays } of figures) {
      out(`${latencies(phase, delays)}\n`);
    }
  }
  out(`\n${' Longest time without a change on a cluster, ms:'.padEnd(42)}`);
  out(`${flows.map(({ what }) => what.padStart(30)).join('')}\n`);
  for (const { phase } of flows[0]?.figures ?? []) {
    const gaps = flows.map(({ figures }) => figures.find((one) => one.phase === phase)?.longestGap ?? Number.NaN);
    const cells = gaps.map((gap) => gap.toFixed(0).padStart(30));
    out(` ${phase.padEnd(41)}${cells.join('')}\n`);
  }
  out(`\n changes made and arrived: ${flows.map(({ what, sent }) => `${sent} ${what}`).join(', ')}\n`);
  out(` connections that agents made anew meanwhile: ${rotation.reconnects}\n`);
  out(` servers changed over ${seconds(rotation.switchedMs)} after the request`);
  out(rotation.doneMs === undefined ? '\n' : `, the former authority was gone after ${seconds(rotation.doneMs)}\n`);
}

/** Starts the principal, then each agent anew: what they connect with now is all of the new authority. */
async function startAnew(fleet: RunningFleet, flow: Flow<FleetApplication>): Promise<void> {
  const begin = performance.now();
  await removePods(fleet.hub.client, 'argocd-agent-principal');
  await Promise.all([...fleet.members.keys()].map((cluster) => flow.change(cluster, 0, 'principal anew')));
  process.stdout.write(` principal started anew: a change arrives on every cluster after ${since(begin)}\n`);
  const again = performance.now();
  for (const { cluster } of fleet.members.values()) {
    await removePods(cluster.client, 'argocd-agent-agent');
  }
  await Promise.all([...fleet.members.keys()].map((cluster) => flow.change(cluster, 0, 'agents anew')));
  process.stdout.write(` agents started anew: a change arrives on every cluster after ${since(again)}\n`);
  const issuer = secretText(
    (await fleet.hub.client.get(secrets, { namespace, name: 'argocd-agent-ca' }))?.data,
    'tls.crt',
  );
  process.stdout.write(` authority: ${inspectCertificate(issuer ?? '').commonName}\n`);
}

const since = (begin: number) => `${((performance.now() - begin) / 1000).toFixed(1)} s`;

async function removePods(client: RunningFleet['hub']['client'], program: string): Promise<void> {
  for (const { metadata } of await client.list(pods, { namespace })) {
    if (metadata.name.startsWith(program)) {
      await client.delete(pods, metadata);
    }
  }
}
