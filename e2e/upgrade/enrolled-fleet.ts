import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { AgentMode } from '../../lib/auth/index.ts';
import { configMaps, deployments, type KubeClient, namespaces, type Pod, pods, secrets } from '../../lib/kube/index.ts';
import { secretText } from '../../lib/pki/index.ts';
import { BusyController } from '../chaos/index.ts';
import {
  addonRelease,
  type FleetGitOpsCluster,
  fleetGitOpsClusters,
  releaseNamespace,
  troubles,
} from '../fleet/index.ts';
import { argoCdCrds, helm, installCrds, ocmCrds } from '../hub/index.ts';
import { ProxyClient } from '../live/index.ts';
import { type ImageTable, standardImages, startNode } from '../node/index.ts';
import { startOcm } from '../ocm/index.ts';
import { Random } from '../random/index.ts';
import { type Cluster, startCluster, waitForObject, waitForObjects } from '../testbed/index.ts';
import { toolPath } from '../tools/index.ts';
import { sourcesOf, type TestedVersion, versionImage, versionRepository } from './previous.ts';

/** A managed cluster of an {@link EnrolledFleet}. */
export interface EnrolledCluster {
  readonly cluster: Cluster;
  /** Undefined where Argo CD itself runs. */
  readonly controller: BusyController | undefined;
}

/** A hub with OCM, whose clusters one version or another of the add-on's chart enrolls. */
export interface EnrolledFleet {
  readonly hub: Cluster;
  /** By the name of its mode: the ManagedCluster has it, as label `fleet.example.com/mode`, too. */
  readonly clusters: ReadonlyMap<AgentMode, EnrolledCluster>;
  /** Installs or upgrades the chart of a version, and resolves when what it made is ready. */
  deploy(chart: TestedVersion, values: object): Promise<void>;
  /** Runs a command of Helm for the release. */
  helm(command: string, ...args: string[]): Promise<string>;
  /** Resolves when every cluster runs the agent of a tag and no other one. */
  runsAgents(tag: string): Promise<void>;
  /** The same, and every cluster is connected, and its GitOpsCluster is Ready. */
  isSettled(tag: string): Promise<void>;
  /** Reads through the resource proxy what Argo CD would read, with what the cluster's Secret says. */
  readLive(agent: string, path: string): Promise<{ status: number; text: string }>;
  /** What is wrong, for the output of a failing test. */
  troubles(): Promise<string>;
  stop(): Promise<void>;
}

/** What an enrolled fleet is made of. */
export interface EnrolledFleetOptions {
  /** One cluster of each. */
  readonly modes: readonly AgentMode[];
  /** The hub and the clusters have Argo CD's kinds, and its application controller is played; otherwise they have nothing. */
  readonly isArgoCdPlayed: boolean;
}

const argocd = 'argocd';
const patience = { timeoutMs: 300_000 };

/** Starts hub and clusters up to the point where the chart is installed. */
export async function startEnrolledFleet(options: EnrolledFleetOptions): Promise<EnrolledFleet> {
  const { modes, isArgoCdPlayed } = options;
  const folder = await mkdtemp(join(tmpdir(), 'enrolled-'));
  const running = new AbortController();
  const stops: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const stop = async () => {
    running.abort();
    for (const end of stops.splice(0).reverse()) {
      await end();
    }
  };
  const places: { name: string; client: KubeClient; node: Awaited<ReturnType<typeof startNode>> }[] = [];
  const start = async (name: string, place: 'hub' | 'cluster'): Promise<Cluster> => {
    const cluster = await startCluster({ name });
    stops.push(() => cluster.stop());
    const images: ImageTable = { ...standardImages(toolPath), [versionRepository]: versionImage(place) };
    const node = await startNode({ cluster, name: `${name}-node`, dir: join(folder, name), images });
    stops.push(() => node.stop());
    places.push({ name, client: cluster.client, node });
    return cluster;
  };
  try {
    const hub = await start('hub', 'hub');
    await installCrds(hub.client, [...(await ocmCrds('hub')), ...(isArgoCdPlayed ? await argoCdCrds() : [])]);
    const started = new Map<AgentMode, Cluster>();
    for (const [index, mode] of modes.entries()) {
      started.set(mode, await start(`cluster${index + 1}`, 'cluster'));
    }
    // After the clusters, so that OCM's agents end before the clusters take their files away: without these they end by themselves.
    const ocm = await startOcm(hub);
    stops.push(() => ocm.stop());
    const clusters = new Map<AgentMode, EnrolledCluster>();
    for (const [mode, cluster] of started) {
      const controller = isArgoCdPlayed ? await playArgoCd(cluster, running.signal) : undefined;
      await ocm.join(cluster, { [modeLabel]: mode });
      clusters.set(mode, { cluster, controller });
    }
    const { kubeconfig, client } = hub;
    const sources = await sourcesOf();
    let isInstalled = false;
    const runsAgents = async (tag: string) => {
      await Promise.all([...clusters.values()].map(({ cluster }) => runsAgent(cluster, tag)));
    };
    return {
      hub,
      clusters,
      async deploy(version, values) {
        const file = join(folder, 'values.yaml');
        await writeFile(file, stringify(values));
        const command = isInstalled ? ['upgrade'] : ['install', '--create-namespace'];
        const chart = join(sources[version], 'charts/argocd-agent-addon');
        const wait = ['--wait', '--timeout', '8m'];
        const release = [addonRelease, chart, '--namespace', releaseNamespace, '--values', file];
        await helm([...command, ...release, ...wait], { kubeconfig });
        isInstalled = true;
      },
      helm: (command, ...args) =>
        helm([command, addonRelease, ...args, '--namespace', releaseNamespace], { kubeconfig }),
      runsAgents,
      async isSettled(tag) {
        await runsAgents(tag);
        const found = await client.list(fleetGitOpsClusters, { namespace: argocd });
        await Promise.all(found.map(({ metadata }) => isConnected(client, metadata.name)));
      },
      async readLive(agent, path) {
        const labelSelector = 'argocd.argoproj.io/secret-type=cluster';
        const found = await client.list(secrets, { namespace: argocd, labelSelector });
        const secret = found.find(({ data }) => secretText(data, 'name') === agent);
        const { tlsClientConfig: tls } = JSON.parse(secretText(secret?.data, 'config') ?? '{}');
        const decoded = (base64: string) => Buffer.from(base64, 'base64').toString();
        const authority = { certificate: decoded(tls.caData), key: '' };
        const credential = { certificate: decoded(tls.certData), key: decoded(tls.keyData) };
        const { hostname, port } = new URL(secretText(secret?.data, 'server') ?? '');
        const at = { host: await addressOfPrincipal(client), servername: hostname };
        return await new ProxyClient(Number(port), authority, credential, at).send('GET', path);
      },
      troubles: () => troubles(places),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The label of the ManagedClusters that has their mode. */
export const modeLabel = 'fleet.example.com/mode';

async function playArgoCd(cluster: Cluster, signal: AbortSignal): Promise<BusyController> {
  const { client, name: agent } = cluster;
  await installCrds(client, await argoCdCrds());
  await client.create(namespaces, { metadata: { name: argocd } });
  const labels = { 'app.kubernetes.io/part-of': 'argocd' };
  await client.create(configMaps, { metadata: { namespace: argocd, name: 'argocd-cm', labels } });
  const controller = new BusyController({ agent, client, random: new Random(1) });
  controller.run(signal).catch((error: unknown) => {
    if (!signal.aborted) {
      throw error;
    }
  });
  return controller;
}

/** The agent's Deployment has that image and no pod of another one. */
async function runsAgent({ client }: Cluster, tag: string): Promise<void> {
  const key = { namespace: argocd, name: 'argocd-agent-agent' };
  await waitForObject(
    client,
    deployments,
    key,
    (found) => {
      const { observedGeneration, ...counts } = (found?.status ?? {}) as Record<string, number>;
      return (
        found?.spec?.template?.spec?.containers[0]?.image === `${versionRepository}:${tag}` &&
        observedGeneration === found.metadata.generation &&
        [counts.replicas, counts.updatedReplicas, counts.readyReplicas].every((count) => count === 1)
      );
    },
    patience,
  );
}

async function isConnected(hub: KubeClient, name: string): Promise<void> {
  const isReady = (found: FleetGitOpsCluster | undefined) =>
    found?.status?.clusters?.connected === 1 &&
    found.status.clusters.enrolled === 1 &&
    found.status.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
  await waitForObject(hub, fleetGitOpsClusters, { namespace: argocd, name }, isReady, patience);
}

/** Where the principal's pod listens on this machine. */
async function addressOfPrincipal(hub: KubeClient): Promise<string> {
  const found = await waitForObjects(hub, pods, { namespace: argocd }, (all) => all.filter(isPrincipal).length === 1);
  // The API server takes no loopback addresses: what it has is the same with 10 in front.
  return (found.find(isPrincipal)?.status?.podIP ?? '').replace(/^10\./, '127.');
}

function isPrincipal({ metadata, status }: Pod): boolean {
  return metadata.labels?.['app.kubernetes.io/name'] === 'argocd-agent-principal' && Boolean(status?.podIP);
}
