import { expect, test, vi } from 'vitest';
import type { Application, AppProject } from '../../lib/argocd/index.ts';
import { wellKnown } from '../../lib/base/index.ts';
import type { ConfigMap, Secret } from '../../lib/kube/index.ts';
import { PageAccess } from './access/page-access.ts';
import { listApplications } from './listed-applications.ts';
import { FleetModel } from './model/fleet-model.ts';
import { PageLenses } from './page-lenses.ts';

const nothing = () => undefined;
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** A cache of objects that tells whoever follows it. */
function cacheOf<T extends { metadata: { name: string } }>(...objects: T[]) {
  const all = new Map(objects.map((object) => [object.metadata.name, object]));
  const listeners = new Set<{ added?(now: T): void; updated?(old: T, now: T): void }>();
  return {
    get: ({ name }: { name: string }) => all.get(name),
    subscribe: (listener: { added?(now: T): void; updated?(old: T, now: T): void }) => {
      for (const object of all.values()) {
        listener.added?.(object);
      }
      listeners.add(listener);
      return nothing;
    },
    put: (now: T) => {
      const old = all.get(now.metadata.name);
      all.set(now.metadata.name, now);
      for (const listener of listeners) {
        if (old === undefined) {
          listener.added?.(now);
        } else {
          listener.updated?.(old, now);
        }
      }
    },
  };
}

const clusterSecret = (project: string): Secret => ({
  metadata: {
    name: 'cluster-c1',
    labels: { [wellKnown.secretTypeLabel]: 'cluster', [wellKnown.agentNameLabel]: 'c1' },
  },
  data: {
    project: Buffer.from(project).toString('base64'),
    server: Buffer.from('https://c1').toString('base64'),
  },
});

/** A fleet of one cluster, which belongs to a project. */
function pageOf(csv: string, ...shown: AppProject[]) {
  const projects = cacheOf(...shown);
  const secrets = cacheOf<Secret>(clusterSecret('shop'));
  const policy = { metadata: { name: 'argocd-rbac-cm' }, data: { 'policy.csv': csv } } as ConfigMap;
  const rights = new PageAccess({
    namespace: 'argocd',
    configMaps: { settings: cacheOf<ConfigMap>(), policy: cacheOf(policy) },
    secrets,
    projects,
    isRevoked: async () => false,
    proxies: { loopback: false, names: new Set() },
    logger,
  });
  const total = { total: 0, health: {}, sync: {} };
  const model = new FleetModel({
    agents: () => ['c1'],
    messages: async () => 0,
    signs: (agent) => ({
      agent,
      title: agent,
      mode: 'managed',
      version: '1',
      connectedSince: new Date(0),
      lastSeen: undefined,
      pending: 0,
      certificate: undefined,
      applications: total,
    }),
  });
  const cluster = { server: 'https://c1', project: 'shop' };
  const lenses = new PageLenses(model, rights, () => [cluster]);
  const sees = (name: string, ...groups: string[]) => lenses.of({ name, groups })?.totals.clusters ?? 0;
  return { rights, projects, secrets, cluster, sees, lenses };
}

const shop = (groups: string[], effect = 'allow'): AppProject => ({
  metadata: { name: 'shop' },
  spec: { roles: [{ name: 'dev', policies: [`p, proj:shop:dev, clusters, get, shop/*, ${effect}`], groups }] },
});

test('an Application without a project is in project default, whose denials hold', () => {
  const { rights } = pageOf('p, bob, applications, get, */*, allow\np, bob, applications, get, default/*, deny');
  const bob = { name: 'bob', groups: [] };
  const shown = (spec: Application['spec']) =>
    listApplications([{ metadata: { namespace: 'argocd', name: 'secret' }, spec }], (one) =>
      rights.seesApplication(bob, one),
    ).shown.length;
  expect([{ project: 'other' }, { project: 'default' }, { project: '' }, {}].map(shown)).toEqual([1, 0, 0, 0]);
});

test('a right that a project role gives or takes away counts at once', () => {
  const { projects, sees } = pageOf('', shop(['devs']));
  expect(sees('zoe', 'devs')).toBe(1);
  projects.put(shop([]));
  expect(sees('zoe', 'devs')).toBe(0);
  projects.put(shop(['devs']));
  expect(sees('zoe', 'devs')).toBe(1);
});

test('the project that the Secret of a cluster names counts at once', () => {
  const { secrets, cluster, sees } = pageOf('', shop(['devs']));
  secrets.put(clusterSecret('shop'));
  expect(sees('zoe', 'devs')).toBe(1);
  cluster.project = 'other';
  secrets.put(clusterSecret('other'));
  expect(sees('zoe', 'devs')).toBe(0);
});

test('what a project role denies is not shown to those who see all clusters otherwise', () => {
  const { projects, sees } = pageOf('g, alice, role:readonly', shop(['alice']));
  expect(sees('alice')).toBe(1);
  projects.put(shop(['alice'], 'deny'));
  expect(sees('alice')).toBe(0);
});

test('lines that deny count for whom they concern, and where clusters are', () => {
  const roles = (...policies: string[]): AppProject => ({
    metadata: { name: 'evil' },
    spec: { roles: [{ name: 'r', policies }] },
  });
  const { projects, secrets, cluster, lenses } = pageOf('');
  const isWhole = () => lenses.of({ name: 'admin', groups: [] })?.isWhole;
  const denied = 'p, admin, clusters, get, evil/*, deny';
  projects.put(roles(denied));
  expect(isWhole()).toBe(true);
  // Now there is a cluster in it.
  cluster.project = 'evil';
  secrets.put(clusterSecret('evil'));
  expect(isWhole()).toBe(undefined);
  const others = [
    'p, nobody, clusters, get, evil/*, deny',
    'p, admin, applications, get, evil/*, deny',
    'p, admin, clusters, update, evil/*, deny',
    'p, proj:evil:r, applications, sync, evil/x, deny',
  ];
  projects.put(roles(...others));
  expect(isWhole()).toBe(true);
  projects.put(roles('g, admin, proj:evil:r', 'p, proj:evil:r, *, *, *, deny'));
  expect(isWhole()).toBe(undefined);
});

test('what is shown to somebody stays when a change of rights leaves it as it is', () => {
  const { projects, lenses } = pageOf('g, alice, role:none', shop(['alice']));
  const alice = { name: 'alice', groups: [] };
  const [first, closed] = [lenses.of(alice), vi.fn()];
  first?.subscribe({ changed: () => undefined, sampled: () => undefined, closed });
  projects.put({ metadata: { name: 'other' }, spec: { roles: [{ name: 'x', groups: ['alice'] }] } });
  projects.put(shop(['alice', 'bob']));
  expect(lenses.of(alice)).toBe(first);
  expect(closed).not.toHaveBeenCalled();
  projects.put(shop([]));
  expect(lenses.of(alice)).toBe(undefined);
  expect(closed).toHaveBeenCalledOnce();
});

test('a pattern that Argo CD does not compile ends it, if the fields before it match', () => {
  const data = (line: string) => `p, bob, clusters, get, .*, allow\n${line}`;
  const allows = (line: string) => {
    const policy = {
      metadata: { name: 'argocd-rbac-cm' },
      data: { 'policy.matchMode': 'regex', 'policy.csv': data(line) },
    };
    const rights = new PageAccess({
      namespace: 'argocd',
      configMaps: { settings: cacheOf<ConfigMap>(), policy: cacheOf(policy as ConfigMap) },
      secrets: cacheOf<Secret>(),
      projects: cacheOf<AppProject>(),
      isRevoked: async () => false,
      proxies: { loopback: false, names: new Set() },
      logger,
    });
    return rights.seesCluster({ name: 'bob', groups: [] }, { server: 'https://c1', project: '' });
  };
  expect(allows('p, bob, (, update, .*, allow')).toBe(false);
  expect(allows('p, bob, clusters, update, (, allow')).toBe(true);
});
