import { expect, test } from 'vitest';
import { wellKnown } from '../../lib/base/index.ts';
import type { KubeObject, Secret } from '../../lib/kube/index.ts';
import { type AdmissionDeps, objectionTo } from './admission.ts';
import { pullKeys } from './names.ts';
import { claimOfAgent, obstacleTo } from './obstacle.ts';
import type { PullApplication, PullWork } from './resources.ts';
import { pullIntentOf } from './target.ts';

type Spec = Record<string, unknown>;

const base64 = (text: string) => Buffer.from(text).toString('base64');
const open = { sourceNamespaces: ['team-*'], destinations: [{ server: '*', namespace: '*' }] };

function application(
  annotations: Record<string, string> = {},
  { namespace = 'team-a', project = 'team-a', creationTimestamp = '2026-01-01T00:00:00Z' } = {},
): PullApplication {
  return {
    metadata: {
      namespace,
      name: 'shop',
      uid: `uid-${namespace}`,
      creationTimestamp,
      labels: { [pullKeys.pull]: 'true' },
      annotations: { [pullKeys.cluster]: 'prod', ...annotations },
    },
    spec: { project, destination: { server: 'https://kubernetes.default.svc', namespace: 'web' } },
  };
}

/** A hub with AppProject `team-a` of this spec, and a ManagedCluster `prod`. */
function hub(
  spec: Spec | undefined,
  options: {
    namespaces?: string[];
    secrets?: Record<string, string>[];
    applications?: PullApplication[];
    works?: PullWork[];
  } = {},
): AdmissionDeps & { hubId: () => undefined } {
  const project: KubeObject & { spec?: unknown } = { metadata: { namespace: 'argocd', name: 'team-a' }, spec };
  const secrets = (options.secrets ?? []).map(
    (data): Secret => ({
      metadata: { name: 'one' },
      data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)])),
    }),
  );
  const caches = {
    projects: { get: ({ name }: { name: string }) => (spec !== undefined && name === 'team-a' ? project : undefined) },
    clusterSecrets: { byIndex: () => secrets },
    managedClusters: { get: () => ({ metadata: { name: 'prod' } }) },
    applications: { byIndex: () => options.applications ?? [] },
    works: { byIndex: () => options.works ?? [] },
  };
  return {
    caches: caches as unknown as AdmissionDeps['caches'],
    argoCdNamespace: 'argocd',
    applicationNamespaces: options.namespaces ?? ['team-a'],
    hubId: () => undefined,
  };
}

function objection(one: PullApplication, deps: ReturnType<typeof hub>): string | undefined {
  const intent = pullIntentOf(one);
  if (intent.kind !== 'valid') {
    throw new Error(`the Application is ${intent.kind}`);
  }
  const found = objectionTo(one, intent.target, deps);
  expect(
    obstacleTo(one, intent.target, {
      ...deps,
      caches: { ...deps.caches, applications: { byIndex: () => [one] } } as never,
    }),
  ).toBe(found);
  return found;
}

test('an Application of Argo CD’s namespace is admitted, with any annotation', () => {
  const own = application({ [pullKeys.appNamespace]: 'elsewhere' }, { namespace: 'argocd' });
  expect(objection(own, hub(undefined, { namespaces: [] }))).toBeUndefined();
});

test('a tenant’s Application does not reach Argo CD’s namespace of a cluster', () => {
  const attack = application({ [pullKeys.appNamespace]: 'argocd' }, { project: 'default' });
  expect(objection(attack, hub(open, { namespaces: [] }))).toMatch(/^Applications of namespace team-a are not served/);
  for (const namespaces of [['team-a'], ['*'], ['/./']]) {
    expect(objection(attack, hub(open, { namespaces }))).toMatch(/^annotation .* is "argocd": .* keeps its namespace/);
  }
});

test.each<[string, string[], boolean]>([
  ['its name', ['team-a'], true],
  ['a glob', ['team-*'], true],
  ['an expression', ['/^team-[ab]$/'], true],
  ['another name', ['team-b', 'team'], false],
  ['nothing', [], false],
  ['empty text', [''], false],
])('a namespace is served if the list has %s', (_, namespaces, isServed) => {
  const found = objection(application(), hub(open, { namespaces }));
  expect(found === undefined).toBe(isServed);
});

test.each<[string, Spec | undefined, RegExp | undefined]>([
  ['everything', open, undefined],
  ['the cluster by name', { ...open, destinations: [{ name: 'prod', namespace: 'web' }] }, undefined],
  [
    'the cluster by server',
    { ...open, destinations: [{ server: 'https://prod-control-plane:6443', namespace: 'web' }] },
    undefined,
  ],
  ['nothing: it does not exist', undefined, /^AppProject team-a does not exist in namespace argocd$/],
  [
    'no namespace',
    { destinations: open.destinations },
    /^AppProject team-a does not admit Applications of namespace team-a/,
  ],
  ['another namespace', { ...open, sourceNamespaces: ['team-b'] }, /does not admit Applications of namespace team-a/],
  [
    'no destination',
    { sourceNamespaces: ['*'] },
    /^AppProject team-a does not permit namespace "web" of managed cluster prod/,
  ],
  // The hub's Argo CD reads this as the hub itself, which the managed cluster is not.
  [
    'the hub only',
    { ...open, destinations: [{ server: 'https://kubernetes.default.svc', namespace: '*' }] },
    /does not permit/,
  ],
  ['another destination namespace', { ...open, destinations: [{ server: '*', namespace: 'db' }] }, /does not permit/],
  [
    'all but this cluster',
    { ...open, destinations: [...open.destinations, { name: '!prod', namespace: '*' }] },
    /does not permit/,
  ],
  ['clusters of its own', { ...open, permitOnlyProjectScopedClusters: true }, /permits only clusters of its own/],
  [
    'text where a list belongs',
    { ...open, destinations: 'all' },
    /^AppProject team-a cannot be read: spec.destinations /,
  ],
])('AppProject that admits %s', (_, spec, expected) => {
  const found = objection(application(), hub(spec));
  expect(found ?? '').toMatch(expected ?? /^$/);
});

test('a denial by any address of the cluster holds', () => {
  const spec = { ...open, destinations: [...open.destinations, { server: '!https://real', namespace: '*' }] };
  const secrets = [
    { name: 'prod', server: 'https://a' },
    { name: 'prod', server: 'https://real' },
  ];
  expect(objection(application(), hub(spec, { secrets: secrets.slice(0, 1) }))).toBeUndefined();
  expect(objection(application(), hub(spec, { secrets }))).toMatch(/does not permit/);
});

test('a cluster that belongs to the project is one of its own', () => {
  const spec = { ...open, permitOnlyProjectScopedClusters: true };
  const secret = { name: 'prod', server: 'https://a' };
  expect(objection(application(), hub(spec, { secrets: [{ ...secret, project: 'team-a' }] }))).toBeUndefined();
  expect(objection(application(), hub(spec, { secrets: [{ ...secret, project: 'team-b' }] }))).toMatch(/of its own/);
});

test('the destination that annotations choose needs the project’s permission too', () => {
  const spec = { ...open, destinations: [{ name: 'prod', namespace: '*' }] };
  for (const key of [pullKeys.destinationName, pullKeys.destinationServer]) {
    expect(objection(application({ [key]: 'https://vault' }), hub(spec))).toMatch(/does not permit the destination of/);
  }
  expect(objection(application({ [pullKeys.destinationName]: 'prod' }), hub(spec))).toBeUndefined();
});

test('an Application that is refused keeps nobody from its place on the cluster', () => {
  const tenant = application({}, { namespace: 'team-x', creationTimestamp: '2025-01-01T00:00:00Z' });
  const legitimate = application({ [pullKeys.appNamespace]: 'team-x' }, { namespace: 'argocd' });
  const intent = pullIntentOf(legitimate);
  if (intent.kind !== 'valid') {
    throw new Error(intent.kind);
  }
  const deps = hub(open, { applications: [tenant, legitimate] });
  expect(obstacleTo(legitimate, intent.target, deps)).toBeUndefined();
  // With permission, the older one has the place.
  const serving = { ...deps, applicationNamespaces: ['team-x'] };
  expect(obstacleTo(legitimate, intent.target, serving)).toMatch(
    /^Application team-x\/shop is team-x\/shop on managed cluster prod already/,
  );
});

test('an Application whose destination is the URL of one agent’s cluster is left to argocd-agent', () => {
  const of = (agent?: string): Secret => ({
    metadata: { name: `s-${agent}`, labels: agent === undefined ? {} : { [wellKnown.agentNameLabel]: agent } },
  });
  const claim = (server: string, ...secrets: Secret[]) => {
    const byIndex = (index: string, value: string) => (index === 'url' && value === 'https://p' ? secrets : []);
    const caches = { clusterSecrets: { byIndex } } as unknown as Parameters<typeof claimOfAgent>[1]['caches'];
    const one = application();
    return claimOfAgent({ ...one, spec: { ...one.spec, destination: { server } } }, { caches });
  };
  expect(claim('https://p', of('a'))).toMatch(/^argocd-agent has this Application for its agent a; /);
  expect(claim('https://p', of('a'), of('b'))).toBeUndefined();
  expect(claim('https://p', of())).toBeUndefined();
  expect(claim('https://other', of('a'))).toBeUndefined();
});
