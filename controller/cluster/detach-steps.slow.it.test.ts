import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { borrowCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  events,
  findCondition,
  isConditionTrue,
  type KubeObject,
  type ObjectMeta,
  type OwnerReference,
  secrets,
} from '../../lib/kube/index.ts';
import {
  argoApplicationSets,
  argoCdApplications,
  gitOpsClusters,
  manifestWorks,
  placementDecisions,
  placements,
} from '../hub/index.ts';
import { useHub } from '../testing/hub.ts';

const hub = useHub(borrowCluster);

/** Creates the owner of an ApplicationSet's Applications. It must exist for the garbage collector. */
async function applicationSet(): Promise<OwnerReference> {
  const template = { metadata: { name: 'any' }, spec: { project: 'default', destination: {} } };
  const metadata = { namespace: hub.ns, name: 'set' };
  const made = await hub.client.create(argoApplicationSets, {
    metadata,
    spec: { generators: [], template },
  } as KubeObject);
  return {
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'ApplicationSet',
    name: 'set',
    uid: made.metadata.uid ?? '',
    controller: true,
  };
}

/** An Application of the hub for a cluster. */
async function application(namespace: string, name: string, cluster: string, metadata: Partial<ObjectMeta> = {}) {
  const destination = { name: cluster, namespace: 'default' };
  const source = { repoURL: 'https://example.com/repository.git', path: '.' };
  const spec = { project: 'default', source, destination };
  await hub.client.create(argoCdApplications, { metadata: { namespace, name, ...metadata }, spec } as KubeObject);
  return { namespace, name };
}

test('ocm defect H6: a cluster that does not respond delays no other and can be force-detached', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.holdWorks(a);
  await hub.fixture.clusterAvailable(a, 'Unknown');
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'fleet' });
  await hub.fixture.endCleanUp(b);
  await until('the other cluster to be left', async () => (await hub.addOn(b)) === undefined);
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'RemovedClustersCleanedUp',
    'False',
    new RegExp(`cluster ${a} must remove ManifestWork argocd-agent-addon-agent \\(the cluster does not report\\)`),
  );
  expect(await hub.secret(`cluster-${a}`)).toBeDefined();
  const annotations = { 'apps.open-cluster-management.io/force-detach': 'true' };
  await hub.client.mergePatch(gitOpsClusters, { namespace: ns, name: 'fleet' }, { metadata: { annotations } });
  await until(
    'gone',
    async () => (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'fleet' })) === undefined,
  );
  expect(await hub.secret(`cluster-${a}`)).toBeUndefined();
  for (const part of ['agent', 'argocd', 'crds']) {
    await hub.releaseWork(a, part);
  }
});

test('ocm defect H8: a detached cluster is cleaned up in order, and can be enrolled again', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.holdWorks(a);
  const isTerminating = async (part: string) => (await hub.work(a, part))?.metadata.deletionTimestamp !== undefined;
  await hub.unselect(a);
  await until('the agent to go', () => isTerminating('agent'));
  expect((await hub.addOn(a))?.metadata.annotations).toMatchObject({
    'apps.open-cluster-management.io/detaching': 'true',
  });
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'RemovedClustersCleanedUp',
    'False',
    /Cleaning up 1 removed cluster.*argocd-agent-addon-agent/,
  );
  expect(await isTerminating('argocd')).toBe(false);
  const registrations = async () => (await hub.addOn(a))?.status?.registrations;
  expect(await registrations(), 'the agent needs its certificate').toHaveLength(1);
  await hub.releaseWork(a, 'agent');
  await until('Argo CD to go', () => isTerminating('argocd'));
  await until(
    'no registration, as nobody needs a certificate any more',
    async () => (await registrations())?.length === 0,
  );
  expect(await isTerminating('crds')).toBe(false);
  expect(await hub.secret(`cluster-${a}`)).toBeDefined();
  await hub.releaseWork(a, 'argocd');
  await hub.fixture.conditionIs([ns, 'fleet'], 'RemovedClustersCleanedUp', 'False', /must finish the clean-up Job/);
  expect(findCondition((await hub.addOn(a))?.status?.conditions, 'HookManifestCompleted')).toMatchObject({
    status: 'False',
    reason: 'HookManifestIsNotCompleted',
  });
  expect(await isTerminating('crds')).toBe(false);
  await hub.fixture.endCleanUp(a);
  await until('the CRDs work to go', () => isTerminating('crds'));
  await hub.releaseWork(a, 'crds');
  await until('nothing left', async () => {
    const left = await Promise.all([
      hub.addOn(a),
      hub.secret(`cluster-${a}`),
      hub.secret(`argocd-cluster-client-${a}`),
      hub.secret(`argocd-agent-addon-${a}`),
    ]);
    return left.every((one) => one === undefined);
  });
  await hub.fixture.conditionIs(
    [ns, 'fleet'],
    'RemovedClustersCleanedUp',
    'True',
    /^Cleaned up 1 removed cluster\(s\)$/,
  );
  expect(await hub.work(b, 'agent')).toBeDefined();
  await hub.fixture.placement(ns, 'placement', [a, b]);
  await hub.enrolled(a);
});

test('the agent stays until Applications that are being deleted are gone', async () => {
  const { ns, a } = hub;
  await hub.enroll();
  await hub.fixture.agentConnected(ns, a);
  await until('the connection to be seen', async () =>
    isConditionTrue((await hub.addOn(a))?.status?.conditions, 'AgentConnected'),
  );
  const finalizers = ['resources-finalizer.argocd.argoproj.io'];
  const isStanding = async () => (await hub.work(a, 'agent'))?.metadata.deletionTimestamp === undefined;
  const held = await application(ns, 'held', a, { finalizers });
  const ofSet = await application(ns, 'of-set', a, { finalizers, ownerReferences: [await applicationSet()] });
  await application(ns, 'kept', a);
  await hub.client.delete(argoCdApplications, held);
  await hub.unselect(a);
  const both = new RegExp(`agent of cluster ${a} stays.*at most until.*${ns}/held, ${ns}/of-set$`);
  await hub.fixture.conditionIs([ns, 'fleet'], 'RemovedClustersCleanedUp', 'False', both);
  await hub.client.mergePatch(argoCdApplications, held, { metadata: { finalizers: null } });
  const one = new RegExp(`: ${ns}/of-set$`);
  await hub.fixture.conditionIs([ns, 'fleet'], 'RemovedClustersCleanedUp', 'False', one);
  await hub.restart();
  await hub.idle();
  expect(await isStanding()).toBe(true);
  await hub.client.delete(argoCdApplications, ofSet);
  expect(await isStanding()).toBe(true);
  await hub.client.mergePatch(argoCdApplications, ofSet, { metadata: { finalizers: null } });
  await until('the agent to go', async () => (await hub.work(a, 'agent')) === undefined);
  await hub.fixture.endCleanUp(a);
  await until('the add-on to go', async () => (await hub.addOn(a)) === undefined);
});

test('the agent stays for a limited time, and not at all when it is not connected', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.fixture.agentConnected(ns, a);
  await until('the connection to be seen', async () =>
    isConditionTrue((await hub.addOn(a))?.status?.conditions, 'AgentConnected'),
  );
  const ownerReferences = [await applicationSet()];
  for (const cluster of [a, b]) {
    await application(ns, `of-${cluster}`, cluster, { ownerReferences });
  }
  await Promise.all([hub.unselect(a), hub.unselect(b)]);
  const drainUntil = (cluster: string) =>
    hub.addOn(cluster).then((addOn) => addOn?.metadata.annotations?.['apps.open-cluster-management.io/drain-until']);
  await until('the agent that is not connected to go', async () => (await hub.work(b, 'agent')) === undefined);
  expect(await drainUntil(b)).toBeUndefined();
  await until('the other one to stay', () => drainUntil(a));
  await hub.idle();
  expect(await hub.work(a, 'agent')).toBeDefined();
  await hub.stop();
  hub.start({ clock: () => new Date(Date.now() + 120_000) });
  await until('the agent to go', async () => (await hub.work(a, 'agent')) === undefined);
  const event = await until('the event', async () =>
    (await hub.client.list(events, { namespace: ns })).find(({ reason }) => reason === 'DrainTimedOut'),
  );
  expect(event.note).toContain(`${ns}/of-${a}`);
  await Promise.all([a, b].map((cluster) => hub.fixture.endCleanUp(cluster)));
  await until('the add-ons to go', async () => !(await hub.addOn(a)) && !(await hub.addOn(b)));
});

test('a cluster that is selected again during its clean-up gets its works when the clean-up is gone', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.unselect(a);
  const key = { namespace: a, name: 'addon-argocd-agent-addon-pre-delete' };
  await until('the clean-up', () => hub.client.get(manifestWorks, key));
  const finalizers = ['cluster.open-cluster-management.io/manifest-work-cleanup'];
  await hub.client.mergePatch(manifestWorks, key, { metadata: { finalizers } });
  await hub.fixture.placement(ns, 'placement', [a, b]);
  const message = new RegExp(`cluster ${a} must first remove ManifestWork ${key.name}`);
  await hub.fixture.conditionIs([ns, 'fleet'], 'ManifestWorkCreated', 'False', message);
  expect(await hub.work(a, 'agent')).toBeUndefined();
  await hub.client.mergePatch(manifestWorks, key, { metadata: { finalizers: null } });
  await hub.enrolled(a);
  await hub.fixture.conditionIs([ns, 'fleet'], 'ManifestWorkCreated', 'True');
  const addOn = await until('the add-on to be as before', async () => {
    const found = await hub.addOn(a);
    return findCondition(found?.status?.conditions, 'Progressing')?.reason !== 'Detaching' && found;
  });
  expect(Object.keys(addOn.metadata.annotations ?? {})).toEqual([
    'apps.open-cluster-management.io/gitopscluster-owner',
  ]);
  expect(findCondition(addOn.status?.conditions, 'HookManifestCompleted')).toBeUndefined();
});

test('a cluster that is selected again while its works are being deleted gets them again', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.holdWorks(a);
  const before = (await hub.work(a, 'agent'))?.metadata.uid;
  await hub.unselect(a);
  await until('the agent to go', async () => (await hub.work(a, 'agent'))?.metadata.deletionTimestamp);
  await hub.fixture.placement(ns, 'placement', [a, b]);
  await until('the cluster to be back', async () => {
    const annotations = (await hub.addOn(a))?.metadata.annotations ?? {};
    return annotations['apps.open-cluster-management.io/detaching'] === undefined;
  });
  await hub.releaseWork(a, 'agent');
  await until('another work of the agent', async () => {
    const work = await hub.work(a, 'agent');
    return work !== undefined && work.metadata.uid !== before && work.metadata.deletionTimestamp === undefined;
  });
  for (const part of ['argocd', 'crds']) {
    expect((await hub.work(a, part))?.metadata.deletionTimestamp).toBeUndefined();
    await hub.releaseWork(a, part);
  }
});

test('a failed clean-up is reported, and runs again when its work is deleted', async () => {
  const { ns, a } = hub;
  await hub.enroll();
  await hub.unselect(a);
  await hub.fixture.endCleanUp(a, 'JobFailed');
  const message = /clean-up Job on cluster .* failed: .*delete ManifestWork .* to run it again/;
  await hub.fixture.conditionIs([ns, 'fleet'], 'RemovedClustersCleanedUp', 'False', message);
  const key = { namespace: a, name: 'addon-argocd-agent-addon-pre-delete' };
  const failed = await hub.client.get(manifestWorks, key);
  await hub.client.delete(manifestWorks, key);
  await until('another', async () => {
    const work = await hub.client.get(manifestWorks, key);
    return work !== undefined && work.metadata.uid !== failed?.metadata.uid;
  });
  await hub.fixture.endCleanUp(a);
  await until('nothing left', async () => (await hub.client.list(manifestWorks, { namespace: a })).length === 0);
});

test('ocm defect H2: no cluster is detached because a Placement cannot be read', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.client.delete(placements, { namespace: ns, name: 'placement' });
  for (const name of ['placement-decision-1', 'placement-decision-2']) {
    await hub.client.delete(placementDecisions, { namespace: ns, name });
  }
  await hub.fixture.conditionIs([ns, 'fleet'], 'PlacementEvaluated', 'False', /does not exist/);
  await hub.restart();
  await delay(500); // longer than the time after which an unselected cluster would be detached
  await hub.idle();
  for (const cluster of [a, b]) {
    expect((await hub.work(cluster, 'agent'))?.metadata.deletionTimestamp).toBeUndefined();
  }
});

test('ocm defect H3: of two GitOpsClusters that select a cluster the older owns it, and hands it over when it is deleted', async () => {
  const { ns, a, b } = hub;
  await hub.fixture.placement(ns, 'first', [a]);
  await hub.fixture.gitOpsCluster(ns, 'older', 'first');
  await delay(1_100); // creation times have whole seconds
  const other = `${ns}-other`;
  await hub.fixture.namespace(other);
  await hub.fixture.placement(other, 'second', [a, b]);
  await hub.fixture.gitOpsCluster(other, 'younger', 'second', { principalServerAddress: 'other.example.com' });
  hub.start();
  await hub.fixture.conditionIs([ns, 'older'], 'Ready', 'True');
  await hub.fixture.conditionIs([other, 'younger'], 'Ready', 'False', /already belongs to the older/);
  await hub.fixture.conditionIs(
    [other, 'younger'],
    'PlacementEvaluated',
    'False',
    new RegExp(`${a} already belongs to the older GitOpsCluster ${ns}/older`),
  );
  const serverOf = async (cluster: string) => {
    const params = (await hub.work(cluster, 'agent'))?.spec.workload.manifests.find(
      ({ metadata }) => metadata.name === 'argocd-agent-params',
    );
    return (params as { data?: Record<string, string> } | undefined)?.data?.['agent.server.address'];
  };
  expect(await serverOf(a)).toBe('principal.example.com');
  expect(await serverOf(b)).toBe('other.example.com');
  expect(await hub.secret(`cluster-${a}`, other)).toBeUndefined();
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'older' });
  await until('the other server', async () => (await serverOf(a)) === 'other.example.com');
  await until(
    'the older one gone',
    async () => (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'older' })) === undefined,
  );
  await until(
    'the Secret to move',
    async () =>
      (await hub.secret(`cluster-${a}`, other)) !== undefined && (await hub.secret(`cluster-${a}`)) === undefined,
  );
});

test('ocm defect H1: deleting a GitOpsCluster removes all its objects', async () => {
  const { ns, a, b } = hub;
  await hub.enroll();
  await hub.client.delete(gitOpsClusters, { namespace: ns, name: 'fleet' });
  await Promise.all([a, b].map((cluster) => hub.fixture.endCleanUp(cluster)));
  await until(
    'gone',
    async () => (await hub.client.get(gitOpsClusters, { namespace: ns, name: 'fleet' })) === undefined,
  );
  expect(await hub.client.list(manifestWorks, { namespace: a })).toEqual([]);
  expect(await hub.addOn(b)).toBeUndefined();
  await until('Secrets gone', async () => (await hub.client.list(secrets, { namespace: ns })).length === 0);
});
