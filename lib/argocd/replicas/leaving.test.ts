import { describe, expect, test } from 'vitest';
import { processRuntime } from '../../sync/index.ts';
import {
  type Application,
  type AppProject,
  annotations,
  type GpgKeys,
  gpgKeysName,
  KeptApplications,
  publishAppProjects,
  publishGpgKeys,
  publishRepositories,
  type RepositorySecret,
  replicateAppProjects,
  replicateGpgKeys,
  replicateRepositories,
  skipSyncLabel,
} from '../index.ts';
import { Memory, pair, testLog } from './testing.ts';

/*
 * What becomes of AppProjects, repository Secrets and keys on a managed cluster when the hub has no more to do with them.
 */

interface Side {
  readonly projects: Memory<AppProject>;
  readonly secrets: Memory<RepositorySecret>;
  readonly keys: Memory<GpgKeys>;
}

const side = (): Side => ({ projects: new Memory(), secrets: new Memory(), keys: new Memory() });

function start({
  hub = side(),
  cluster = side(),
  applications = new Memory<Application>(),
  principalUid = 'p',
  deletesKeys = false,
}: {
  readonly hub?: Side;
  readonly cluster?: Side;
  readonly applications?: Memory<Application>;
  readonly principalUid?: string;
  readonly deletesKeys?: boolean;
} = {}) {
  const log = testLog();
  const common = { namespace: 'argocd', runtime: processRuntime(log) };
  const onHub = { ...common, principalUid, mapping: 'destination' as const };
  const kept = new KeptApplications(applications);
  const joined = pair({
    managed: [
      publishAppProjects({ ...onHub, store: hub.projects }),
      publishRepositories({ ...onHub, store: hub.secrets, projects: hub.projects }),
      publishGpgKeys({ ...common, store: hub.keys }),
    ],
    agent: {
      mode: 'managed',
      kinds: [
        replicateAppProjects({ ...common, store: cluster.projects, kept }),
        replicateRepositories({ ...common, store: cluster.secrets, kept, adoptionPolicy: 'always' }),
        replicateGpgKeys({ ...common, store: cluster.keys, deletes: deletesKeys }),
      ],
    },
  });
  return { hub, cluster, applications, log, deletesKeys, ...joined };
}

const forOne = { sourceRepos: ['*'], destinations: [{ name: 'one', namespace: '*' }] };
const project = (name: string, spec: AppProject['spec'] = forOne): AppProject => ({ metadata: { name }, spec });
const base64 = (text: string) => Buffer.from(text).toString('base64');
const secret = (name: string, password: string): RepositorySecret => ({
  metadata: { name, labels: { 'argocd.argoproj.io/secret-type': 'repository' } },
  data: { project: base64('team'), url: base64('https://git.example.com/a'), password: base64(password) },
});
const untouched: AppProject['spec'] = {
  sourceRepos: ['*'],
  destinations: [{ namespace: '*', server: '*' }],
  clusterResourceWhitelist: [{ group: '*', kind: '*' }],
};
const nothing = { sourceRepos: [], destinations: [] };

/** An object without what changes with each write. */
function shape<T extends { readonly metadata: { readonly resourceVersion?: string } }>(object: T | undefined): unknown {
  if (object === undefined) {
    return undefined;
  }
  const { resourceVersion: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

test('a project that was there before is given back after a restore to that time, too', async () => {
  const cluster = side();
  const own = { ...project('team'), metadata: { name: 'team', labels: { own: 'yes' } } };
  cluster.projects.put(own);
  const world = start({ cluster });
  world.hub.projects.put(project('team'));
  await world.settled();
  expect(cluster.projects.objects.get('team')?.metadata.labels).toEqual({});
  // The same object, as it was.
  cluster.projects.put(own);
  await world.settled();
  expect(cluster.projects.objects.get('team')?.metadata.annotations).toHaveProperty([annotations.takenOver]);
  world.hub.projects.put(project('team', nothing));
  await world.settled();
  expect(cluster.projects.objects.get('team')?.metadata.labels).toEqual({ own: 'yes' });
});

describe.each(['at once', 'while the agent is away', 'and both sides start anew'])('%s', (when) => {
  async function leaving(world: ReturnType<typeof start>, leave: () => void): Promise<void> {
    const { hub, cluster, applications, deletesKeys } = world;
    if (when === 'at once') {
      leave();
      await world.settled();
      return;
    }
    world.disconnect();
    leave();
    if (when === 'while the agent is away') {
      world.connect();
      await world.settled();
      return;
    }
    world.stop();
    await start({ hub, cluster, applications, deletesKeys }).settled();
  }

  test('a project that was there before is given back as it was', async () => {
    const cluster = side();
    const mine = { note: 'mine', [annotations.lastApplied]: '{}' };
    cluster.projects.put({
      metadata: { name: 'team', labels: { own: 'yes' }, annotations: mine },
      spec: { sourceRepos: ['https://own'], destinations: [{ server: '*', namespace: 'own' }] },
    });
    const before = shape(cluster.projects.objects.get('team'));
    const world = start({ cluster });
    world.hub.projects.put({
      ...project('team'),
      metadata: { name: 'team', annotations: { note: 'hub' }, finalizers: ['resources-finalizer.argocd.argoproj.io'] },
    });
    await world.settled();
    expect(cluster.projects.objects.get('team')?.spec.sourceRepos).toEqual(['*']);
    await leaving(world, () => world.hub.projects.put(project('team', nothing)));
    expect(shape(cluster.projects.objects.get('team'))).toEqual({
      ...(before as object),
      metadata: expect.objectContaining({ labels: { own: 'yes' }, annotations: mine }),
    });
    expect(cluster.projects.objects.get('team')?.metadata.finalizers ?? []).toEqual([]);
  });

  test('credentials that were there before are given back as they were', async () => {
    const cluster = side();
    cluster.secrets.put(secret('repo', 'own'));
    const before = cluster.secrets.objects.get('repo');
    const world = start({ cluster });
    world.hub.projects.put(project('team'));
    world.hub.secrets.put(secret('repo', 'hub'));
    await world.settled();
    const copy = cluster.secrets.objects.get('repo');
    expect(copy?.data?.password).toBe(base64('hub'));
    expect(JSON.stringify(copy?.metadata), 'no credentials where everybody looks').not.toContain(base64('own'));
    await leaving(world, () => world.hub.secrets.remove('repo'));
    expect(cluster.secrets.objects.get('repo')?.data).toEqual(before?.data);
    expect(cluster.secrets.objects.get('repo')?.metadata.annotations ?? {}).toEqual({});
  });

  test.each([
    ['was there before', true],
    ['was not', false],
  ])("the default project stays when the hub's is locked down: it %s", async (_, isThere) => {
    const cluster = side();
    if (isThere) {
      cluster.projects.put(project('default', { ...untouched, description: 'own' }));
    }
    const world = start({ cluster });
    world.hub.projects.put(project('default', untouched));
    await world.settled();
    expect(cluster.projects.objects.get('default')?.metadata.annotations).toHaveProperty([annotations.sourceUid]);
    await leaving(world, () => world.hub.projects.put(project('default', nothing)));
    const left = cluster.projects.objects.get('default');
    expect(left?.metadata.annotations ?? {}).toEqual({});
    expect(left?.spec).toMatchObject(isThere ? { description: 'own' } : { sourceRepos: ['*'] });
    expect(cluster.projects.writes.filter((one) => one === 'delete')).toEqual([]);
  });

  test.each([
    ['is deleted', (hub: Side) => hub.keys.remove(gpgKeysName)],
    [
      'gets the label',
      (hub: Side) => hub.keys.edit(gpgKeysName, { metadata: { labels: { [skipSyncLabel]: 'true' } } }),
    ],
  ])("the ConfigMap of keys stays when the hub's %s", async (_, leave) => {
    const cluster = side();
    cluster.keys.put({ metadata: { name: gpgKeysName }, data: { mine: 'M' } });
    const world = start({ cluster });
    world.hub.keys.put({ metadata: { name: gpgKeysName }, data: { a: 'A' } });
    await world.settled();
    expect(cluster.keys.objects.get(gpgKeysName)?.data).toEqual({ a: 'A' });
    await leaving(world, () => leave(world.hub));
    const left = cluster.keys.objects.get(gpgKeysName);
    expect(left?.data).toEqual({ mine: 'M' });
    expect(left?.metadata.annotations ?? {}).toEqual({});
  });

  test('an agent that deletes keys deletes the ConfigMap with the one of the hub, and not because of a label', async () => {
    for (const isDeleted of [true, false]) {
      const cluster = side();
      cluster.keys.put({ metadata: { name: gpgKeysName }, data: {} });
      const world = start({ cluster, deletesKeys: true });
      world.hub.keys.put({ metadata: { name: gpgKeysName }, data: { a: 'A' } });
      await world.settled();
      await leaving(world, () =>
        isDeleted
          ? world.hub.keys.remove(gpgKeysName)
          : world.hub.keys.edit(gpgKeysName, { metadata: { labels: { [skipSyncLabel]: 'true' } } }),
      );
      expect(cluster.keys.objects.get(gpgKeysName)?.data).toEqual(isDeleted ? undefined : {});
    }
  });

  test('what the hub made goes, with or without the label on the hub', async () => {
    const world = start();
    world.hub.projects.put(project('team'));
    world.hub.secrets.put(secret('repo', 'hub'));
    await world.settled();
    await leaving(world, () => {
      world.hub.secrets.edit('repo', { metadata: { labels: { [skipSyncLabel]: 'true' } } });
      world.hub.projects.put(project('team', nothing));
    });
    expect(world.cluster.projects.objects.size + world.cluster.secrets.objects.size).toBe(0);
  });
});

describe('a copy with the label is left alone', () => {
  test.each([
    ['by the agent that made it', false],
    ['by the next one', true],
  ])('%s', async (_, restarts) => {
    const world = start();
    const { hub, cluster } = world;
    hub.projects.put(project('team'));
    hub.secrets.put(secret('repo', 'hub'));
    hub.keys.put({ metadata: { name: gpgKeysName }, data: { a: 'A' } });
    await world.settled();
    const label = { metadata: { labels: { [skipSyncLabel]: 'true' } } };
    cluster.secrets.edit('repo', { ...label, data: { password: base64('mine') } });
    cluster.keys.edit(gpgKeysName, { ...label, data: { a: null, mine: 'M' } });
    await world.settled();
    if (restarts) {
      world.stop();
    }
    const { settled } = restarts ? start(world) : world;
    hub.secrets.put(secret('repo', 'newer'));
    hub.keys.put({ metadata: { name: gpgKeysName }, data: { b: 'B' } });
    await settled();
    expect(cluster.secrets.objects.get('repo')?.data?.password).toBe(base64('mine'));
    expect(cluster.keys.objects.get(gpgKeysName)?.data).toEqual({ mine: 'M' });
    expect(cluster.keys.objects.get(gpgKeysName)?.metadata.labels).toEqual({ [skipSyncLabel]: 'true' });

    cluster.secrets.edit('repo', { metadata: { labels: { [skipSyncLabel]: null } } });
    cluster.keys.edit(gpgKeysName, { metadata: { labels: { [skipSyncLabel]: null } } });
    await settled();
    expect(cluster.secrets.objects.get('repo')?.data?.password, 'and in step without it').toBe(base64('newer'));
    expect(cluster.keys.objects.get(gpgKeysName)?.data).toEqual({ b: 'B' });
  });

  test('though its source goes', async () => {
    const { hub, cluster, settled } = start();
    hub.projects.put(project('team'));
    hub.secrets.put(secret('repo', 'hub'));
    await settled();
    cluster.secrets.edit('repo', { metadata: { labels: { [skipSyncLabel]: 'true' } } });
    await settled();
    hub.secrets.remove('repo');
    await settled();
    expect(cluster.secrets.objects.has('repo')).toBe(true);
  });
});

describe('a hub that was lost, and another one that has not everything', () => {
  const kept = (principalUid: string): Application => ({
    metadata: {
      name: 'shop',
      annotations: { [annotations.sourceUid]: 'u', [annotations.principalUid]: principalUid },
    },
    spec: { project: 'team', source: { repoURL: 'https://git.example.com/a' } },
  });

  async function lost() {
    const first = start({ principalUid: 'before' });
    const { cluster, applications } = first;
    first.hub.projects.put(project('team'));
    first.hub.projects.put(project('unused'));
    first.hub.secrets.put(secret('repo', 'hub'));
    applications.put(kept('before'));
    await first.settled();
    first.stop();
    const second = start({ cluster, applications, principalUid: 'after' });
    await second.settled();
    return second;
  }

  test('project and credentials stay while a kept Application names them', async () => {
    const { cluster, log } = await lost();
    expect([...cluster.projects.objects.keys()]).toEqual(['team']);
    expect([...cluster.secrets.objects.keys()]).toEqual(['repo']);
    expect(log.warnings.filter((one) => one.includes('needs it'))).toHaveLength(2);
  });

  test('they go when the Application goes', async () => {
    const { cluster, applications, settled } = await lost();
    applications.remove('shop');
    await settled();
    expect(cluster.projects.objects.size + cluster.secrets.objects.size).toBe(0);
  });

  test('they go when the new principal takes the Application over', async () => {
    const { cluster, applications, settled } = await lost();
    applications.edit('shop', kept('after'));
    await settled();
    expect(cluster.projects.objects.size + cluster.secrets.objects.size).toBe(0);
  });

  test('they are the new hub’s when it has them', async () => {
    const { hub, cluster, applications, settled } = await lost();
    hub.projects.put(project('team', { ...forOne, description: 'new' }), 'second');
    hub.secrets.put(secret('repo', 'new'), 'second');
    await settled();
    applications.remove('shop');
    await settled();
    expect(cluster.projects.objects.get('team')?.spec.description).toBe('new');
    expect(cluster.secrets.objects.get('repo')?.data?.password).toBe(base64('new'));
  });
});
