import { describe, expect, test } from 'vitest';
import { type LabelTest, labelSelector } from '../../base/index.ts';
import { processRuntime } from '../../sync/index.ts';
import {
  type Application,
  type AppProject,
  annotations,
  publishAppProjects,
  publishRepositories,
  type RepositorySecret,
  replicateAppProjects,
  replicateRepositories,
  skipSyncLabel,
} from '../index.ts';
import { Memory, pair, summaries, testLog } from './testing.ts';

interface World {
  readonly hub?: Memory<RepositorySecret>;
  readonly projects?: Memory<AppProject>;
  readonly managed?: Memory<RepositorySecret>;
  readonly adoptionPolicy?: 'always' | 'never';
  readonly selects?: LabelTest;
  /** Applications that share repositories without a project. */
  readonly applications?: Memory<Application>;
}

/** A hub whose project `team` is for agent `one`, unless it has other ones. */
function start({ hub = new Memory(), projects = hubProjects(), managed = new Memory(), ...rest }: World = {}) {
  const log = testLog();
  const common = { namespace: 'argocd', runtime: processRuntime(log) };
  const hubSide = { ...common, principalUid: 'p', mapping: 'destination' as const };
  const joined = pair({
    managed: [
      publishAppProjects({ ...hubSide, store: projects }),
      publishRepositories({
        ...hubSide,
        store: hub,
        projects,
        ...(rest.selects && { selects: rest.selects }),
        ...(rest.applications && {
          sharing: { applications: rest.applications, agentOf: ({ spec }) => spec.destination?.name },
        }),
      }),
    ],
    agent: {
      mode: 'managed',
      kinds: [
        replicateAppProjects({ ...common, store: new Memory() }),
        replicateRepositories({ ...common, store: managed, adoptionPolicy: rest.adoptionPolicy ?? 'always' }),
      ],
    },
  });
  return { hub, projects, managed, log, ...joined };
}

function hubProjects(): Memory<AppProject> {
  const projects = new Memory<AppProject>();
  projects.put(project('team'));
  return projects;
}

const project = (name: string, agent = 'one'): AppProject => ({
  metadata: { name },
  spec: { destinations: [{ name: agent, namespace: '*' }] },
});
const base64 = (text: string) => Buffer.from(text).toString('base64');
const repository = (name: string, of = 'team', type = 'repository'): RepositorySecret => ({
  metadata: { name, labels: { 'argocd.argoproj.io/secret-type': type } },
  type: 'Opaque',
  data: { url: base64('https://git'), ...(of === '' ? {} : { project: base64(of) }) },
});

test('a repository of a project that the agent gets is made, changed and removed', async () => {
  const { hub, managed, settled } = start();
  hub.put(repository('git'));
  hub.put(repository('creds', 'team', 'repo-creds'));
  await settled();
  expect(managed.objects.get('git')).toMatchObject({
    metadata: {
      labels: { 'argocd.argoproj.io/secret-type': 'repository' },
      annotations: { [annotations.sourceUid]: 'uid-git' },
    },
    type: 'Opaque',
    data: { url: base64('https://git'), project: base64('team') },
  });
  expect(managed.objects.has('creds')).toBe(true);
  hub.edit('git', { data: { url: base64('https://other'), insecure: base64('true') } });
  await settled();
  expect(managed.objects.get('git')?.data).toMatchObject({ url: base64('https://other'), insecure: base64('true') });
  hub.edit('git', { data: { insecure: null } });
  await settled();
  expect(managed.objects.get('git')?.data).not.toHaveProperty('insecure');
  hub.remove('git');
  await settled();
  expect([...managed.objects.keys()]).toEqual(['creds']);
});

test('Secrets of no project, of another agent’s, of a missing or mirrored one, and for other purposes stay on the hub', async () => {
  const { hub, projects, managed, settled } = start();
  projects.put(project('theirs', 'two'));
  projects.put({ ...project('two-x'), metadata: { name: 'two-x', annotations: { [annotations.mirrorOf]: 'two' } } });
  hub.put(repository('for-all', ''));
  hub.put(repository('theirs', 'theirs'));
  hub.put(repository('missing', 'missing'));
  hub.put(repository('mirrored', 'two-x'));
  hub.put(repository('cluster', 'team', 'cluster'));
  hub.put({ ...repository('plain'), metadata: { name: 'plain' } });
  hub.put({
    ...repository('skipped'),
    metadata: { name: 'skipped', labels: { ...repository('x').metadata.labels, [skipSyncLabel]: 'true' } },
  });
  await settled();
  expect(managed.writes).toEqual([]);
});

test('the untouched default project gives no credentials away', async () => {
  const { hub, projects, managed, settled } = start();
  projects.put({
    metadata: { name: 'default' },
    spec: {
      sourceRepos: ['*'],
      destinations: [{ namespace: '*', server: 'https://elsewhere' }],
      clusterResourceWhitelist: [{ group: '*', kind: '*' }],
    },
  });
  hub.put(repository('git', 'default'));
  await settled();
  expect(managed.writes).toEqual([]);
});

test('defect 27: a repository follows its project: named later, made later, turned away, gone, and back', async () => {
  const { hub, projects, managed, settled } = start();
  const isThere = async () => {
    await settled();
    return managed.objects.has('git');
  };
  hub.put(repository('git', ''));
  expect(await isThere()).toBe(false);
  hub.edit('git', { data: { project: base64('later') } });
  expect(await isThere()).toBe(false);
  projects.put(project('later'));
  expect(await isThere()).toBe(true);
  projects.put(project('later', 'two'));
  expect(await isThere()).toBe(false);
  projects.put(project('later'));
  expect(await isThere()).toBe(true);
  projects.remove('later');
  expect(await isThere()).toBe(false);
  hub.edit('git', { data: { project: base64('team') } });
  expect(await isThere()).toBe(true);
  hub.edit('git', { metadata: { labels: { 'argocd.argoproj.io/secret-type': null } } });
  expect(await isThere()).toBe(false);
});

test('defect 27: a repository that changes from one project of the agent to another stays all the time', async () => {
  const { hub, projects, managed, settled } = start();
  projects.put(project('other'));
  hub.put(repository('git'));
  await settled();
  hub.edit('git', { data: { project: base64('other') } });
  await settled();
  expect(managed.writes).toEqual(['create', 'patch']);
});

test('only Secrets that a label selector selects take part', async () => {
  const { hub, managed, settled } = start({ selects: labelSelector('fleet=yes') });
  hub.put(repository('git'));
  await settled();
  expect(managed.objects.size).toBe(0);
  hub.edit('git', { metadata: { labels: { fleet: 'yes' } } });
  await settled();
  expect(managed.objects.size).toBe(1);
  hub.edit('git', { metadata: { labels: { fleet: null } } });
  await settled();
  expect(managed.objects.size).toBe(0);
});

test('defect 52: owners and finalizers stay on the hub', async () => {
  const { hub, managed, settled, sent } = start();
  const { labels } = repository('git').metadata;
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ExternalSecret', name: 'git', uid: 'x' }];
  hub.put({
    ...repository('git'),
    metadata: { name: 'git', labels: labels ?? {}, finalizers: ['a/b'], ownerReferences },
  });
  await settled();
  expect(JSON.stringify(sent)).not.toContain('ExternalSecret');
  expect(managed.objects.get('git')?.metadata).not.toHaveProperty('ownerReferences');
  expect(managed.objects.get('git')?.metadata.finalizers).toBeUndefined();
  hub.edit('git', { metadata: { finalizers: null } });
  hub.remove('git');
  await settled();
  expect(managed.objects.size).toBe(0);
});

test('local changes and deletions are put back', async () => {
  const { hub, managed, settled } = start();
  hub.put(repository('git'));
  await settled();
  managed.edit('git', { data: { url: base64('https://mine'), password: base64('secret') } });
  await settled();
  expect(managed.objects.get('git')?.data).toEqual(repository('git').data);
  managed.edit('git', { metadata: { labels: { 'argocd.argoproj.io/secret-type': null } } });
  await settled();
  expect(managed.objects.get('git')?.metadata.labels).toEqual(repository('git').metadata.labels);
  managed.remove('git');
  await settled();
  expect(managed.objects.get('git')?.data).toEqual(repository('git').data);
});

test('a Secret that is there for something else is never touched, whatever the hub says', async () => {
  const managed = new Memory<RepositorySecret>();
  managed.put({ metadata: { name: 'argocd-secret' }, data: { 'server.secretkey': 'mine' } });
  const { hub, settled, log } = start({ managed });
  hub.put(repository('argocd-secret'));
  await settled();
  hub.remove('argocd-secret');
  await settled();
  expect(managed.writes).toEqual([]);
  expect(log.warnings).toEqual([
    'repository Secret cannot be had here: there is a Secret of that name that is for something else',
  ]);
});

test('defect 43: a repository that is there is taken over when it may be, as soon as it may', async () => {
  for (const adoptionPolicy of ['always', 'never'] as const) {
    const managed = new Memory<RepositorySecret>();
    managed.put({ ...repository('git'), data: { url: base64('https://mine') } });
    const { hub, settled } = start({ managed, adoptionPolicy });
    hub.put(repository('git'));
    await settled();
    expect(managed.writes).toEqual(adoptionPolicy === 'always' ? ['patch'] : []);
    managed.remove('git');
    await settled();
    expect(managed.objects.get('git')?.data).toEqual(repository('git').data);
  }
});

test('defect 12: what the hub took away while nobody was connected is gone after any restart', async () => {
  const first = start();
  first.hub.put(repository('deleted'));
  first.hub.put(repository('turned-away', 'other'));
  first.projects.put(project('other'));
  first.hub.put(repository('kept'));
  await first.settled();
  expect(first.managed.objects.size).toBe(3);
  first.stop();
  first.hub.remove('deleted');
  first.projects.remove('other');
  const second = start(first);
  await second.settled();
  expect([...first.managed.objects.keys()]).toEqual(['kept']);
  expect(
    summaries(second.sent)
      .filter((line) => line.startsWith('repository'))
      .sort(),
  ).toEqual(['repository delete deleted', 'repository delete turned-away']);
});

test('defect 11: defect 53: one that was deleted and made again meanwhile is changed in place', async () => {
  const first = start();
  first.hub.put(repository('git'));
  await first.settled();
  const { uid } = first.managed.objects.get('git')?.metadata ?? {};
  first.stop();
  first.hub.remove('git');
  first.hub.put({ ...repository('git'), data: { ...repository('git').data, url: base64('https://new') } }, 'second');
  await start(first).settled();
  expect(first.managed.objects.get('git')).toMatchObject({
    metadata: { uid, annotations: { [annotations.sourceUid]: 'second' } },
    data: { url: base64('https://new') },
  });
});

test('defect 27: an API server that does not answer takes nothing away', async () => {
  const { hub, projects, managed, settled } = start();
  hub.put(repository('git'));
  await settled();
  projects.read = () => Promise.reject(new Error('away'));
  hub.read = () => Promise.reject(new Error('away'));
  managed.fail = 3;
  hub.edit('git', { data: { url: base64('https://new') } });
  await settled();
  expect(managed.objects.get('git')?.data?.url).toBe(base64('https://new'));
  expect(managed.writes).toEqual(['create', 'patch']);
});

test('an agent that connects costs nothing for the Secrets that are no repositories, of which there is one for each agent', () => {
  const [hub, projects] = [new Memory<RepositorySecret>(), hubProjects()];
  hub.put(repository('git'));
  for (let cluster = 0; cluster < 1_000; cluster++) {
    hub.put(repository(`cluster-${cluster}`, 'team', 'cluster'));
  }
  const kind = publishRepositories({
    store: hub,
    projects,
    namespace: 'argocd',
    principalUid: 'p',
    mapping: 'destination',
    runtime: processRuntime(testLog()),
  });
  kind.start(new AbortController().signal);
  expect(kind.syncFor('one').stats().pending).toBe(1);
});

test('a Secret that becomes a repository, is none for a while and is one again is followed', async () => {
  const { hub, managed, settled } = start();
  const type = (value: string) => ({ metadata: { labels: { 'argocd.argoproj.io/secret-type': value } } });
  hub.put(repository('git', 'team', 'cluster'));
  await settled();
  expect(managed.objects.has('git')).toBe(false);
  hub.edit('git', type('repository'));
  await settled();
  expect(managed.objects.has('git')).toBe(true);
  hub.edit('git', type('cluster'));
  await settled();
  expect(managed.objects.has('git')).toBe(false);
  hub.edit('git', type('repository'));
  await settled();
  expect(managed.objects.has('git')).toBe(true);
  hub.edit('git', type('cluster'));
  hub.remove('git');
  await settled();
  expect(managed.objects.has('git')).toBe(false);
});

describe('repositories without a project, when they are shared', () => {
  const url = 'https://git.example.com/team/shop.git';
  const application = (name: string, fields: object = {}, namespace = 'argocd'): Application => ({
    metadata: { name, namespace },
    spec: { project: 'team', source: { repoURL: url }, destination: { name: 'one' }, ...fields },
  });
  const shared = (name: string, address = url, type = 'repository'): RepositorySecret => ({
    ...repository(name, '', type),
    data: { url: base64(address), password: base64('p') },
  });
  const team = (spec: object = {}): AppProject => ({
    metadata: { name: 'team' },
    spec: { ...project('team').spec, sourceRepos: ['*'], ...spec },
  });
  function share(spec?: object) {
    const [applications, projects] = [new Memory<Application>(), new Memory<AppProject>()];
    projects.put(team(spec));
    const world = start({ applications, projects });
    const held = async () => {
      await world.settled();
      return [...world.managed.objects.keys()].sort();
    };
    return { ...world, applications, projects, held };
  }

  test('go to an agent as long as one of its Applications uses them', async () => {
    const { hub, applications, held } = share();
    hub.put(shared('git'));
    hub.put(shared('other', 'https://git.example.com/team/other'));
    hub.put(shared('creds', 'https://git.example.com/team/', 'repo-creds'));
    hub.put(shared('foreign', 'https://git.example.com/tea/', 'repo-creds'));
    expect(await held(), 'no Application').toEqual([]);
    applications.put(application('elsewhere', { destination: { name: 'two' } }));
    expect(await held(), 'an Application of another agent').toEqual([]);
    applications.put(application('a'));
    applications.put(application('b', { source: undefined, sources: [{ repoURL: url.toUpperCase() }] }));
    expect(await held()).toEqual(['creds', 'git']);
    applications.edit('a', { metadata: { labels: { some: 'change' } } });
    applications.remove('a');
    expect(await held(), 'b uses them').toEqual(['creds', 'git']);
    applications.edit('b', { spec: { destination: { name: 'two' } } });
    expect(await held(), 'b has left').toEqual([]);
    applications.edit('b', { spec: { destination: { name: 'one' }, sources: null, source: null } });
    expect(await held()).toEqual([]);
    const drySource = { repoURL: 'https://git.example.com/team/other.git' };
    applications.edit('b', { spec: { sourceHydrator: { drySource } } });
    expect(await held()).toEqual(['creds', 'other']);
  });

  test('follow the Secret: its address, its project and its label', async () => {
    const { hub, applications, managed, held } = share();
    applications.put(application('a'));
    hub.put(shared('git'));
    expect(await held()).toEqual(['git']);
    hub.edit('git', { data: { password: base64('new') } });
    await held();
    expect(managed.objects.get('git')?.data?.password).toBe(base64('new'));
    hub.edit('git', { data: { url: base64('https://elsewhere') } });
    expect(await held()).toEqual([]);
    hub.edit('git', { data: { url: base64(url), project: base64('other') } });
    expect(await held(), 'the project decides').toEqual([]);
    hub.edit('git', { data: { project: null } });
    expect(await held()).toEqual(['git']);
    hub.edit('git', { metadata: { labels: { [skipSyncLabel]: 'true' } } });
    expect(await held()).toEqual([]);
  });

  test.each<[string, object, Application, boolean]>([
    ['a project that is not there', {}, application('a', { project: 'none' }), false],
    ['a project that does not go to the agent', { destinations: [{ name: 'two' }] }, application('a'), false],
    [
      'a project that does not permit the source',
      { sourceRepos: ['https://git.example.com/*'] },
      application('a'),
      false,
    ],
    ['a project that denies the source', { sourceRepos: ['*', `!${url}`] }, application('a'), false],
    ['a project that permits it', { sourceRepos: ['https://git.example.com/**'] }, application('a'), true],
    ['a namespace that the project does not admit', {}, application('a', {}, 'tenant'), false],
    ['a namespace that it admits', { sourceNamespaces: ['ten*'] }, application('a', {}, 'tenant'), true],
  ])('an Application of %s', async (_, spec, one, gets) => {
    const { hub, applications, projects, held } = share(spec);
    hub.put(shared('git'));
    applications.put(one);
    expect(await held()).toEqual(gets ? ['git'] : []);
    projects.put(team({ sourceRepos: gets ? [] : ['*'], sourceNamespaces: ['*'] }));
    expect(await held(), 'the project has changed').toEqual(one.spec.project === 'team' && !gets ? ['git'] : []);
  });

  test("stay when the project is the hub's mirror of an autonomous agent's", async () => {
    const { hub, applications, projects, held } = share();
    hub.put(shared('git'));
    applications.put(application('a'));
    projects.put({ ...team(), metadata: { name: 'team', annotations: { [annotations.mirrorOf]: 'auto' } } });
    expect(await held()).toEqual([]);
  });
});
