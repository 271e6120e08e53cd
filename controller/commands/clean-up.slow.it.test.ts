import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { installCrds, publishedCrds } from '../../e2e/hub/index.ts';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { deployments, type KubeObject, namespaces, pods, type ResourceType, services } from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { argoCdApplications, argoProjects } from '../hub/index.ts';
import { cleanUp } from './clean-up.ts';

let cluster: SharedCluster;
let ns = '';
let sequence = 0;
beforeAll(async () => {
  cluster = await borrowCluster({ name: 'managed' });
});
afterAll(() => cluster?.stop());
beforeEach(() => {
  sequence += 1;
  ns = `argocd-${sequence}`;
});

const ours = {
  'apps.open-cluster-management.io/argocd-addon': 'true',
  'app.kubernetes.io/managed-by': 'argocd-agent-addon',
};
const copyOf = { 'argocd.argoproj.io/source-uid': '11111111-2222-4333-8444-555555555555' };
const finalizers = ['resources-finalizer.argocd.argoproj.io'];

const run = (agentGraceMs = 120_000, otherNamespaces: readonly string[] = []) =>
  cleanUp({
    otherNamespaces,
    client: cluster.client,
    namespace: ns,
    logger: createLogger({ level: 'fatal', name: 'clean-up' }),
    signal: AbortSignal.timeout(150_000),
    agentGraceMs,
  });
const namespace = (labels: Record<string, string> = ours, name = ns) =>
  cluster.client.create(namespaces, { metadata: { name, labels } });
const isThere = async (name = ns) => {
  const found = await cluster.client.get(namespaces, { name });
  return found !== undefined && found.metadata.deletionTimestamp === undefined;
};
async function create(type: ResourceType, metadata: KubeObject['metadata'], rest: object = {}) {
  return cluster.client.create(type, { metadata: { namespace: ns, ...metadata }, ...rest });
}
const spec = {
  project: 'default',
  source: { repoURL: 'https://example.com/repository.git', path: '.' },
  destination: { server: 'https://kubernetes.default.svc', namespace: 'default' },
};

test('a cluster that never had Argo CD is clean', async () => {
  expect(await run()).toEqual({ removed: 0, namespace: 'absent' });
  await namespace();
  expect(await run()).toEqual({ removed: 0, namespace: 'deleted' });
});

test('ocm defect M15: copies are removed without their deployed resources, everywhere, and then the namespace', async () => {
  await installCrds(cluster.client, await publishedCrds('argocd'));
  const elsewhere = `${ns}-team`;
  await namespace();
  await namespace({}, elsewhere);
  await create(argoCdApplications, { name: 'one', annotations: copyOf, finalizers }, { spec });
  await create(argoCdApplications, { name: 'going', annotations: copyOf, finalizers }, { spec });
  await cluster.client.delete(argoCdApplications, { namespace: ns, name: 'going' });
  await create(argoCdApplications, { name: 'two', annotations: copyOf, namespace: elsewhere, finalizers }, { spec });
  await create(argoCdApplications, { name: 'own', namespace: elsewhere, finalizers }, { spec });
  await create(argoProjects, { name: 'default', annotations: copyOf, finalizers }, { spec: {} });
  expect(await run()).toEqual({ removed: 4, namespace: 'deleted' });
  expect(await isThere()).toBe(false);
  expect((await cluster.client.list(argoCdApplications)).map(({ metadata }) => metadata.name)).toEqual(['own']);
  expect(await isThere(elsewhere)).toBe(true);
  await cluster.client.mergePatch(
    argoCdApplications,
    { namespace: elsewhere, name: 'own' },
    { metadata: { finalizers: null } },
  );
  expect(await run()).toEqual({ removed: 0, namespace: 'absent' });
});

test('other namespaces that the add-on made are removed, too; those that existed before stay', async () => {
  const [made, before] = [`${ns}-operator`, `${ns}-before`];
  await namespace();
  await namespace(ours, made);
  await namespace({}, before);
  expect(await run(undefined, [made, before])).toEqual({ removed: 0, namespace: 'deleted' });
  expect(await isThere(made)).toBe(false);
  expect(await isThere(before)).toBe(true);
});

test('in former namespaces only the agent’s own objects are removed, and nothing else of the cluster', async () => {
  await installCrds(cluster.client, await publishedCrds('argocd'));
  // On the hub one namespace has the same name as a former namespace of the agent, and contains Applications.
  const [now, sameName] = [`${ns}-now`, `${ns}-same`];
  await namespace();
  await namespace(ours, now);
  await namespace(ours, sameName);
  await create(argoCdApplications, { name: 'old', annotations: copyOf, finalizers }, { spec });
  await create(argoProjects, { name: 'default', annotations: copyOf }, { spec: {} });
  await create(argoCdApplications, { name: 'current', namespace: now, annotations: copyOf }, { spec });
  await create(argoProjects, { name: 'default', namespace: now, annotations: copyOf }, { spec: {} });
  const moved = { ...copyOf, 'argocd.argoproj.io/namespace-remapped': 'true' };
  await create(argoCdApplications, { name: 'moved', namespace: sameName, annotations: moved, finalizers }, { spec });
  await create(argoCdApplications, { name: 'hubs', namespace: sameName, annotations: copyOf }, { spec });
  const labels = { 'app.kubernetes.io/managed-by': 'argocd-agent-addon' };
  await create(services, { name: 'argocd-redis', labels }, { spec: { ports: [{ port: 6379 }] } });
  const running = cleanUp({
    client: cluster.client,
    namespace: ns,
    otherNamespaces: [sameName],
    principalNamespace: ns,
    logger: createLogger({ level: 'fatal', name: 'clean-up' }),
    signal: AbortSignal.timeout(180_000),
  });
  // Objects of the works may take a while to disappear.
  await until('the copies to go', async () => {
    const left = await cluster.client.list(argoProjects, { namespace: ns });
    return left.length === 0;
  });
  expect(await isThere()).toBe(true);
  await cluster.client.delete(services, { namespace: ns, name: 'argocd-redis' });
  expect(await running).toEqual({ removed: 3, namespace: 'deleted' });
  const left = await cluster.client.list(argoCdApplications);
  expect(left.flatMap(({ metadata: { namespace: at, name } }) => (at?.startsWith(ns) ? [name] : [])).sort()).toEqual([
    'current',
    'hubs',
  ]);
  expect(await isThere(now)).toBe(true);
  expect(await isThere(sameName)).toBe(true);
  for (const [name, where] of [
    ['current', now],
    ['hubs', sameName],
  ] as const) {
    await cluster.client.delete(argoCdApplications, { namespace: where, name });
  }
  await cluster.client.delete(argoProjects, { namespace: now, name: 'default' });
});

test('ocm defect M15: a namespace that existed before stays', async () => {
  await installCrds(cluster.client, await publishedCrds('argocd'));
  await namespace({ 'app.kubernetes.io/managed-by': 'argocd-agent-addon' });
  await create(argoCdApplications, { name: 'one', annotations: copyOf, finalizers }, { spec });
  expect(await run()).toMatchObject({ removed: 1, namespace: 'kept' });
  expect(await isThere()).toBe(true);
});

test.each([
  ['an Application', (): [ResourceType, object] => [argoCdApplications, { spec }], 'Application foreign'],
  ['an AppProject', (): [ResourceType, object] => [argoProjects, { spec: {} }], 'AppProject foreign'],
  ['a Service', (): [ResourceType, object] => [services, { spec: { ports: [{ port: 80 }] } }], 'Service foreign'],
  [
    'a Deployment',
    (): [ResourceType, object] => [
      deployments,
      {
        spec: {
          replicas: 0,
          selector: { matchLabels: { a: 'b' } },
          template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
        },
      },
    ],
    'Deployment foreign',
  ],
])('a namespace with %s of somebody else stays', async (_, object, text) => {
  await installCrds(cluster.client, await publishedCrds('argocd'));
  await namespace();
  const [type, rest] = object();
  await create(type, { name: 'foreign' }, rest);
  await create(argoProjects, { name: 'default' }, { spec: {} });
  expect(await run()).toEqual({ removed: 0, namespace: 'kept', reason: `it holds ${text}` });
  expect(await isThere()).toBe(true);
});

test('a namespace that an Application deployed into stays, also when the clean-up runs again', async () => {
  await installCrds(cluster.client, await publishedCrds('argocd'));
  await namespace();
  await create(argoCdApplications, { name: 'one', annotations: copyOf, finalizers }, { spec });
  const resources = [{ version: 'v1', kind: 'ConfigMap', namespace: ns, name: 'deployed' }];
  const patch = { status: { resources } };
  await cluster.client.mergePatch(argoCdApplications, { namespace: ns, name: 'one' }, patch);
  expect(await run()).toMatchObject({ removed: 1, namespace: 'kept' });
  expect(await run()).toMatchObject({ removed: 0, namespace: 'kept' });
  expect(await isThere()).toBe(true);
});

test('nothing is removed while the agent runs', async () => {
  await installCrds(cluster.client, await publishedCrds('argocd'));
  await namespace();
  const labels = { 'app.kubernetes.io/name': 'argocd-agent-agent' };
  await create(pods, { name: 'agent', labels }, { spec: { containers: [{ name: 'agent', image: 'agent:1' }] } });
  await create(argoCdApplications, { name: 'one', annotations: copyOf, finalizers }, { spec });
  let isDone = false;
  const running = run().finally(() => {
    isDone = true;
  });
  // Long enough to list the pods more than once.
  const began = Date.now();
  await until('a while', async () => Date.now() - began > 1_200);
  expect(isDone).toBe(false);
  expect(await cluster.client.get(argoCdApplications, { namespace: ns, name: 'one' })).toBeDefined();
  await cluster.client.delete(pods, { namespace: ns, name: 'agent' }, { gracePeriodSeconds: 0 });
  expect(await running).toEqual({ removed: 1, namespace: 'deleted' });
});
