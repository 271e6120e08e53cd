import { afterAll, beforeAll, expect, test } from 'vitest';
import { managedClusterSetBindings, type Ocm, startOcm } from '../../e2e/ocm/index.ts';
import { borrowCluster, type SharedCluster, startCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  configMaps,
  Informer,
  type KubeClient,
  type KubeObject,
  keyOf,
  namespaces,
  parseKey,
  pods,
  type ResourceType,
  secrets,
  services,
  WorkQueue,
} from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { cleanUp } from '../commands/index.ts';
import {
  argoCdApplications,
  argoProjects,
  gitOpsClusters,
  managedClusters,
  manifestWorks,
  placements,
} from '../hub/index.ts';
import { HubFixture, type RunningController, runController } from '../testing/fixture.ts';
import { installHubCrds } from '../testing/hub.ts';
import { inventoryDifferences, inventoryOf } from '../testing/inventory.ts';

const ns = 'argocd';
const name = 'cluster1';
const ended = new AbortController();

let hub: SharedCluster;
let managed: SharedCluster;
let ocm: Ocm;
let fixture: HubFixture;
let controller: RunningController;
let kubelet: Promise<void>;
beforeAll(async () => {
  [hub, managed] = await Promise.all([borrowCluster({ name: 'hub' }), startCluster({ name })]);
  await installHubCrds(hub);
  ocm = await startOcm(hub, { statusSyncIntervalMs: 500 });
  fixture = new HubFixture(hub.client);
  controller = runController(hub.client);
  kubelet = actAsKubelet(ended.signal);
});
afterAll(async () => {
  ended.abort();
  await kubelet;
  await controller?.stop();
  await ocm?.stop();
  await Promise.all([hub?.stop(), managed?.stop()]);
});

/** Runs the pods of the clean-up Job, as a kubelet would. */
async function actAsKubelet(signal: AbortSignal): Promise<void> {
  const logger = createLogger({ level: 'fatal', name: 'clean-up' });
  const informer = new Informer({ client: managed.client, type: pods, namespace: 'argocd-agent-addon-cleanup' });
  const queue = new WorkQueue({
    name: 'kubelet',
    logger,
    handler: async (key) => {
      const pod = informer.get(parseKey(key));
      if (!pod || pod.status?.phase === 'Succeeded') {
        return;
      }
      await cleanUp({ client: managed.client, namespace: ns, logger, signal });
      const status = { phase: 'Succeeded' };
      await managed.client.mergePatch(pods, pod.metadata, { status }, { subresource: 'status' });
    },
  });
  informer.subscribe({ added: (pod) => queue.add(keyOf(pod)) });
  await Promise.all([informer.run(signal), queue.run(signal)]);
}

/** Objects of users on the hub and the cluster. Some have names or labels like the controller's. */
async function usersObjects(): Promise<void> {
  const put = <T extends KubeObject>(client: KubeClient, type: ResourceType<T>, object: T) =>
    client.apply(type, object, { fieldManager: 'user', force: true });
  await put(hub.client, secrets, { metadata: { namespace: ns, name: 'cluster-own' }, type: 'Opaque', data: {} });
  await put(hub.client, secrets, { metadata: { namespace: name, name: 'argocd-agent-ca' }, type: 'Opaque', data: {} });
  await put(hub.client, configMaps, { metadata: { namespace: ns, name: 'argocd-cm' }, data: { own: 'true' } });
  const own = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name: 'own' } } as KubeObject;
  const manifests = [own] as never;
  await put(hub.client, manifestWorks, {
    metadata: { namespace: name, name: 'own' },
    spec: { workload: { manifests } },
  });
  await put(managed.client, namespaces, {
    metadata: { name: 'team', labels: { 'app.kubernetes.io/managed-by': 'argocd-agent-addon' } },
  });
  await put(managed.client, services, {
    metadata: { namespace: 'team', name: 'argocd-redis' },
    spec: { ports: [{ port: 1 }] },
  });
}

/** Writes copies into Argo CD's namespace, as an agent would. */
async function actAsAgent(): Promise<void> {
  const annotations = { 'argocd.argoproj.io/source-uid': '11111111-2222-4333-8444-555555555555' };
  const finalizers = ['resources-finalizer.argocd.argoproj.io'];
  const source = { repoURL: 'https://example.com/repository.git', path: '.' };
  const destination = { server: 'https://kubernetes.default.svc', namespace: 'default' };
  const metadata = { namespace: ns, annotations, finalizers };
  const spec = { project: 'default', source, destination };
  await managed.client.create(argoCdApplications, { metadata: { ...metadata, name: 'copy' }, spec } as KubeObject);
  await managed.client.create(argoProjects, { metadata: { ...metadata, name: 'default' }, spec: {} } as KubeObject);
}

/** All objects except Argo CD's CRDs, which stay together with the objects that users declared. */
const withoutCrds = (all: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(all).filter(([key]) => !/^(customresourcedefinitions|apiservices)\..*argoproj/.test(key)),
  );

async function comesBackTo(before: Record<string, string>, client: KubeClient, what: string): Promise<void> {
  let left: string[] = [];
  try {
    await until(what, async () => {
      left = inventoryDifferences(withoutCrds(before), withoutCrds(await inventoryOf(client)));
      return left.length === 0;
    });
  } catch {
    expect(left, what).toEqual([]);
  }
}

async function enroll(): Promise<void> {
  await fixture.gitOpsCluster(ns, 'fleet', 'all');
  await until('what the works bring', async () => {
    const works = (await hub.client.list(manifestWorks, { namespace: name })).filter(
      ({ metadata }) => metadata.name !== 'own',
    );
    const isApplied = ({ status }: (typeof works)[number]) =>
      status?.conditions?.some(({ type, status: value }) => type === 'Applied' && value === 'True') ?? false;
    return works.length === 3 && works.every(isApplied);
  });
  await actAsAgent();
}

test('ocm defect M15: after a detachment hub and cluster are as they were before the enrolment', async () => {
  await ocm.join(managed, { fleet: 'yes' });
  await fixture.namespace(ns);
  await hub.client.create(managedClusterSetBindings, {
    metadata: { namespace: ns, name: 'global' },
    spec: { clusterSet: 'global' },
  });
  // The controller would add these two, and they stay: without them OCM drops clusters that do not report for a while.
  const tolerations = ['unreachable', 'unavailable'].map((one) => ({
    key: `cluster.open-cluster-management.io/${one}`,
    operator: 'Exists' as const,
  }));
  const requiredClusterSelector = { labelSelector: { matchLabels: { fleet: 'yes' } } };
  const spec = { tolerations, predicates: [{ requiredClusterSelector }] };
  await hub.client.create(placements, { metadata: { namespace: ns, name: 'all' }, spec } as KubeObject);
  await usersObjects();
  await until('the work of the user', async () => {
    const found = await managed.client.get(configMaps, { namespace: 'default', name: 'own' });
    return found?.metadata.ownerReferences?.length === 1;
  });
  const before = { hub: await inventoryOf(hub.client), managed: await inventoryOf(managed.client) };

  await enroll();
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'fleet' });
  await comesBackTo(before.managed, managed.client, 'the cluster, after its GitOpsCluster is gone');
  await comesBackTo(before.hub, hub.client, 'the hub, after the GitOpsCluster is gone');

  await enroll();
  await hub.client.mergePatch(managedClusters, { name }, { metadata: { labels: { fleet: 'no' } } });
  await comesBackTo(before.managed, managed.client, 'the cluster, after it is no longer selected');
  await hub.client.mergePatch(managedClusters, { name }, { metadata: { labels: { fleet: 'yes' } } });
  await until(
    'the cluster to be enrolled again',
    async () => (await managed.client.get(namespaces, { name: ns })) !== undefined,
  );
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'fleet' });
  await comesBackTo(before.hub, hub.client, 'the hub, after the GitOpsCluster is gone again');

  await hub.client.delete(manifestWorks, { namespace: name, name: 'own' });
  await until('it to go', async () => (await hub.client.list(manifestWorks, { namespace: name })).length === 0);
  const bare = await inventoryOf(managed.client);
  await enroll();
  await hub.client.delete(managedClusters, { name });
  await comesBackTo(bare, managed.client, 'the cluster, after it was taken from the hub');
  await until('the ManagedCluster to go', async () => !(await hub.client.get(managedClusters, { name })));
}, 600_000);
