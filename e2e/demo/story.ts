import {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  deployments,
  type KubeClient,
  type KubeObject,
  namespaces,
  type ResourceType,
  resourceType,
  secrets,
  statefulSets,
} from '../../lib/kube/index.ts';
import {
  type Application,
  applicationSets,
  applications,
  type Fleet,
  gitOpsClusters,
  guestbookFiles,
  guestbookRepository,
  guestbookSet,
  guestbookValues,
  isSyncedAndHealthy,
  selectedClusters,
  startFleet,
  waitForObject,
  waitForObjects,
  watchObjects,
} from '../fleet/index.ts';
import { appliedManifestWorks, managedClusters, manifestWorks } from '../ocm/index.ts';
import type { Cluster } from '../testbed/index.ts';
import { buildTool, toolNames } from '../tools/index.ts';
import { announceReady, relayOutput } from './detached.ts';
import { Progress } from './progress.ts';

/** How the demo ends: by itself after its last step, or when it is interrupted. */
export interface DemoOptions {
  until: 'done' | 'interrupted';
  /** It runs in the background for whoever started it. */
  detached: boolean;
}

const argocd = 'argocd';

/** Runs the demo; the result is the process's exit code. */
export async function runDemo({ until, detached }: DemoOptions): Promise<number> {
  if (detached) relayOutput();
  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => interrupted.abort(new Interrupted()));
  const { signal } = interrupted;
  const progress = new Progress();
  let fleet: Fleet | undefined;
  let code = 0;
  try {
    progress.chapter('Tools');
    const log = (line: string) => progress.say(line);
    await progress.step('etcd, Kubernetes, Helm, Argo CD and Redis are built or in the cache', async () => {
      for (const name of toolNames) await buildTool(name, { signal, log });
    });
    progress.chapter('A hub and two managed clusters');
    fleet = await startFleet({ labels: selectedClusters, signal, step: (what, part) => progress.step(what, part) });
    await enroll(fleet, progress, signal);
    await live(fleet, progress, signal);
    await comeAndGo(fleet, progress, signal);
    process.stdout.write(`\n${progress.table()}\n`);
    if (until === 'interrupted') await stay(fleet, detached, signal);
  } catch (error) {
    if (!(signal.aborted && signal.reason instanceof Interrupted)) {
      process.stderr.write(`\nThe demo failed: ${(error as Error).stack ?? error}\n`);
      if (fleet) process.stderr.write(`Logs of every process are below ${fleet.folder}\n`);
      code = 1;
    } else if (until === 'done') code = 130;
  }
  if (fleet) {
    process.stdout.write('\nStopping everything …\n');
    await fleet.stop();
  }
  return code;
}

class Interrupted extends Error {}

/** helm install, enrolment, and the first synchronisation. */
async function enroll(fleet: Fleet, progress: Progress, signal: AbortSignal): Promise<void> {
  const { hub, git } = fleet;
  progress.chapter('helm install, enrolment');
  await git.commit(guestbookRepository, guestbookFiles('Hello'), 'A guestbook');
  const begin = performance.now();
  await progress.step('helm install argocd-agent-addon', () => fleet.install(guestbookValues));
  await progress.step('controller and principal are available', () =>
    waitForObjects(hub.client, deployments, { signal }, (all) => {
      const ours = all.filter((d) => d.metadata.labels?.['app.kubernetes.io/instance'] === 'argocd-agent-addon');
      return ours.length >= 2 && ours.every((d) => (d.status?.availableReplicas ?? 0) > 0);
    }),
  );
  await progress.step('both clusters enrolled: certificates, works, Argo CD, agent connected', () =>
    waitForObjects(
      hub.client,
      gitOpsClusters,
      { signal, timeoutMs: 180_000 },
      ([gitOpsCluster]) => gitOpsCluster?.status?.connectedClusters === 2,
    ),
  );
  await hub.client.create(applicationSets, guestbookSet(git.url(guestbookRepository)));
  await progress.step('an ApplicationSet over the Placement: two Applications Synced and Healthy on the hub', () =>
    waitForObjects(
      hub.client,
      applications,
      { namespace: argocd, signal, timeoutMs: 180_000 },
      (all) => all.length === 2 && all.every(isSyncedAndHealthy),
    ),
  );
  progress.measured('helm install to both Applications Synced and Healthy', performance.now() - begin);
}

/** What a user does all day, and how long it takes. */
async function live(fleet: Fleet, progress: Progress, signal: AbortSignal): Promise<void> {
  const { hub, git } = fleet;
  const [member] = fleet.members.values();
  if (!member) throw new Error('the fleet has no managed cluster');
  const { client, name } = member.cluster;
  const app = { namespace: argocd, name: `guestbook-${name}` };
  progress.chapter('Live');

  const revision = await git.commit(guestbookRepository, guestbookFiles('Hello again'), 'Another greeting');
  await hub.client.mergePatch(applications, app, refresh);
  await progress.step('a commit is refreshed from the hub, synced on the cluster and reported back', async () => {
    await greetingBecomes(client, 'Hello again', signal);
    await waitForObject(
      hub.client,
      applications,
      app,
      (a) => a?.status?.sync?.revision === revision && isSyncedAndHealthy(a),
      { signal },
    );
  });

  await measure(progress, 'an edit of the hub Application is on the managed cluster', {
    client,
    app,
    signal,
    act: () => hub.client.mergePatch(applications, app, { spec: { info: [{ name: 'edited', value: 'on the hub' }] } }),
    accept: (a) => JSON.stringify(a?.spec?.info)?.includes('on the hub') ?? false,
  });
  await measure(progress, 'a manual edit on the managed cluster is reverted', {
    client,
    app,
    signal,
    act: () => client.mergePatch(applications, app, { spec: { project: 'elsewhere' } }),
    accept: (a) => a?.spec?.project === 'default',
  });
  await measure(progress, 'an Application deleted on the managed cluster is back', {
    client,
    app,
    signal,
    act: async () => {
      const before = await client.get(applications, app);
      await client.delete(applications, app);
      return before?.metadata.uid;
    },
    accept: (a, uid) => a !== undefined && a.metadata.uid !== uid && !a.metadata.deletionTimestamp,
  });
  await progress.step('it is Synced and Healthy again', () =>
    waitForObject(hub.client, applications, app, isSyncedAndHealthy, { signal }),
  );
}

/** The clock runs from before the act to the watch event that shows its effect; the watch is open before. */
async function measure<T>(
  progress: Progress,
  what: string,
  options: {
    client: KubeClient;
    app: { namespace: string; name: string };
    signal: AbortSignal;
    act: () => Promise<T>;
    accept: (application: Application | undefined, acted: T) => boolean;
  },
): Promise<void> {
  const { client, app: key, signal, act, accept } = options;
  const watched = await watchObjects(client, applications, { key, signal });
  const begin = performance.now();
  const acted = await act();
  await watched.until(([application]) => accept(application, acted));
  progress.measured(what, performance.now() - begin);
  await watched.stop();
}

/** A third cluster joins; one leaves the Placement. */
async function comeAndGo(fleet: Fleet, progress: Progress, signal: AbortSignal): Promise<void> {
  const { hub } = fleet;
  progress.chapter('Clusters come and go');
  const member = await progress.step('a third cluster starts and is registered', () =>
    fleet.join('cluster3', selectedClusters),
  );
  const app = { namespace: argocd, name: 'guestbook-cluster3' };
  await progress.step('it is enrolled and its Application Synced and Healthy, without anyone doing anything', () =>
    waitForObject(hub.client, applications, app, isSyncedAndHealthy, { signal, timeoutMs: 180_000 }),
  );
  await hub.client.mergePatch(
    managedClusters,
    { name: 'cluster3' },
    { metadata: { labels: { 'fleet.example.com/demo': null } } },
  );
  await progress.step('it leaves the Placement and is left clean', () =>
    leftClean(hub.client, member.cluster, app, signal),
  );
}

const managedClusterAddOns = resourceType({
  group: 'addon.open-cluster-management.io',
  version: 'v1alpha1',
  kind: 'ManagedClusterAddOn',
  plural: 'managedclusteraddons',
  namespaced: true,
});

/** Nothing of ours is on the cluster, and nothing of the cluster on the hub. */
async function leftClean(
  hub: KubeClient,
  { name, client }: Pick<Cluster, 'name' | 'client'>,
  app: { namespace: string; name: string },
  signal: AbortSignal,
): Promise<void> {
  const wait = { signal, timeoutMs: 120_000 };
  const none = (objects: KubeObject[]) => objects.length === 0;
  await waitForObject(hub, applications, app, (a) => a === undefined, wait);
  await waitForObject(client, namespaces, { name: argocd }, (n) => n === undefined, wait);
  await waitForObjects(client, appliedManifestWorks, wait, none);
  await waitForObjects(client, namespaces, wait, (all) => !all.some(isOurs));
  for (const type of [deployments, statefulSets, clusterRoles, clusterRoleBindings] as ResourceType[]) {
    await waitForObjects(client, type, wait, (all) => !all.some(isOurs));
  }
  await waitForObjects(hub, manifestWorks, { ...wait, namespace: name }, none);
  await waitForObjects(hub, managedClusterAddOns, { ...wait, namespace: name }, none);
  await waitForObject(hub, secrets, { namespace: argocd, name: `cluster-${name}` }, (s) => s === undefined, wait);
  await waitForObjects(hub, gitOpsClusters, wait, ([g]) => g?.status?.clusters === 2);
}

const isOurs = ({ metadata }: KubeObject) => metadata.labels?.['app.kubernetes.io/managed-by'] === 'argocd-agent-addon';

async function stay(fleet: Fleet, detached: boolean, signal: AbortSignal): Promise<void> {
  const kubeconfigs = [fleet.hub, ...[...fleet.members.values()].map((m) => m.cluster)];
  process.stdout.write(`
The fleet is up. Kubeconfigs:
${kubeconfigs.map((c) => `  ${c.name.padEnd(10)} ${c.kubeconfig}`).join('\n')}

Try, with KUBECONFIG set to the hub's:
  kubectl get gitopsclusters,managedclusteraddons,manifestworks -A
  kubectl get applications -n argocd -w
  kubectl label managedcluster cluster3 fleet.example.com/demo=true    # it joins again

${detached ? 'End it with: npm run demo -- --down' : 'Ctrl-C stops everything.'}
`);
  announceReady();
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

const refresh = { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'normal' } } };

function greetingBecomes(client: KubeClient, text: string, signal: AbortSignal) {
  return waitForObject(
    client,
    configMaps,
    { namespace: guestbookRepository, name: 'greeting' },
    (c) => c?.data?.text === text,
    {
      signal,
    },
  );
}
