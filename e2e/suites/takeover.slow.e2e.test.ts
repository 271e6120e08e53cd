import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest';
import { stringify } from 'yaml';
import { until } from '../../lib/base/testing.ts';
import {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  deployments,
  Informer,
  type KubeClient,
  type KubeObject,
  type Pod,
  pods,
  type ResourceType,
  resourceType,
  roleBindings,
  roles,
  secrets,
  serviceAccounts,
  services,
} from '../../lib/kube/index.ts';
import {
  addonRelease,
  type FleetApplication,
  fleetApplicationSets,
  fleetApplications,
  fleetGitOpsClusters,
  guestbookFiles,
  guestbookRepository,
  guestbookSet,
  guestbookValues,
  isSyncedAndHealthy,
  principalOf,
  type RunningFleet,
  releaseNamespace,
  selectedClusters,
  startFleet,
} from '../fleet/index.ts';
import { installCrds, publishedCrds } from '../hub/index.ts';
import { ocmManagedClusterAddOns, ocmManifestWorks } from '../ocm/index.ts';
import { programCommand } from '../programs/index.ts';
import { waitForObject } from '../testbed/index.ts';

// A hub of argocd-pull-integration's chart whose cluster has synced Applications and running pods is taken over and given
// back, while the Applications are edited on the hub. The original's objects are written as it leaves them; what
// argocd-operator would have deployed from its ArgoCD is deployed beforehand by this project's chart.

const namespace = 'argocd';
const name = 'cluster1';
const original = { name: 'fleet', namespace: 'gitops' };
const principal = { namespace, name: 'argocd-agent-principal' };
const authority = { namespace, name: 'argocd-agent-ca' };
const argoCdKey = { namespace, name: 'argocd' };
const argoCdWork = `argocd-agent-cr-${namespace}-gitops-cluster`;
const shared = [argoCdWork, 'argocd-agent-ca-mw'];
const generous = { timeoutMs: 300_000 };
const own = { labels: { 'app.kubernetes.io/managed-by': 'argocd-pull-integration' } };
const kind = <T extends KubeObject>(group: string, version: string, one: string, plural: string, namespaced = true) =>
  resourceType<T>({ group, version, kind: one, plural, namespaced });
const argoCds = kind('argoproj.io', 'v1beta1', 'ArgoCD', 'argocds');
const addOnConfigs = kind(
  'addon.open-cluster-management.io',
  'v1alpha1',
  'AddOnDeploymentConfig',
  'addondeploymentconfigs',
);

let fleet: RunningFleet;
let hub: KubeClient;
let cluster: KubeClient;
const ended = new AbortController();

beforeAll(async () => {
  fleet = await startFleet({ clusters: 1, labels: selectedClusters });
  hub = fleet.hub.client;
  cluster = (fleet.members.get(name) as NonNullable<ReturnType<typeof fleet.members.get>>).cluster.client;
  const operator = await publishedCrds('argocd-operator');
  await Promise.all([installCrds(hub, operator), installCrds(cluster, operator)]);
  await fleet.git.commit(guestbookRepository, guestbookFiles('Hello'), 'A guestbook');
});
afterAll(async () => {
  ended.abort();
  await fleet?.stop();
});

const put = <T extends KubeObject>(client: KubeClient, type: ResourceType<T>, object: T) =>
  client.apply(type, object, { fieldManager: 'original', force: true });

/** Runs `gitops-controller` with the hub's kubeconfig; returns what it prints. */
async function command(...args: string[]): Promise<string> {
  const [node, file] = programCommand('gitops-controller');
  const { stdout } = await promisify(execFile)(node, [file, ...args, '--kubeconfig', fleet.hub.kubeconfig]);
  return stdout;
}

async function connected(): Promise<void> {
  const isConnected = (found: { status?: { clusters?: { connected: number; available: number } } } | undefined) =>
    found?.status?.clusters?.connected === 1 && found.status.clusters.available === 1;
  await waitForObject(hub, fleetGitOpsClusters, { namespace, name: 'gitops-cluster' }, isConnected, generous);
}

/** Principal, Argo CD and agent stay as if argocd-operator had made them; everything else of this project goes. */
async function handOverToOperator(): Promise<void> {
  const types = [
    deployments,
    services,
    serviceAccounts,
    configMaps,
    roles,
    roleBindings,
    clusterRoles,
    clusterRoleBindings,
  ];
  const policies = kind('networking.k8s.io', 'v1', 'NetworkPolicy', 'networkpolicies');
  const annotations = { 'meta.helm.sh/release-name': null, 'meta.helm.sh/release-namespace': null };
  const labels = { 'app.kubernetes.io/managed-by': 'argocd-operator' };
  for (const type of [...types, policies] as ResourceType[]) {
    for (const { metadata } of await hub.list(type, { labelSelector: 'app.kubernetes.io/component=principal' })) {
      await hub.mergePatch(type, metadata, { metadata: { annotations, labels } });
    }
  }
  for (const client of [hub, cluster]) {
    await put(client, argoCds, { metadata: argoCdKey, spec: { server: { enabled: false } } } as KubeObject);
    await client.mergePatch(argoCds, argoCdKey, { status: { phase: 'Available' } }, { subresource: 'status' });
  }
  const { metadata } = (await hub.get(argoCds, argoCdKey)) as KubeObject;
  const owner = {
    apiVersion: 'argoproj.io/v1beta1',
    kind: 'ArgoCD',
    name: 'argocd',
    uid: metadata.uid,
    controller: true,
  };
  await hub.mergePatch(services, principal, { metadata: { ownerReferences: [owner] } });
  const controller = { namespace: releaseNamespace, name: `${addonRelease}-controller` };
  await hub.mergePatch(deployments, controller, { spec: { replicas: 0 } });
  await waitForObject(hub, deployments, controller, (found) => !found?.status?.replicas, generous);
  const operator = { spec: { argoCDAgentAddon: { argoCD: 'Operator' } } };
  await hub.mergePatch(fleetGitOpsClusters, { namespace, name: 'gitops-cluster' }, operator);
  await command('release', '--to', 'original', '--release', original.name, '--release-namespace', original.namespace);
}

/** The original's chart, and what its controller makes. */
async function installOriginal(): Promise<void> {
  const chart = join(fleet.folder, 'original');
  await mkdir(join(chart, 'templates'), { recursive: true });
  await writeFile(join(chart, 'Chart.yaml'), stringify({ apiVersion: 'v2', name: 'original', version: '1.0.0' }));
  const labels = { 'app.kubernetes.io/name': 'argocd-pull-integration-controller' };
  const containers = [{ name: 'manager', image: 'registry.k8s.io/pause:3.10' }];
  const { host, port } = await principalOf(hub);
  const placementRef = {
    apiVersion: 'cluster.open-cluster-management.io/v1beta1',
    kind: 'Placement',
    name: 'placement',
  };
  const objects = [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { namespace, name: 'argocd-pull-integration-controller', labels },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
    },
    {
      apiVersion: 'apps.open-cluster-management.io/v1alpha1',
      kind: 'GitOpsCluster',
      metadata: { namespace, name: 'gitops-cluster' },
      spec: {
        placementRef,
        argoCDAgentAddon: { mode: 'managed', principalServerAddress: host, principalServerPort: String(port) },
      },
    },
  ];
  await writeFile(join(chart, 'templates/all.yaml'), objects.map((one) => stringify(one)).join('---\n'));
  await fleet.helm('install', original.name, chart, '--namespace', original.namespace, '--create-namespace');
  const server = Buffer.from(`https://${name}-control-plane`).toString('base64');
  await hub.mergePatch(secrets, { namespace, name: `cluster-${name}` }, { data: { server } });
  const work = (key: string, manifest: object, metadata: object = {}) =>
    put(hub, ocmManifestWorks, {
      metadata: { namespace: name, name: key, ...metadata },
      spec: { workload: { manifests: [manifest as KubeObject] } },
    });
  const certificate = (await hub.get(secrets, authority))?.data?.['tls.crt'];
  await work('argocd-agent-ca-mw', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: authority,
    type: 'Opaque',
    data: { 'ca.crt': certificate },
  });
  const spec = { server: { enabled: false }, sourceNamespaces: ['*'] };
  await work(argoCdWork, { apiVersion: 'argoproj.io/v1beta1', kind: 'ArgoCD', metadata: argoCdKey, spec }, own);
  const { metadata } = await put(hub, addOnConfigs, {
    metadata: { namespace: name, name: 'operator' },
    spec: { customizedVariables: [{ name: 'ARGOCD_OPERATOR_INSTALL', value: 'false' }] },
  } as KubeObject);
  const config = { group: 'addon.open-cluster-management.io', resource: addOnConfigs.plural };
  const configs = [{ ...config, namespace: metadata.namespace, name: metadata.name }];
  const addOn = { namespace: name, name: addonRelease };
  await put(hub, ocmManagedClusterAddOns, { metadata: { ...addOn, ...own }, spec: { configs } } as KubeObject);
  const signerName = 'open-cluster-management.io/argocd-agent-addon';
  const registrations = [{ signerName, subject: { user: 'agent', groups: ['agents'] } }];
  await hub.mergePatch(ocmManagedClusterAddOns, addOn, { status: { registrations } }, { subresource: 'status' });
  const isApplied = (found: KubeObject & { status?: { conditions?: { type: string; status: string }[] } }) =>
    found.status?.conditions?.some(({ type, status }) => type === 'Applied' && status === 'True');
  await until("the original's works", async () => {
    const found = await Promise.all(shared.map((key) => hub.get(ocmManifestWorks, { namespace: name, name: key })));
    return found.every((one) => one && isApplied(one));
  });
}

/** What must not happen meanwhile, and how long edits of the hub take to the cluster. */
class Watch {
  readonly deleted: string[] = [];
  #last = 0;
  #slowest = 0;
  readonly #end = new AbortController();
  #probing: Promise<void> = Promise.resolve();

  async start(): Promise<void> {
    const key = { namespace, name: 'probe' };
    const signal = AbortSignal.any([this.#end.signal, ended.signal]);
    const copies = new Map<string, string>();
    for (const [where, client] of [
      ['hub', hub],
      ['cluster', cluster],
    ] as const) {
      const informer = new Informer<FleetApplication>({ client, type: fleetApplications, namespace });
      const look = ({ metadata, spec }: FleetApplication) =>
        where === 'cluster' && copies.set(metadata.name, JSON.stringify(spec?.info));
      informer.subscribe({
        added: look,
        updated: (_, now) => void look(now),
        deleted: ({ metadata }) => void this.deleted.push(`${where} ${metadata.name}`),
      });
      void informer.run(signal).catch(() => undefined);
    }
    const edit = async () => {
      for (let count = 0; !signal.aborted; count++) {
        const info = [{ name: 'edit', value: String(count) }];
        this.#last = performance.now();
        await hub.mergePatch(fleetApplications, key, { spec: { info } });
        await until(`edit ${count}`, () => copies.get(key.name) === JSON.stringify(info) || signal.aborted, generous);
        this.#slowest = Math.max(this.#slowest, performance.now() - this.#last);
      }
    };
    this.#probing = edit();
  }

  /** Milliseconds of the slowest edit. */
  async stop(): Promise<number> {
    this.#end.abort();
    await this.#probing;
    return Math.round(this.#slowest);
  }
}

/** Pods that neither side's controller is, with their restarts. */
async function running(): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const client of [hub, cluster]) {
    for (const { metadata, status } of (await client.list(pods)) as Pod[]) {
      if (!/-addon-|argocd-pull-integration/.test(metadata.name)) {
        const restarts = status?.containerStatuses?.map(({ restartCount }) => restartCount);
        found[`${metadata.namespace}/${metadata.name}`] = `${metadata.uid} ${restarts}`;
      }
    }
  }
  return found;
}

test('Applications and pods stay through a takeover and the way back, and edits go on', async () => {
  onTestFailed(async () => console.error(await fleet.logs(60)));
  const { gitOpsCluster } = guestbookValues;
  const values = {
    ...guestbookValues,
    gitOpsCluster: { ...gitOpsCluster, argoCDAgentAddon: { clientCertificate: 'Generated' } },
  };
  await fleet.install(values);
  const repoURL = fleet.git.url(guestbookRepository);
  await hub.create(fleetApplicationSets, guestbookSet(repoURL));
  const source = { repoURL, path: 'app', targetRevision: 'main' };
  const destination = { name, namespace: guestbookRepository };
  await hub.create(fleetApplications, {
    metadata: { namespace, name: 'probe' },
    spec: { project: 'default', source, destination },
  });
  const guestbook = { namespace, name: `guestbook-${name}` };
  await waitForObject(hub, fleetApplications, guestbook, isSyncedAndHealthy, generous);
  await connected();
  await handOverToOperator();
  await installOriginal();

  const before = await running();
  expect(Object.keys(before).join()).toContain('guestbook/guestbook-');
  const taking = new Watch();
  await taking.start();
  const said = await command('adopt');
  expect(said).toContain('Secret argocd/argocd-agent-ca: taken over as it is');
  await fleet.install({ ...guestbookValues, hubArgoCD: { enabled: false }, principal: { enabled: false } });
  await until(
    "the original's works to go",
    async () => {
      const found = await Promise.all(shared.map((key) => hub.get(ocmManifestWorks, { namespace: name, name: key })));
      return found.every((one) => one === undefined);
    },
    generous,
  );
  await connected();
  const takingOver = await taking.stop();
  expect(await running()).toEqual(before);
  expect(taking.deleted).toEqual([]);

  const giving = new Watch();
  await giving.start();
  await command('release', '--to', 'original');
  await installOriginal();
  const givingBack = await giving.stop();
  expect(await running()).toEqual(before);
  expect(giving.deleted).toEqual([]);
  await waitForObject(cluster, fleetApplications, guestbook, isSyncedAndHealthy, generous);
  console.info(`slowest edit: ${takingOver} ms during the takeover, ${givingBack} ms on the way back`);
}, 1_200_000);
