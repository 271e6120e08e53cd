import { expect, test } from 'vitest';
import type { Secret } from '../../lib/kube/index.ts';
import { type ApplicationFacts, checkAgent, checkApplication, checkTracking, type Finding } from './checks.ts';
import { directCluster, type KnownCluster } from './direct-cluster.ts';
import type { MovingApplication } from './objects.ts';

const clusterOf = (name: string, agent = ''): KnownCluster => ({
  name,
  server: `https://${name}`,
  agent,
  secret: { metadata: { namespace: 'argocd', name: `secret-${name}` } },
});
const target = clusterOf('edge-agent', 'edge-agent');
const blocks = (findings: readonly Finding[]) =>
  findings.filter(({ level }) => level === 'blocked').map(({ text }) => text);
const connected = (isConnected: boolean, mode = 'managed') => ({
  metadata: {
    name: 'argocd-agent-edge-agent',
    annotations: {
      'argocd-agent.argoproj-labs.io/connected': String(isConnected),
      'argocd-agent.argoproj-labs.io/agent-mode': mode,
    },
  },
});

const facts: ApplicationFacts = {
  agent: target,
  project: { metadata: { name: 'shop' }, spec: { destinations: [{ name: 'edge-agent', namespace: '*' }] } },
  isProjectOnCluster: true,
  occupant: undefined,
  repositories: { hub: [], cluster: [] },
  names: new Set(['shop', 'parent']),
  labelKey: 'app.kubernetes.io/instance',
};
const application = (change: Partial<MovingApplication> = {}, metadata: object = {}): MovingApplication => ({
  metadata: { namespace: 'argocd', name: 'shop', ...metadata },
  spec: {
    project: 'shop',
    source: { repoURL: 'https://git.example.com/shop.git' },
    destination: { name: 'edge', namespace: 'shop' },
    syncPolicy: { automated: {} },
  },
  status: { sync: { status: 'Synced' }, health: { status: 'Healthy' } },
  ...change,
});

test('an agent must be enrolled, connected and managed', () => {
  const edge = clusterOf('edge');
  expect(blocks(checkAgent('edge-agent', [edge, target], connected(true)))).toEqual([]);
  expect(blocks(checkAgent('edge-agent', [edge], undefined))).toEqual([expect.stringContaining('not enrolled')]);
  for (const lease of [undefined, connected(false)]) {
    expect(blocks(checkAgent('edge-agent', [edge, target], lease))).toEqual([expect.stringContaining('not connected')]);
  }
  expect(blocks(checkAgent('edge-agent', [target], connected(true, 'autonomous')))).toEqual([
    expect.stringContaining('autonomous'),
  ]);
});

test('both sides must track resources alike, with the defaults of their versions', () => {
  const of = (settings: Record<string, string>, version: [number, number] = [3, 2]) => ({ settings, version });
  expect(blocks(checkTracking(of({}), of({ 'application.resourceTrackingMethod': 'annotation' })))).toEqual([]);
  expect(blocks(checkTracking(of({}, [2, 14]), of({})))).toEqual([
    expect.stringContaining('"label" on the hub and "annotation" on the cluster'),
  ]);
  expect(blocks(checkTracking(of({ installationID: 'a' }), of({})))).toHaveLength(1);
  expect(blocks(checkTracking(of({}), of({ 'application.instanceLabelKey': 'b' })))).toHaveLength(1);
  const [different] = checkTracking(of({ 'resource.exclusions': 'x' }), of({})).filter(
    ({ level }) => level === 'warning',
  );
  expect(different?.text).toContain('resource.exclusions');
});

test('an Application that can be moved has no findings', () => {
  expect(checkApplication(application(), facts)).toEqual([]);
});

const appSet = { apiVersion: 'argoproj.io/v1alpha1', kind: 'ApplicationSet', name: 'all', uid: '1' };
test.each<[string, MovingApplication, Partial<ApplicationFacts>]>([
  ['ApplicationSet argocd/all owns it', application({}, { ownerReferences: [appSet] }), {}],
  [
    'Application parent deploys it',
    application(
      {},
      { annotations: { 'argocd.argoproj.io/tracking-id': 'parent:argoproj.io/Application:argocd/shop' } },
    ),
    {},
  ],
  ['it is being deleted', application({}, { deletionTimestamp: '2026-01-01T00:00:00Z' }), {}],
  ['keeps it from the agent', application({}, { labels: { 'argocd-agent.argoproj-labs.io/ignore-sync': 'true' } }), {}],
  ['does not know its state', application({ status: {} }), {}],
  ['does not know its state (no status, -)', application({ status: { sync: { status: '' }, health: {} } }), {}],
  ['it is OutOfSync', application({ status: { sync: { status: 'OutOfSync' } } }), {}],
  ['the hub has no AppProject shop', application(), { project: undefined }],
  [
    'AppProject shop does not permit the destination: add {name: edge-agent, namespace: shop}',
    application(),
    { project: { metadata: { name: 'shop' }, spec: { destinations: [{ name: 'edge', namespace: '*' }] } } },
  ],
  [
    'AppProject shop permits only clusters of its own: set project: shop in Secret argocd/secret-edge-agent',
    application(),
    {
      project: {
        metadata: { name: 'shop' },
        spec: { destinations: [{ name: 'edge-agent', namespace: '*' }], permitOnlyProjectScopedClusters: true },
      },
    },
  ],
  ['AppProject shop is not on the cluster', application(), { isProjectOnCluster: false }],
  ['the cluster has another Application argocd/shop', application(), { occupant: application() }],
])('%s', (text, moving, change) => {
  expect(blocks(checkApplication(moving, { ...facts, ...change }))).toEqual([expect.stringContaining(text)]);
});

test('credentials of a repository must be on the cluster as well', () => {
  const secret = (type: string, fields: Record<string, string>): Secret => ({
    metadata: { namespace: 'argocd', name: type, labels: { 'argocd.argoproj.io/secret-type': type } },
    data: Object.fromEntries(Object.entries(fields).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
  });
  const url = 'https://git.example.com/shop';
  const own = secret('repository', { url, password: 'p' });
  const template = secret('repo-creds', { url: 'https://git.example.com', password: 'p' });
  const found = (hub: Secret[], cluster: Secret[]) =>
    blocks(checkApplication(application(), { ...facts, repositories: { hub, cluster } }));
  expect(found([own], [])).toEqual([expect.stringContaining('set project in Secret argocd/repository')]);
  expect(found([template], [])).toHaveLength(1);
  expect(found([own], [template])).toEqual([]);
  expect(found([secret('repository', { url })], [])).toEqual([]);
});

test('a cluster is known by name or URL', () => {
  const clusters = [clusterOf('edge'), target];
  expect(directCluster(clusters, 'https://edge/')).toBe(clusters[0]);
  expect(() => directCluster(clusters, 'x')).toThrow('has no cluster x; it reaches these directly: edge');
  expect(() => directCluster(clusters, 'edge-agent')).toThrow('is that of agent edge-agent');
  expect(() => directCluster([clusterOf('a'), clusterOf('a')], 'a')).toThrow('several clusters called a');
});
