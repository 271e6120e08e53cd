import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { PlayedApplicationController } from '../../e2e/application-controller/index.ts';
import { installCrds, publishedCrds } from '../../e2e/hub/index.ts';
import { type Membership, type Ocm, startOcm } from '../../e2e/ocm/index.ts';
import { startTestbed, type Testbed } from '../../e2e/testbed/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import { until } from '../../lib/base/testing.ts';
import { clusterRoles, events, secrets } from '../../lib/kube/index.ts';
import { managedClusters } from '../hub/index.ts';
import { pullKeys } from './names.ts';
import { type PullApplication, type PullWork, payloadIn, pullApplications, pullWorks } from './resources.ts';
import { BasicFleet, mortal, revisionIn } from './testing/fleet.ts';
import { operationId } from './work.ts';

let testbed: Testbed;
let ocm: Ocm;
let member: Membership;
let fleet: BasicFleet;
const argoCd = new AbortController();
let playing: Promise<void> | undefined;

beforeAll(async () => {
  testbed = await startTestbed({ clusters: 1 });
  const [cluster] = testbed.managed;
  if (!cluster) {
    throw new Error('no managed cluster');
  }
  const hubCrds = await publishedCrds('ocm-hub');
  const argoCdCrds = await publishedCrds('argocd');
  const kinds = argoCdCrds.filter(({ metadata }) => metadata.name === 'applications.argoproj.io');
  await installCrds(testbed.hub.client, [...hubCrds, ...argoCdCrds]);
  await installCrds(cluster.client, kinds);
  // OCM's agent keeps the copy of a work that is deleted at the moment when it first applies it, as if it had lost the hub.
  ocm = await startOcm(testbed.hub, { statusSyncIntervalMs: 500, evictionGraceMs: 1_000 });
  member = await ocm.join(cluster);
  const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'];
  await cluster.client.create(clusterRoles, {
    metadata: { name: 'argocd', labels: { 'open-cluster-management.io/aggregate-to-work': 'true' } },
    rules: [{ apiGroups: ['argoproj.io'], resources: ['applications'], verbs }],
  });
  fleet = new BasicFleet({
    hub: testbed.hub.client,
    spoke: cluster.client,
    argoCd: new PlayedApplicationController({ client: cluster.client, revisionOf: () => 'abc' }),
  });
  playing = fleet.argoCd.run(argoCd.signal);
  await fleet.namespace('argocd');
  await fleet.namespace('gitops');
});
afterEach(() => fleet.reset());
afterAll(async () => {
  argoCd.abort();
  await playing;
  await ocm?.stop();
  await testbed?.stop();
});

const condition = (one: PullApplication | undefined) =>
  one?.status?.conditions?.find(({ type }) => type === 'PullModelError')?.message;
const isHealthy = (one: PullApplication | undefined) => one?.status?.health?.status === 'Healthy';
const sync = { sync: { revision: 'HEAD' } };

test('an Application reaches its cluster, its status comes back, and then nothing more is written', async () => {
  fleet.start();
  await fleet.create('guestbook');
  const copy = await fleet.onCluster('the copy', 'guestbook', Boolean);
  expect(copy.metadata.labels?.[pullKeys.pull]).toBeUndefined();
  expect(copy.spec?.destination).toEqual({
    name: '',
    server: 'https://kubernetes.default.svc',
    namespace: 'guestbook',
  });
  const one = await fleet.onHub('its health', 'guestbook', isHealthy);
  expect(one.status?.sync?.status).toBe('OutOfSync');
  await fleet.settled();
  const before = await fleet.versions();
  const writes = fleet.controller.writes;
  await fleet.hub.mergePatch(managedClusters, { name: 'cluster1' }, { metadata: { labels: { touched: 'yes' } } });
  await fleet.settled();
  expect(await fleet.versions()).toEqual(before);
  expect(fleet.controller.writes).toBe(writes);
  await fleet.stop();
  fleet.start();
  await until('caches', async () => fleet.controller.missing().length === 0);
  await fleet.settled();
  expect(fleet.controller.writes).toBe(0);
  expect(await fleet.versions()).toEqual(before);
});

test('ocm defect H9: ocm defect H10: an operation runs once, and the hub’s Application keeps its destination', async () => {
  fleet.start();
  await fleet.create('guestbook', { operation: sync });
  const done = await fleet.onHub(
    'the result',
    'guestbook',
    (one) => one?.status?.operationState?.phase === 'Succeeded',
  );
  expect(done.spec?.destination).toEqual({ name: 'elsewhere', namespace: 'guestbook' });
  expect(done.status?.operationState).toMatchObject({
    message: 'successfully synced (all tasks run)',
    syncResult: { revision: 'abc' },
  });
  await fleet.onHub('the end of the operation', 'guestbook', (one) => one && !one.operation);
  await fleet.settled();
  expect(fleet.did('ended')).toEqual(['argocd/guestbook']);
  await fleet.change('guestbook', { operation: sync });
  await fleet.onHub('the end of the second', 'guestbook', (one) => one && !one.operation);
  await fleet.settled();
  expect(fleet.did('ended')).toHaveLength(2);
  const [work] = await fleet.works('argocd/guestbook');
  expect(payloadIn(work)?.operation).toBeUndefined();
});

test('a change waits for the running operation and does not start it again', async () => {
  fleet.start();
  fleet.argoCd.hold();
  await fleet.create('guestbook', { operation: sync });
  await fleet.onHub('it to run', 'guestbook', (one) => {
    const state = one?.status?.operationState;
    return state?.phase === 'Running' && state.message === undefined;
  });
  await fleet.change('guestbook', { spec: { source: { targetRevision: 'v2' } } });
  await fleet.settled();
  expect(revisionIn((await fleet.works())[0])).toBe('v1');
  fleet.argoCd.release();
  await fleet.worksAre('the change', 'argocd/guestbook', ([work]) => revisionIn(work) === 'v2');
  await fleet.onHub('the end', 'guestbook', (one) => one && !one.operation);
  await fleet.settled();
  expect(fleet.did('ended')).toHaveLength(1);
});

test('an operation that a user terminates on the hub ends on the cluster', async () => {
  fleet.start();
  fleet.argoCd.hold();
  await fleet.create('guestbook', { operation: sync });
  const running = (one: PullApplication | undefined) => {
    const state = one?.status?.operationState;
    return state?.phase === 'Running' && state.message === undefined;
  };
  await fleet.onHub('it to run', 'guestbook', running);
  // Another waiting change must not be delivered with the termination.
  await fleet.change('guestbook', { spec: { source: { targetRevision: 'v2' } } });
  // As Argo CD's API server writes it.
  await fleet.change('guestbook', { status: { operationState: { phase: 'Terminating' } } });
  const ended = await fleet.onHub('its end', 'guestbook', (one) => one && !one.operation);
  expect(ended.status?.operationState).toMatchObject({ phase: 'Failed', message: 'Operation terminated' });
  await fleet.worksAre('the change', 'argocd/guestbook', ([work]) => revisionIn(work) === 'v2');
  await fleet.onCluster('the change', 'guestbook', (one) => {
    const source = one?.spec?.source as { targetRevision: string } | undefined;
    return source?.targetRevision === 'v2' && one?.operation === undefined;
  });
  expect(fleet.did('terminated')).toEqual(['argocd/guestbook']);
  expect(fleet.did('ended')).toEqual([]);
  // The next operation is not affected.
  fleet.argoCd.release();
  await fleet.change('guestbook', { operation: sync });
  await fleet.onHub('the next to succeed', 'guestbook', (one) => {
    return one?.operation === undefined && one?.status?.operationState?.phase === 'Succeeded';
  });
  expect(fleet.did('ended')).toEqual(['argocd/guestbook']);
  const [work] = await fleet.works();
  await until('the work to be applied', async () => {
    const found = (await fleet.works()).find(({ metadata }) => metadata.name === work?.metadata.name);
    const applied = found?.status?.conditions?.find(({ type }) => type === 'Applied');
    return applied?.status === 'True' && applied.observedGeneration === found?.metadata.generation;
  });
});

test('a change waits for a running operation for a limited time only', async () => {
  fleet.start({ patienceMs: 500 });
  fleet.argoCd.hold();
  await fleet.create('guestbook', { operation: sync });
  await fleet.onCluster('it to run', 'guestbook', (one) => one?.status?.operationState?.phase === 'Running');
  await fleet.change('guestbook', { spec: { source: { targetRevision: 'v2' } } });
  await fleet.onCluster('the change', 'guestbook', (one) => {
    const source = one?.spec?.source as { targetRevision: string };
    return source.targetRevision === 'v2' && operationId(one?.operation) !== undefined;
  });
  fleet.argoCd.release();
  await fleet.onHub('the end', 'guestbook', (one) => one && !one.operation);
  expect(fleet.did('ended')).toHaveLength(1);
});

test('a refresh is carried to the cluster and removed when it is done', async () => {
  fleet.start();
  await fleet.create('guestbook');
  await fleet.onHub('its health', 'guestbook', isHealthy);
  for (const count of [1, 2]) {
    await fleet.change('guestbook', { metadata: { annotations: { [pullKeys.refresh]: 'hard' } } });
    await fleet.onHub(
      'the end of the refresh',
      'guestbook',
      (one) => one && !one.metadata.annotations?.[pullKeys.refresh],
    );
    await fleet.settled();
    expect(fleet.did('refreshed')).toHaveLength(count);
  }
});

test('ocm defect M18: a deleted Application stays until its copy and its deployed resources are gone', async () => {
  fleet.start();
  await fleet.create('guestbook');
  await fleet.onHub('its health', 'guestbook', isHealthy);
  await member.disconnect();
  await fleet.remove('guestbook');
  const waiting = await fleet.onHub('it to wait', 'guestbook', condition);
  expect(condition(waiting)).toMatch(
    /^waiting until managed cluster cluster1 has removed it; ManifestWork cluster1\/guestbook-/,
  );
  expect(waiting.metadata.finalizers).toEqual(['resources-finalizer.argocd.argoproj.io']);
  await member.reconnect();
  await fleet.onHub('its end', 'guestbook', (one) => one === undefined);
  expect(await fleet.spoke.get(pullApplications, { namespace: 'argocd', name: 'guestbook' })).toBeUndefined();
  expect(fleet.did('finalized')).toEqual(['argocd/guestbook']);
  expect(await fleet.works()).toEqual([]);
});

test('an Application deleted without its finalizer keeps its deployed resources, also when no controller ran', async () => {
  fleet.start();
  for (const name of ['seen', 'unseen']) {
    await fleet.create(name);
    await fleet.onHub('its health', name, isHealthy);
  }
  const orphan = async (name: string) => {
    await fleet.change(name, { metadata: { finalizers: null } });
    await fleet.remove(name);
  };
  await orphan('seen');
  await fleet.onCluster('its end', 'seen', (one) => one === undefined);
  await fleet.stop();
  await orphan('unseen');
  fleet.start();
  await fleet.onCluster('its end', 'unseen', (one) => one === undefined);
  await until('no works', async () => (await fleet.works()).length === 0);
  expect(fleet.did('finalized')).toEqual([]);
});

test('ocm defect M18: the last change of the finalizer counts, also when the cluster sees only the deletion', async () => {
  fleet.start();
  await fleet.create('orphan');
  await fleet.create('cascade', { metadata: { finalizers: [] } });
  for (const name of ['orphan', 'cascade']) {
    await fleet.onHub('its health', name, isHealthy);
  }
  await member.disconnect();
  await fleet.change('orphan', { metadata: { finalizers: null } });
  await fleet.remove('orphan');
  await fleet.change('cascade', { metadata: { finalizers: ['resources-finalizer.argocd.argoproj.io'] } });
  await fleet.remove('cascade');
  await fleet.settled();
  await member.reconnect();
  for (const name of ['orphan', 'cascade']) {
    await fleet.onCluster('its end', name, (one) => one === undefined);
  }
  await fleet.onHub('its end', 'cascade', (one) => one === undefined);
  await until('no works', async () => (await fleet.works()).length === 0);
  expect(fleet.did('finalized')).toEqual(['argocd/cascade']);
});

test('ocm defect M19: no work is left when an Application loses its label or moves to another cluster, also unobserved', async () => {
  await fleet.fixture.managedCluster('other');
  fleet.start();
  const names = ['unlabelled', 'unannotated', 'moved', 'kept'];
  for (const name of names) {
    await fleet.create(name);
  }
  for (const name of names) {
    await fleet.worksAre(`the work of ${name}`, `argocd/${name}`, (works) => works.length === 1);
  }
  await fleet.stop();
  await fleet.change('unlabelled', { metadata: { labels: { [pullKeys.pull]: null } } });
  await fleet.change('unannotated', { metadata: { annotations: { [pullKeys.cluster]: null } } });
  await fleet.change('moved', { metadata: { annotations: { [pullKeys.cluster]: 'other' } } });
  fleet.start();
  const clustersOf = async () =>
    Object.fromEntries(
      (await fleet.works()).map((work) => [work.metadata.annotations?.[pullKeys.hubName], work.metadata.namespace]),
    );
  await until('the works', async () => {
    const found = await clustersOf();
    return Object.keys(found).length === 2 && found.kept === 'cluster1' && found.moved === 'other';
  });
  await fleet.change('moved', { metadata: { annotations: { [pullKeys.cluster]: 'cluster1' } } });
  await fleet.onCluster('it to come back', 'moved', Boolean);
  await fleet.worksAre('one work', 'argocd/moved', (works) => works.length === 1);
  await fleet.hub.delete(managedClusters, { name: 'other' });
});

test('a wrong setting is reported on the Application, and no copy is removed', async () => {
  fleet.start();
  const one = await fleet.create('guestbook');
  await fleet.onHub('its health', 'guestbook', isHealthy);
  await fleet.change('guestbook', { metadata: { annotations: { [pullKeys.cluster]: 'clutser1' } } });
  const wrong = await fleet.onHub('the problem', 'guestbook', condition);
  const problem = `there is no ManagedCluster clutser1, which annotation ${pullKeys.cluster} names`;
  expect(condition(wrong)).toBe(problem);
  await until('an Event', async () => {
    const found = await fleet.hub.list(events, { namespace: 'argocd' });
    return found.some(
      ({ regarding, note, type }) => regarding?.uid === one.metadata.uid && note === problem && type === 'Warning',
    );
  });
  expect(await fleet.works('argocd/guestbook')).toHaveLength(1);
  // The cluster is registered later.
  await fleet.fixture.managedCluster('clutser1');
  await fleet.worksAre('the work', 'argocd/guestbook', ([work]) => work?.metadata.namespace === 'clutser1');
  await fleet.onHub('no problem', 'guestbook', (now) => now && !condition(now));
  // Then the cluster is gone: nothing can be delivered or removed there any more.
  await fleet.hub.delete(managedClusters, { name: 'clutser1' });
  await fleet.worksAre('no work', 'argocd/guestbook', (works) => works.length === 0);
  await fleet.remove('guestbook');
  await fleet.onHub('its end', 'guestbook', (now) => now === undefined);
});

test('an Application on the hub itself does not overwrite itself, nor is a foreign Secret overwritten', async () => {
  const foreign = { namespace: 'argocd', name: 'local-cluster-secret' };
  const labels = { 'argocd.argoproj.io/secret-type': 'cluster', 'app.kubernetes.io/managed-by': 'somebody' };
  const data = { name: Buffer.from('another').toString('base64') };
  const before = await fleet.hub.create(secrets, { metadata: { ...foreign, labels }, data });
  fleet.start();
  await fleet.fixture.managedCluster('local-cluster', { 'local-cluster': 'true' });
  await until('an Event', async () => {
    const found = await fleet.hub.list(events, { namespace: 'default' });
    return found.some(({ regarding, reason }) => regarding?.name === 'local-cluster' && reason === 'NoClusterSecret');
  });
  expect((await fleet.hub.get(secrets, foreign))?.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  await fleet.create('guestbook', { metadata: { annotations: { [pullKeys.cluster]: 'local-cluster' } } });
  const refused = await fleet.onHub('the problem', 'guestbook', condition);
  expect(condition(refused)).toMatch(
    /^ManagedCluster local-cluster is the hub itself: .* set annotation .* to another namespace/,
  );
  expect(await fleet.works()).toEqual([]);
  await fleet.change('guestbook', { metadata: { annotations: { [pullKeys.appNamespace]: 'gitops' } } });
  await fleet.worksAre('the work', 'argocd/guestbook', (works) => works.length === 1);
  await fleet.hub.delete(managedClusters, { name: 'local-cluster' });
  await fleet.hub.delete(secrets, foreign);
});

test('a work that the cluster refuses is reported with its reason', async () => {
  fleet.start();
  await fleet.create('guestbook', { metadata: { annotations: { [pullKeys.appNamespace]: 'nowhere' } } });
  const refused = await fleet.onHub('the reason', 'guestbook', condition);
  expect(condition(refused)).toMatch(/^managed cluster cluster1 does not take it: .*namespaces "nowhere" not found/);
  await fleet.change('guestbook', { metadata: { annotations: { [pullKeys.appNamespace]: 'gitops' } } });
  await fleet.onCluster('the copy', 'guestbook', Boolean, 'gitops');
  await fleet.onHub('no problem', 'guestbook', (now) => isHealthy(now) && !condition(now));
});

test('a work that the hub refuses is reported with its reason', async () => {
  fleet.start();
  await fleet.create('guestbook');
  await fleet.onHub('its health', 'guestbook', isHealthy);
  await fleet.change('guestbook', { spec: { source: { helm: { values: 'x'.repeat(520_000) } } } });
  const refused = await fleet.onHub('the reason', 'guestbook', condition);
  expect(condition(refused)).toMatch(/^the hub does not take its ManifestWork: .*exceeds the 512000 limit/);
  await fleet.change('guestbook', { metadata: { labels: { [pullKeys.pull]: null } } });
  await fleet.worksAre('no work', 'argocd/guestbook', (works) => works.length === 0);
  await fleet.onHub('no problem', 'guestbook', (one) => one && !condition(one));
});

test('a change of one Application, or of a cluster’s labels, reconciles no other Application', async () => {
  await fleet.fixture.managedCluster('other');
  fleet.start();
  const names = Array.from({ length: 30 }, (_, index) => `many-${index}`);
  await Promise.all(
    names.map((name) => fleet.create(name, { metadata: { annotations: { [pullKeys.cluster]: 'other' } } })),
  );
  await until('the works', async () => (await fleet.works()).length === names.length);
  await fleet.settled();
  const looks = () => fleet.controller.stats.applications.done;
  let before = looks();
  await fleet.change('many-7', { spec: { source: { targetRevision: 'v2' } } });
  await fleet.worksAre('the change', 'argocd/many-7', ([work]) => revisionIn(work) === 'v2');
  await fleet.settled();
  expect(looks() - before).toBeLessThanOrEqual(4);
  before = looks();
  await fleet.hub.mergePatch(managedClusters, { name: 'other' }, { metadata: { labels: { touched: 'yes' } } });
  await fleet.settled();
  expect(looks() - before).toBe(0);
  await fleet.hub.delete(managedClusters, { name: 'other' });
});

test('ocm defect M22: of two Applications that claim one place the first gets it, the other reports it and follows', async () => {
  fleet.start({ applicationNamespaces: ['gitops'] });
  await fleet.project('default', { sourceNamespaces: ['gitops'], destinations: [{ server: '*', namespace: '*' }] });
  await fleet.create('guestbook', { metadata: { annotations: { [pullKeys.appNamespace]: 'gitops' } } });
  await fleet.worksAre('the work', 'argocd/guestbook', (works) => works.length === 1);
  await fleet.create('guestbook', { metadata: { namespace: 'gitops' } });
  const second = await fleet.onHub('the problem', 'guestbook', condition, 'gitops');
  expect(condition(second)).toMatch(
    /^Application argocd\/guestbook is gitops\/guestbook on managed cluster cluster1 already/,
  );
  expect(await fleet.works('gitops/guestbook')).toEqual([]);
  await fleet.remove('guestbook');
  await fleet.worksAre('the other’s work', 'gitops/guestbook', (works) => works.length === 1);
  await fleet.onHub('no problem', 'guestbook', (one) => isHealthy(one) && !condition(one), 'gitops');
});

test('a tenant’s Application is refused until operator and AppProject admit it, and no copy is removed afterwards', async () => {
  fleet.start();
  const tenant = { namespace: 'gitops', annotations: { [pullKeys.appNamespace]: 'argocd' } };
  await fleet.create('tenant', { metadata: tenant, spec: { project: 'team' } });
  const refused = await fleet.onHub('the refusal', 'tenant', condition, 'gitops');
  expect(condition(refused)).toMatch(/^Applications of namespace gitops are not served: --application-namespaces/);
  await until('an Event', async () => {
    const found = await fleet.hub.list(events, { namespace: 'gitops' });
    return found.some(({ regarding, note }) => regarding?.name === 'tenant' && note === condition(refused));
  });
  await fleet.stop();
  fleet.start({ applicationNamespaces: ['git*'] });
  const reason = (pattern: RegExp) =>
    fleet.onHub(`${pattern}`, 'tenant', (one) => pattern.test(condition(one) ?? ''), 'gitops');
  await reason(/keeps its namespace on the cluster; take the annotation off$/);
  const off = { metadata: { annotations: { [pullKeys.appNamespace]: null } } };
  await fleet.change('tenant', off, 'gitops');
  await reason(/^AppProject team does not exist in namespace argocd$/);
  await fleet.project('team', { destinations: [] });
  await reason(/does not admit Applications of namespace gitops/);
  await fleet.project('team', { sourceNamespaces: ['gitops'], destinations: [] });
  await reason(/does not permit namespace "guestbook" of managed cluster cluster1/);
  await fleet.settled();
  expect(await fleet.works()).toEqual([]);
  const destinations = [{ name: 'cluster1', namespace: 'guestbook' }];
  await fleet.project('team', { sourceNamespaces: ['gitops'], destinations });
  await fleet.onCluster('the copy', 'tenant', Boolean, 'gitops');
  await fleet.onHub('no problem', 'tenant', (one) => isHealthy(one) && !condition(one), 'gitops');
  await fleet.project('team', { sourceNamespaces: ['gitops'], destinations: [] });
  await reason(/does not permit namespace "guestbook"/);
  expect(await fleet.works('gitops/tenant')).toHaveLength(1);
  // A deletion is carried out whether the Application is admitted or not.
  await fleet.remove('tenant', 'gitops');
  await fleet.onHub('its end', 'tenant', (one) => one === undefined, 'gitops');
  expect(fleet.did('finalized')).toEqual(['gitops/tenant']);
});

test('an Application of an agent is left to argocd-agent, and so is a cluster Secret', async () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  fleet.start();
  const key = { namespace: 'argocd', name: 'cluster1-secret' };
  const ours = await until('the cluster Secret', () => fleet.hub.get(secrets, key));
  expect(ours.metadata.labels?.['argocd.argoproj.io/secret-type']).toBe('cluster');
  expect(ours.data).toEqual({ name: base64('cluster1'), server: base64('https://cluster1-control-plane:6443') });
  await fleet.hub.mergePatch(secrets, key, { data: { server: base64('https://changed') } });
  await until('its repair', async () => (await fleet.hub.get(secrets, key))?.data?.server === ours.data?.server);
  const agents = {
    metadata: {
      namespace: 'argocd',
      name: 'cluster-cluster1',
      labels: { 'argocd.argoproj.io/secret-type': 'cluster', [wellKnown.agentNameLabel]: 'cluster1' },
    },
    data: { name: base64('cluster1'), server: base64('https://proxy?agentName=cluster1') },
  };
  await fleet.hub.create(secrets, agents);
  await until('one Secret of that name', async () => (await fleet.hub.get(secrets, key)) === undefined);
  const agentsOwn = await fleet.create('agents');
  await fleet.change('agents', { spec: { destination: { name: 'cluster1' } } });
  const left = await fleet.onHub('the problem', 'agents', condition);
  expect(condition(left)).toMatch(/^argocd-agent has this Application for its agent cluster1; take label .* off/);
  await fleet.remove('agents');
  await fleet.settled();
  const waiting = await fleet.hub.get(pullApplications, { namespace: 'argocd', name: 'agents' });
  expect(waiting?.metadata.finalizers, 'its deletion is the agent’s').toEqual(agentsOwn.metadata.finalizers);
  await fleet.create('ours', {
    metadata: { labels: { [pullKeys.pull]: 'true', [wellKnown.ignoreSyncLabel]: 'true' } },
  });
  await fleet.change('ours', { spec: { destination: { name: 'cluster1' } } });
  await fleet.worksAre('the work', 'argocd/ours', (works) => works.length === 1);
  await fleet.hub.delete(secrets, agents.metadata);
  await until('our Secret again', () => fleet.hub.get(secrets, key));
});

test('ocm defect H9: a controller killed after every write runs each operation once and leaves no work behind', async () => {
  let lives = 0;
  let isOver = false;
  const over = Promise.withResolvers<void>();
  const living = (async () => {
    while (!isOver) {
      lives++;
      const { client, death } = mortal(fleet.hub);
      fleet.start({ client });
      await Promise.race([death, over.promise]);
      await fleet.stop();
    }
  })();
  await fleet.create('guestbook', { operation: sync });
  await fleet.onHub(
    'the end of the operation',
    'guestbook',
    (one) => one?.status?.operationState?.phase === 'Succeeded' && !one.operation,
  );
  await fleet.change('guestbook', { operation: sync, spec: { source: { targetRevision: 'v2' } } });
  await fleet.onHub('the end of the second', 'guestbook', (one) => one && !one.operation);
  await fleet.worksAre(
    'the change',
    'argocd/guestbook',
    ([work]) => revisionIn(work) === 'v2' && !payloadIn(work)?.operation,
  );
  await fleet.change('guestbook', { metadata: { annotations: { [pullKeys.appNamespace]: 'gitops' } } });
  await fleet.onCluster('it to move', 'guestbook', Boolean, 'gitops');
  await fleet.remove('guestbook');
  await fleet.onHub('its end', 'guestbook', (one) => one === undefined);
  await until('no works', async () => (await fleet.works()).length === 0);
  isOver = true;
  over.resolve();
  await living;
  expect(fleet.did('ended')).toEqual(['argocd/guestbook', 'argocd/guestbook']);
  expect(lives).toBeGreaterThan(8);
});

test('works and Secrets of argocd-pull-integration are taken over as they are', async () => {
  fleet.start();
  const one = await fleet.create('guestbook');
  const [work] = await fleet.worksAre('the work', 'argocd/guestbook', (works) => works.length === 1);
  await fleet.stop();
  const metadata: PullWork['metadata'] = work?.metadata ?? { name: '' };
  const old = {
    metadata: {
      namespace: 'cluster1',
      name: metadata.name,
      labels: metadata.labels ?? {},
      annotations: metadata.annotations ?? {},
    },
    spec: { workload: { manifests: [{ ...one, metadata: { namespace: 'argocd', name: 'guestbook' } }] } },
  };
  await fleet.hub.delete(pullWorks, { namespace: 'cluster1', name: metadata.name });
  await fleet.worksAre('its end', 'argocd/guestbook', (works) => works.length === 0);
  await fleet.hub.create(pullWorks, old as typeof work & object);
  const orphan = { [pullKeys.hubNamespace]: 'argocd', [pullKeys.hubName]: 'gone' };
  await fleet.hub.create(pullWorks, {
    ...old,
    metadata: { ...old.metadata, name: 'gone-12345', annotations: orphan },
  } as typeof work & object);
  fleet.start();
  await fleet.worksAre('the rules', 'argocd/guestbook', ([now]) => now?.spec.manifestConfigs?.length === 1);
  await fleet.worksAre('no orphan', 'argocd/gone', (works) => works.length === 0);
});
