import { expect, onTestFinished, test } from 'vitest';
import type { ObjectRef } from '../sync/index.ts';
import { copiedFrom } from './copied-from.ts';
import {
  AgentSync,
  type Application,
  ApplicationCopies,
  ApplicationMirrors,
  type AppProject,
  ClusterApplications,
  gpgKeysName,
  HubApplications,
  HubSync,
  ProjectMirrors,
  publishAppProjects,
  publishGpgKeys,
  publishOwnAppProjects,
  publishRepositories,
  replicateAppProjects,
  replicateGpgKeys,
  replicateRepositories,
} from './index.ts';
import { joinPeers } from './testing/join.ts';
import { Lab, LabCluster } from './testing/lab.ts';

/** Both sides, joined, with stores of every kind. */
async function world(mode: 'managed' | 'autonomous') {
  const lab = new Lab();
  const { time } = lab;
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const stores = (name: string) => ({
    applications: new LabCluster(name, time),
    projects: new LabCluster(name, time, 'AppProject'),
    secrets: new LabCluster(name, time, 'Secret'),
    configMaps: new LabCluster(name, time, 'ConfigMap'),
  });
  const [hub, cluster] = [stores('hub'), stores('cluster')];
  const onHub = { namespace: 'argocd', principalUid: 'p', ...lab.common('p') };
  const onCluster = { namespace: 'argocd', ...lab.common('a') };
  const { namespace: _, ...common } = onHub;
  const principal = new HubSync({
    managed: [
      publishAppProjects({ store: hub.projects, mapping: 'destination', ...onHub }),
      publishRepositories({ store: hub.secrets, projects: hub.projects, mapping: 'destination', ...onHub }),
      publishGpgKeys({ store: hub.configMaps, ...onHub }),
      new HubApplications({ applications: hub.applications, agentOf: ({ metadata }) => metadata.namespace, ...common }),
    ],
    autonomous: [
      new ProjectMirrors({ store: hub.projects, ...onHub }),
      new ApplicationMirrors({ applications: hub.applications, ...common }),
    ],
    ...common,
  });
  const agent = new AgentSync(
    mode === 'managed'
      ? {
          mode,
          kinds: [
            replicateAppProjects({ store: cluster.projects, ...onCluster }),
            replicateRepositories({ store: cluster.secrets, adoptionPolicy: 'always', ...onCluster }),
            replicateGpgKeys({ store: cluster.configMaps, ...onCluster }),
            new ApplicationCopies({
              applications: cluster.applications,
              mismatchPolicy: 'recreate',
              adoptionPolicy: 'always',
              onRecreate: 'ignore',
              ...onCluster,
            }),
          ],
          ...onCluster,
        }
      : {
          mode,
          kinds: [
            publishOwnAppProjects({ store: cluster.projects, ...onCluster }),
            new ClusterApplications({ applications: cluster.applications, revisions: 'any', ...onCluster }),
          ],
          ...onCluster,
        },
  );
  principal.start(stop.signal);
  agent.start(stop.signal);
  const side = () => ({ sent: [], acknowledged: [] });
  joinPeers(time, { ...side(), sync: principal }, { ...side(), sync: agent }, { name: 'a', mode });
  await lab.run(5_000);
  return { lab, hub, cluster, principal, agent };
}

type World = Awaited<ReturnType<typeof world>>;

/** A kind of copy: how its source is made, where it stands, and how somebody changes it. */
interface Kind {
  readonly name: string;
  readonly mode: 'managed' | 'autonomous';
  readonly make: (world: World) => void;
  readonly remove: (world: World) => void;
  readonly store: (world: World) => Pick<LabCluster, 'writes' | 'intercept'> & {
    readonly objects: { get(ref: ObjectRef): object | undefined; patch(ref: ObjectRef, patch: object): unknown };
  };
  readonly ref: ObjectRef;
  readonly change: (n: number) => object;
  /** What the source decides of the copy. */
  readonly content: (copy: never) => unknown;
  readonly expected: unknown;
}

const base64 = (text: string) => Buffer.from(text).toString('base64');
const project: AppProject = {
  metadata: { namespace: 'argocd', name: 'team' },
  spec: { sourceRepos: ['https://git'], destinations: [{ name: 'a', namespace: '*' }] },
};
const application = (namespace: string): Application => ({
  metadata: { namespace, name: 'shop' },
  spec: { project: 'default', source: { path: 'p0' }, destination: { name: 'in-cluster', namespace: 'shop' } },
});

const kinds: readonly Kind[] = [
  {
    name: 'a managed Application on the cluster',
    mode: 'managed',
    make: ({ hub }) => void hub.applications.objects.create(application('a')),
    remove: ({ hub }) =>
      hub.applications.objects.delete({ namespace: 'a', name: 'shop' }, { propagation: 'Background' }),
    store: ({ cluster }) => cluster.applications,
    ref: { namespace: 'argocd', name: 'shop' },
    change: (n) => ({ spec: { source: { path: `theirs-${n}` } } }),
    content: ({ spec }: Application) => spec,
    expected: application('a').spec,
  },
  {
    name: 'an AppProject on the cluster',
    mode: 'managed',
    make: ({ hub }) => void hub.projects.objects.create(project),
    remove: ({ hub }) =>
      hub.projects.objects.delete({ namespace: 'argocd', name: 'team' }, { propagation: 'Background' }),
    store: ({ cluster }) => cluster.projects,
    ref: { namespace: 'argocd', name: 'team' },
    change: (n) => ({ spec: { sourceRepos: [`https://theirs-${n}`] } }),
    content: ({ spec }: AppProject) => spec.sourceRepos,
    expected: ['https://git'],
  },
  {
    name: 'a repository on the cluster',
    mode: 'managed',
    make: ({ hub }) => {
      hub.projects.objects.create(project);
      hub.secrets.objects.create({
        metadata: { namespace: 'argocd', name: 'git', labels: { 'argocd.argoproj.io/secret-type': 'repository' } },
        data: { url: base64('https://git'), project: base64('team') },
      });
    },
    remove: ({ hub }) =>
      hub.secrets.objects.delete({ namespace: 'argocd', name: 'git' }, { propagation: 'Background' }),
    store: ({ cluster }) => cluster.secrets,
    ref: { namespace: 'argocd', name: 'git' },
    change: (n) => ({ data: { url: base64(`https://theirs-${n}`) } }),
    content: ({ data }: { data: unknown }) => data,
    expected: { url: base64('https://git'), project: base64('team') },
  },
  {
    name: 'the GnuPG keys on the cluster',
    mode: 'managed',
    make: ({ hub }) =>
      void hub.configMaps.objects.create({
        metadata: { namespace: 'argocd', name: gpgKeysName },
        data: { key: 'public' },
      }),
    remove: ({ hub }) =>
      hub.configMaps.objects.delete({ namespace: 'argocd', name: gpgKeysName }, { propagation: 'Background' }),
    store: ({ cluster }) => cluster.configMaps,
    ref: { namespace: 'argocd', name: gpgKeysName },
    change: (n) => ({ data: { key: `theirs-${n}` } }),
    content: ({ data }: { data: unknown }) => data,
    expected: { key: 'public' },
  },
  {
    name: 'the mirror of an Application on the hub',
    mode: 'autonomous',
    make: ({ cluster }) => void cluster.applications.objects.create(application('argocd')),
    remove: ({ cluster }) =>
      cluster.applications.objects.delete({ namespace: 'argocd', name: 'shop' }, { propagation: 'Background' }),
    store: ({ hub }) => hub.applications,
    ref: { namespace: 'a', name: 'shop' },
    change: (n) => ({ spec: { source: { path: `theirs-${n}` } } }),
    content: ({ spec }: Application) => spec,
    expected: { project: 'a-default', source: { path: 'p0' }, destination: { name: 'a', namespace: 'shop' } },
  },
  {
    name: 'the mirror of an AppProject on the hub',
    mode: 'autonomous',
    make: ({ cluster }) => void cluster.projects.objects.create(project),
    remove: ({ cluster }) =>
      cluster.projects.objects.delete({ namespace: 'argocd', name: 'team' }, { propagation: 'Background' }),
    store: ({ hub }) => hub.projects,
    ref: { namespace: 'argocd', name: 'a-team' },
    change: (n) => ({ spec: { sourceRepos: [`https://theirs-${n}`] } }),
    content: ({ spec }: AppProject) => spec.sourceRepos,
    expected: ['https://git'],
  },
];

test.each(kinds)(
  '$name that is changed all the time is put back ever more rarely, and for good in the end',
  async ({ mode, make, store: storeOf, ref, change, content, expected }) => {
    const all = await world(mode);
    const { lab, agent, principal } = all;
    const store = storeOf(all);
    const now = () => content(store.objects.get(ref) as never);
    make(all);
    await lab.run(5_000);
    expect(now()).toEqual(expected);

    const answers: number[] = [];
    for (let n = 0; n < 3_000; n++) {
      const { writes } = store;
      store.objects.patch(ref, change(n));
      await lab.run(100);
      for (let i = writes; i < store.writes; i++) {
        answers.push(n * 100);
      }
    }
    const gaps = answers.map((at, i) => at - (answers[i - 1] ?? at));
    expect(
      gaps.slice(0, 10).every((gap) => gap <= 100),
      'at first at once',
    ).toBe(true);
    expect(gaps.slice(11).length, 'later more rarely').toBeGreaterThan(4);
    expect(gaps.slice(11), 'ever more rarely').toEqual(gaps.slice(11).sort((a, b) => a - b));
    expect(gaps.at(-1)).toBeGreaterThan(30_000);
    expect(now(), 'the last word was not ours').not.toEqual(expected);
    const retrying = () => agent.stats().retrying + principal.stats('a').retrying;
    expect(retrying(), 'it shows').toBe(1);
    expect(lab.log.filter(({ level }) => level === 'warn')).toHaveLength(1);

    await lab.run(200_000);
    expect(now()).toEqual(expected);
    expect(retrying()).toBe(0);
  },
);

test.each(kinds)(
  '$name: a write that meets a conflict is repeated',
  async ({ mode, make, store: storeOf, ref, change, content, expected }) => {
    const all = await world(mode);
    const { lab } = all;
    const store = storeOf(all);
    make(all);
    await lab.run(5_000);
    let conflicts = 2;
    store.intercept = (call) => {
      if (call === 'patch' && conflicts-- > 0) {
        throw Object.assign(new Error('the object has been modified'), { status: 409, reason: 'Conflict' });
      }
    };
    store.objects.patch(ref, change(1));
    await lab.run(5_000);
    expect(content(store.objects.get(ref) as never)).toEqual(expected);
  },
);

test.each(kinds)(
  '$name: a deletion that the API server refuses is tried again',
  async ({ mode, make, remove, store: storeOf, ref }) => {
    const all = await world(mode);
    const { lab } = all;
    const store = storeOf(all);
    make(all);
    await lab.run(5_000);
    let refusals = 3;
    store.intercept = (call) => {
      // What the cluster needs is given back by a patch.
      if ((call === 'delete' || call === 'patch') && refusals-- > 0) {
        throw Object.assign(new Error('a webhook denies the request'), { status: 400, reason: 'BadRequest' });
      }
    };
    remove(all);
    await lab.run(60_000);
    expect(refusals, 'it was refused').toBeLessThan(0);
    const left = store.objects.get(ref);
    expect(left && copiedFrom(left as Pick<Application, 'metadata'>)).toBe(ref.name === gpgKeysName ? '' : undefined);
  },
);
