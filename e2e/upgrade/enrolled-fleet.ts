import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { configMaps, deployments, type KubeClient, namespaces, pods, secrets } from '../../lib/kube/index.ts';
import { secretText } from '../../lib/pki/index.ts';
import { PlayedApplicationController } from '../chaos/application-controller.ts';
import {
  addonRelease,
  type FleetGitOpsCluster,
  fleetGitOpsClusters,
  releaseNamespace,
  troubles,
  waitForObject,
  waitForObjects,
} from '../fleet/index.ts';
import { argoCdCrds, helm, installCrds, ocmCrds } from '../hub/index.ts';
import { ProxyClient } from '../live/proxy-client.ts';
import { type ImageRecipe, type ImageTable, projectImage, standardImages, startNode } from '../node/index.ts';
import { ocmPlacements, startOcm } from '../ocm/index.ts';
import { Random } from '../random/index.ts';
import { type Cluster, startCluster } from '../testbed/index.ts';
import { toolPath } from '../tools/index.ts';
import { previousImage, sourcesOf, type Version } from './previous.ts';

/** Which version each part of a fleet is. The controller's is that of the chart, too. */
export interface FleetVersions {
  readonly controller: Version;
  readonly principal: Version;
  readonly agent: Version;
}

/** A hub with OCM and the add-on's chart, and two clusters with Argo CD's kinds, whose application controller is played. */
export interface EnrolledFleet {
  readonly hub: Cluster;
  /** `cluster1`. */
  readonly managed: Cluster;
  /** `cluster2`. */
  readonly autonomous: Cluster;
  readonly controllers: Readonly<Record<'managed' | 'autonomous', PlayedApplicationController>>;
  /** Installs or upgrades the chart, and resolves when everything is the version that it is to be, and connected. */
  become(versions: FleetVersions): Promise<void>;
  /** Reads through the resource proxy what Argo CD would read, with what the cluster's Secret says. */
  readLive(agent: string, path: string): Promise<{ status: number; text: string }>;
  /** What is wrong, for the output of a failing test. */
  troubles(): Promise<string>;
  stop(): Promise<void>;
}

const argocd = 'argocd';
const image = 'quay.io/open-cluster-management/argocd-fleet';
const patience = { timeoutMs: 300_000 };
const modes = { managed: 'cluster1', autonomous: 'cluster2' } as const;
const modeLabel = 'fleet.example.com/mode';

/** Starts the fleet up to the point where the chart is installed. */
export async function startEnrolledFleet(): Promise<EnrolledFleet> {
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
  const start = async (name: string, tags: ImageRecipe): Promise<Cluster> => {
    const cluster = await startCluster({ name });
    stops.push(() => cluster.stop());
    const images: ImageTable = { ...standardImages(toolPath), [image]: tags };
    const node = await startNode({ cluster, name: `${name}-node`, dir: join(folder, name), images });
    stops.push(() => node.stop());
    places.push({ name, client: cluster.client, node });
    return cluster;
  };
  try {
    const hub = await start('hub', versionOfTag(0));
    await installCrds(hub.client, [...(await ocmCrds('hub')), ...(await argoCdCrds())]);
    const ocm = await startOcm(hub);
    stops.push(() => ocm.stop());
    const enroll = async (mode: keyof typeof modes) => {
      const cluster = await start(modes[mode], versionOfTag(1));
      await installCrds(cluster.client, await argoCdCrds());
      await cluster.client.create(namespaces, { metadata: { name: argocd } });
      const labels = { 'app.kubernetes.io/part-of': 'argocd' };
      await cluster.client.create(configMaps, { metadata: { namespace: argocd, name: 'argocd-cm', labels } });
      await ocm.join(cluster, { [modeLabel]: mode });
      const controller = new PlayedApplicationController({
        agent: cluster.name,
        client: cluster.client,
        random: new Random(1),
      });
      controller.run(running.signal).catch((error: unknown) => {
        if (!running.signal.aborted) {
          throw error;
        }
      });
      return { cluster, controller };
    };
    const managed = await enroll('managed');
    const autonomous = await enroll('autonomous');
    const clusters = [managed.cluster, autonomous.cluster];
    const { kubeconfig, client } = hub;
    const sources = await sourcesOf();
    let isInstalled = false;

    return {
      hub,
      managed: managed.cluster,
      autonomous: autonomous.cluster,
      controllers: { managed: managed.controller, autonomous: autonomous.controller },
      async become(versions) {
        const values = join(folder, 'values.yaml');
        await writeFile(values, stringify(valuesOf(versions)));
        const chart = join(sources[versions.controller], 'charts/argocd-agent-addon');
        const options = ['--namespace', releaseNamespace, '--values', values, '--wait', '--timeout', '5m'];
        if (isInstalled) {
          await helm(['upgrade', addonRelease, chart, ...options], { kubeconfig });
        } else {
          // Not --wait: the principal waits for what the controller makes.
          await helm(['install', addonRelease, chart, ...options, '--create-namespace'], { kubeconfig });
          await enrollAutonomous(client);
        }
        isInstalled = true;
        await Promise.all(clusters.map((cluster) => runsAgent(cluster, tagOf(versions))));
        await Promise.all(['gitops-cluster', 'autonomous'].map((name) => isConnected(client, name)));
      },
      async readLive(agent, path) {
        const found = await client.list(secrets, {
          namespace: argocd,
          labelSelector: 'argocd.argoproj.io/secret-type=cluster',
        });
        const secret = found.find(({ data }) => secretText(data, 'name') === agent);
        const { tlsClientConfig: tls } = JSON.parse(secretText(secret?.data, 'config') ?? '{}');
        const decoded = (base64: string) => Buffer.from(base64, 'base64').toString();
        const authority = { certificate: decoded(tls.caData), key: '' };
        const credential = { certificate: decoded(tls.certData), key: decoded(tls.keyData) };
        const { hostname, port } = new URL(secretText(secret?.data, 'server') ?? '');
        const at = { host: await addressOfPrincipal(client), servername: hostname };
        const proxy = new ProxyClient(Number(port), authority, credential, at);
        return await proxy.send('GET', path);
      },
      troubles: () => troubles(places),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A tag has the version of what runs on the hub, and that of what runs on clusters. */
const tagOf = ({ principal, agent }: FleetVersions) => `${principal}-${agent}`;

/** The image of a tag: of its only version, or of the one that stands at this place. */
function versionOfTag(place: 0 | 1): ImageRecipe {
  return async (use) => {
    const parts = (use.name.tag ?? '').split('-');
    return await ((parts[place] ?? parts[0]) === 'previous' ? previousImage : projectImage)(use);
  };
}

function valuesOf(versions: FleetVersions): object {
  const port = process.getuid?.() === 0 ? 443 : 8443;
  const labelSelector = { matchLabels: { [modeLabel]: 'managed' } };
  return {
    image,
    tag: versions.controller,
    argoCDAgent: { image: `${image}:${tagOf(versions)}` },
    hubArgoCD: { install: 'false' },
    principal: { service: { port }, namespaceCreate: { enable: true } },
    controller: { rolloutStrategy: { type: 'All' } },
    gitOpsCluster: {
      argoCDAgentAddon: { argoCD: 'Existing' },
      placement: { spec: { predicates: [{ requiredClusterSelector: { labelSelector } }] } },
    },
  };
}

/** A second GitOpsCluster, whose cluster owns its Applications. */
async function enrollAutonomous(hub: KubeClient): Promise<void> {
  const labelSelector = { matchLabels: { [modeLabel]: 'autonomous' } };
  const name = 'autonomous';
  await hub.create(ocmPlacements, {
    metadata: { namespace: argocd, name },
    spec: { predicates: [{ requiredClusterSelector: { labelSelector } }] },
  });
  await hub.create(fleetGitOpsClusters, {
    metadata: { namespace: argocd, name },
    spec: {
      placementRef: { apiVersion: 'cluster.open-cluster-management.io/v1beta1', kind: 'Placement', name },
      argoCDAgentAddon: { mode: 'autonomous', argoCD: 'Existing' },
    },
  });
}

/** The agent's Deployment has that image and no pod of another one. */
async function runsAgent({ client }: Cluster, tag: string): Promise<void> {
  const key = { namespace: argocd, name: 'argocd-agent-agent' };
  await waitForObject(
    client,
    deployments,
    key,
    (found) => {
      const { observedGeneration, replicas, updatedReplicas, readyReplicas } = (found?.status ?? {}) as Record<
        string,
        number
      >;
      return (
        found?.spec?.template?.spec?.containers[0]?.image === `${image}:${tag}` &&
        observedGeneration === found.metadata.generation &&
        [replicas, updatedReplicas, readyReplicas].every((count) => count === 1)
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
  const [pod] = await waitForObjects(hub, pods, { namespace: argocd }, (all) => {
    const mine = all.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] === 'argocd-agent-principal');
    return mine.length === 1 && mine.every(({ status }) => status?.podIP);
  });
  // The API server takes no loopback addresses: what it has is the same with 10 in front.
  return (pod?.status?.podIP ?? '').replace(/^10\./, '127.');
}
