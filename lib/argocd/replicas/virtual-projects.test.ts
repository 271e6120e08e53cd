import { expect, test } from 'vitest';
import { wellKnown } from '../../base/index.ts';
import { processRuntime } from '../../sync/index.ts';
import type { GpgKeys } from '../gpg-keys.ts';
import {
  type Application,
  type AppProject,
  publishAppProjects,
  publishRepositories,
  type RepositorySecret,
  replicateAppProjects,
  replicateRepositories,
  VirtualProjects,
} from '../index.ts';
import { Memory, pair, testLog } from './testing.ts';

/** A hub with its Argo CD's objects, and agent `one`. */
function start() {
  const hub = {
    projects: new Memory<AppProject>(),
    secrets: new Memory<RepositorySecret>(),
    settings: new Memory<GpgKeys>(),
    applications: new Memory<Application>(),
  };
  const managed = { projects: new Memory<AppProject>(), secrets: new Memory<RepositorySecret>() };
  const log = testLog();
  const runtime = processRuntime(log);
  const virtualProjects = new VirtualProjects({ ...hub, runtime });
  const common = {
    namespace: 'argocd',
    principalUid: 'p',
    mapping: 'destination' as const,
    clustersOf: (agent: string) => [{ name: agent, server: `https://${agent}` }],
    virtualProjects,
    runtime,
  };
  const projects = publishAppProjects({ ...common, store: hub.projects });
  const repositories = publishRepositories({
    ...common,
    store: hub.secrets,
    projects: hub.projects,
    sharing: { applications: hub.applications, agentOf: () => 'one' },
  });
  virtualProjects.follow((isConcerned) => {
    projects.reconsider(({ metadata }) => isConcerned(metadata.name));
    repositories.reconsider(() => true);
  });
  const joined = pair({
    managed: [projects, repositories],
    agent: {
      mode: 'managed',
      kinds: [
        replicateAppProjects({ namespace: 'argocd', runtime, store: managed.projects }),
        replicateRepositories({ namespace: 'argocd', runtime, store: managed.secrets, adoptionPolicy: 'never' }),
      ],
    },
  });
  const spec = () => managed.projects.objects.get('team')?.spec;
  return { hub, managed, log, spec, ...joined };
}

const here = { name: 'in-cluster', server: 'https://kubernetes.default.svc', namespace: '*' };
const team = (spec: AppProject['spec'], labels = { kind: 'team' }): AppProject => ({
  metadata: { name: 'team', labels },
  spec,
});
const mine = { destinations: [{ name: 'one', namespace: '*' }] };
const settings = (globalProjects: string): GpgKeys => ({ metadata: { name: 'argocd-cm' }, data: { globalProjects } });
const forTeams = settings('- projectName: rules\n  labelSelector: {matchLabels: {kind: team}}\n');
const freeze = { kind: 'deny', schedule: '* * * * *', duration: '24h', namespaces: ['*'] };
const rules = (spec: AppProject['spec']): AppProject => ({ metadata: { name: 'rules' }, spec });
const secretOf = (type: string, name: string, data: Record<string, string>): RepositorySecret => ({
  metadata: { name, labels: { [wellKnown.secretTypeLabel]: type } },
  data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
});

test('a copy has what the project inherits from a global project of the hub, as long as it does', async () => {
  const { hub, spec, settled } = start();
  hub.projects.put(team(mine));
  await settled();
  expect(spec()).toEqual({ destinations: [here] });

  const [blacklist, whitelist] = [[{ group: '', kind: 'ConfigMap' }], [{ group: '*', kind: '*' }]];
  hub.projects.put(
    rules({
      syncWindows: [freeze],
      namespaceResourceBlacklist: blacklist,
      namespaceResourceWhitelist: whitelist,
      clusterResourceBlacklist: blacklist,
      clusterResourceWhitelist: whitelist,
      sourceRepos: ['https://git.example.com/*'],
      signatureKeys: [{ keyID: 'x' }],
    }),
  );
  hub.settings.put(forTeams);
  await settled();
  const inherited = {
    destinations: [here],
    syncWindows: [freeze],
    namespaceResourceBlacklist: blacklist,
    namespaceResourceWhitelist: whitelist,
    clusterResourceBlacklist: blacklist,
    clusterResourceWhitelist: whitelist,
    sourceRepos: ['https://git.example.com/*'],
  };
  expect(spec()).toEqual(inherited);

  hub.projects.edit('rules', { spec: { syncWindows: null } });
  await settled();
  expect(spec()).not.toHaveProperty('syncWindows');
  hub.projects.edit('rules', { spec: { syncWindows: [freeze] } });
  await settled();
  expect(spec()).toEqual(inherited);
  hub.projects.edit('team', { metadata: { labels: { kind: 'other' } } });
  await settled();
  expect(spec()).toEqual({ destinations: [here] });
  hub.projects.edit('team', { metadata: { labels: { kind: 'team' } } });
  await settled();
  expect(spec()).toEqual(inherited);
  hub.projects.remove('rules');
  await settled();
  expect(spec()).toEqual({ destinations: [here] });
});

test('a project whose destinations come from a global project alone reaches the agent', async () => {
  const { hub, spec, settled } = start();
  hub.settings.put(forTeams);
  hub.projects.put(rules({ destinations: [{ server: '*', namespace: 'apps' }] }));
  hub.projects.put(team({ sourceRepos: ['*'] }));
  await settled();
  expect(spec()).toEqual({ sourceRepos: ['*'], destinations: [{ ...here, namespace: 'apps' }] });
  hub.settings.remove('argocd-cm');
  await settled();
  expect(spec()).toBeUndefined();
});

test("a global project that denies the agent's cluster takes the others away from it", async () => {
  const { hub, spec, settled } = start();
  hub.projects.put(team(mine));
  await settled();
  expect(spec()).toBeDefined();
  hub.projects.put(rules({ destinations: [{ name: '!one', namespace: '*' }] }));
  hub.settings.put(forTeams);
  await settled();
  expect(spec()).toBeUndefined();
});

test('globalProjects that cannot be read count as none, as in Argo CD, and are told', async () => {
  const { hub, spec, log, settled } = start();
  hub.settings.put(forTeams);
  hub.projects.put(rules({ syncWindows: [freeze] }));
  hub.projects.put(team(mine));
  await settled();
  expect(spec()).toHaveProperty('syncWindows');
  hub.settings.put(settings('projectName: rules'));
  await settled();
  expect(spec()).not.toHaveProperty('syncWindows');
  expect(log.warnings).toEqual(['globalProjects of ConfigMap argocd-cm cannot be read']);
});

test('a cluster whose Secret names a project is a destination of it', async () => {
  const { hub, spec, settled } = start();
  hub.projects.put(team({ sourceRepos: ['*'] }));
  await settled();
  expect(spec()).toBeUndefined();
  const cluster = { name: 'one', server: 'https://one/', project: 'team' };
  hub.secrets.put(secretOf('cluster', 'cluster-one', cluster));
  await settled();
  expect(spec()).toEqual({ sourceRepos: ['*'], destinations: [here] });
  hub.secrets.put(secretOf('cluster', 'cluster-one', { ...cluster, namespaces: 'a, b' }));
  await settled();
  expect(spec()?.destinations).toEqual([
    { ...here, namespace: 'a' },
    { ...here, namespace: 'b' },
  ]);
  hub.secrets.put(secretOf('cluster', 'cluster-one', { ...cluster, project: 'other' }));
  await settled();
  expect(spec()).toBeUndefined();
  hub.secrets.put(secretOf('cluster', 'cluster-one', cluster));
  await settled();
  expect(spec()?.destinations).toEqual([here]);
});

test('permitOnlyProjectScopedClusters: only the agents of such clusters have the project', async () => {
  const { hub, spec, settled } = start();
  hub.projects.put(team({ ...mine, permitOnlyProjectScopedClusters: true }));
  await settled();
  expect(spec()).toBeUndefined();
  hub.secrets.put(secretOf('cluster', 'cluster-one', { name: 'one', server: 'https://one', project: 'team' }));
  await settled();
  expect(spec()).toEqual({ destinations: [here] });
  hub.secrets.remove('cluster-one');
  await settled();
  expect(spec()).toBeUndefined();
});

test('the addresses of its own repositories are sources of a project on the hub, but not in the text of copies', async () => {
  const { hub, managed, spec, settled } = start();
  const url = 'https://git.example.com/team/app';
  hub.projects.put(team(mine));
  hub.applications.put({
    metadata: { name: 'app', namespace: 'argocd' },
    spec: { project: 'team', source: { repoURL: url }, destination: { name: 'one' } },
  });
  hub.secrets.put(secretOf('repo-creds', 'shared', { url: 'https://git.example.com/', password: 'x' }));
  await settled();
  expect(managed.secrets.objects.has('shared')).toBe(false);
  hub.secrets.put(secretOf('repository', 'own', { url, project: 'team' }));
  await settled();
  expect([...managed.secrets.objects.keys()].sort()).toEqual(['own', 'shared']);
  expect(spec()).toEqual({ destinations: [here] });
});
