import { describe, expect, onTestFinished, test } from 'vitest';
import { until } from '../../base/testing.ts';
import { processRuntime } from '../../sync/index.ts';
import {
  type AppProject,
  annotations,
  HubSync,
  type ProjectMirrorPlace,
  ProjectMirrors,
  publishOwnAppProjects,
  specChecksum,
} from '../index.ts';
import { Memory, pair, summaries, testLog } from './testing.ts';

function start({
  hub = new Memory<AppProject>(),
  cluster = new Memory<AppProject>(),
  hasLeft = (_agent: string): boolean => false,
} = {}) {
  const log = testLog();
  const common = { namespace: 'argocd', runtime: processRuntime(log) };
  const joined = pair({
    autonomous: [
      new ProjectMirrors({ ...common, hasLeft, store: hub, runtime: { ...common.runtime, today: () => new Date(0) } }),
    ],
    agent: { mode: 'autonomous', kinds: [publishOwnAppProjects({ ...common, store: cluster })] },
  });
  return { hub, cluster, log, ...joined };
}

const project = (name: string, spec: AppProject['spec'] = { sourceRepos: ['*'] }): AppProject => ({
  metadata: { name },
  spec,
});

describe('a project of an autonomous agent', () => {
  test('of an agent that has left goes when somebody deletes it, whatever its finalizers; others keep theirs', async () => {
    const hub = new Memory<AppProject>();
    const held = (agent: string): AppProject => ({
      metadata: {
        name: `${agent}-team`,
        annotations: { [annotations.mirrorOf]: agent },
        finalizers: ['evil.example/hold'],
      },
      spec: { sourceRepos: ['*'] },
    });
    hub.put(held('gone'));
    hub.put({ metadata: { name: 'own', finalizers: ['hold'] }, spec: {} });
    const { settled } = start({ hub, hasLeft: (agent) => agent === 'gone' || agent === 'late' });
    await settled();
    hub.put(held('late'));
    hub.put(held('elsewhere'));
    for (const name of ['gone-team', 'late-team', 'elsewhere-team', 'own']) {
      hub.remove(name);
    }
    await settled();
    await until('they are gone', () => expect([...hub.objects.keys()]).toEqual(['own', 'elsewhere-team']));
  });

  test('a mirror that somebody else makes, of a project that the agent does not have, is deleted', async () => {
    const { hub, cluster, settled } = start();
    cluster.put(project('team'));
    await settled();
    const mirror = hub.objects.get('one-team') as AppProject;
    cluster.remove('team');
    await settled();
    expect(hub.objects.size).toBe(0);
    hub.put(mirror, 'of-another-principal');
    await settled();
    expect(hub.objects.size).toBe(0);
    const { [annotations.sourceUid]: _, ...marks } = mirror.metadata.annotations ?? {};
    hub.put({ ...mirror, metadata: { ...mirror.metadata, annotations: marks } }, 'of-yet-another-one');
    await settled();
    expect(hub.objects.size).toBe(0);
  });

  test('defect 13: is mirrored under a prefixed name for its own namespace and cluster, changed and removed', async () => {
    const { hub, cluster, settled } = start();
    cluster.put({
      metadata: {
        name: 'team',
        labels: { a: 'b' },
        annotations: { note: 'x', [annotations.lastApplied]: '{}', [annotations.sourceUid]: 'of-old' },
        ownerReferences: [{ kind: 'X', name: 'x', uid: 'y' }],
      },
      spec: {
        sourceRepos: ['*'],
        sourceNamespaces: ['*'],
        destinations: [
          { server: 'https://kubernetes.default.svc', namespace: 'x' },
          { name: 'in-cluster', namespace: 'y' },
        ],
      },
    });
    await settled();
    const mirror = hub.objects.get('one-team');
    expect(mirror?.spec).toEqual({
      sourceRepos: ['*'],
      sourceNamespaces: ['one'],
      destinations: [
        { name: 'one', namespace: 'x' },
        { name: 'one', namespace: 'y' },
      ],
    });
    // By labels it could inherit from a global project of the hub.
    expect(mirror?.metadata.labels).toEqual({});
    expect(mirror?.metadata).not.toHaveProperty('ownerReferences');
    expect(mirror?.metadata.annotations).toEqual({
      note: 'x',
      [annotations.sourceUid]: 'uid-team',
      [annotations.mirrorOf]: 'one',
      [annotations.mirrorChecksums]: expect.stringMatching(/^\S+ \S+$/),
      [annotations.mirrorDigests]: expect.stringMatching(/^\S+ \S+$/),
      [annotations.lastUpdated]: '1970-01-01T00:00:00Z',
    });
    cluster.edit('team', { spec: { sourceRepos: ['https://other'] } });
    await settled();
    expect(hub.objects.get('one-team')?.spec.sourceRepos).toEqual(['https://other']);
    cluster.remove('team');
    await settled();
    expect(hub.objects.size).toBe(0);
    expect(hub.writes).toEqual(['create', 'patch', 'delete']);
  });

  test('defect 16: that is there already is updated, also one that argocd-agent’s principal made', async () => {
    const hub = new Memory<AppProject>();
    hub.put({
      metadata: {
        name: 'one-team',
        annotations: { [annotations.sourceUid]: 'uid-team', [annotations.lastUpdated]: 'x' },
      },
      spec: { sourceRepos: ['old'], sourceNamespaces: ['one'] },
    });
    const { cluster, settled } = start({ hub });
    cluster.put(project('team'));
    await settled();
    expect(hub.objects.get('one-team')?.spec.sourceRepos).toEqual(['*']);
    expect(hub.objects.get('one-team')?.metadata.annotations?.[annotations.mirrorOf]).toBe('one');
    expect(hub.writes).toEqual(['patch']);
  });

  test('that is made again is changed in place, and the deletion of the old one does not hurt the new', async () => {
    const { hub, cluster, settled, principal } = start();
    cluster.put(project('team'));
    await settled();
    cluster.remove('team');
    cluster.put(project('team', { sourceRepos: ['new'] }), 'second');
    await settled();
    const object = { metadata: { name: 'team', uid: 'uid-team' }, spec: {} };
    principal.receive('one', { target: 'appproject', type: 'delete', resourceId: 'r', eventId: 'e', object });
    await settled();
    expect(hub.objects.get('one-team')).toMatchObject({
      metadata: { annotations: { [annotations.sourceUid]: 'second' } },
      spec: { sourceRepos: ['new'] },
    });
  });
});

describe('a mirror', () => {
  test('defect 6: is put back when somebody on the hub changes it, takes its marks or deletes it, also with finalizers', async () => {
    const { hub, cluster, settled } = start();
    cluster.put({
      ...project('team'),
      metadata: { name: 'team', finalizers: ['resources-finalizer.argocd.argoproj.io'] },
    });
    await settled();
    const created = hub.objects.get('one-team');
    expect(created?.metadata.finalizers).toHaveLength(1);
    hub.edit('one-team', { spec: { sourceRepos: ['mine'] }, metadata: { labels: { mine: 'x' } } });
    await settled();
    expect(hub.objects.get('one-team')?.spec).toEqual(created?.spec);
    expect(hub.objects.get('one-team')?.metadata.labels).toEqual({});
    hub.edit('one-team', {
      spec: { sourceNamespaces: ['*'] },
      metadata: { annotations: { [annotations.sourceUid]: null, [annotations.mirrorOf]: null } },
    });
    await settled();
    expect(hub.objects.get('one-team')?.spec).toEqual(created?.spec);
    expect(hub.objects.get('one-team')?.metadata.annotations?.[annotations.mirrorOf]).toBe('one');
    hub.remove('one-team');
    await settled();
    expect(hub.objects.get('one-team')?.metadata.deletionTimestamp).toBeUndefined();
    expect(hub.objects.get('one-team')?.spec).toEqual(created?.spec);
    cluster.edit('team', { metadata: { finalizers: null } });
    cluster.remove('team');
    await settled();
    expect(hub.objects.size).toBe(0);
  });

  test('defect 7: is protected from the start when its agent is expected', async () => {
    const first = start();
    first.cluster.put(project('team'));
    await first.settled();
    first.stop();
    const log = testLog();
    const mirrors = new ProjectMirrors({ store: first.hub, namespace: 'argocd', runtime: processRuntime(log) });
    const principal = new HubSync({ managed: [], autonomous: [mirrors], runtime: processRuntime(log) });
    const stop = new AbortController();
    principal.start(stop.signal);
    principal.expect('one', 'autonomous');
    first.hub.edit('one-team', { spec: { sourceRepos: ['mine'] } });
    await until(() => expect(first.hub.objects.get('one-team')?.spec.sourceRepos).toEqual(['*']));
    principal.forgetAgent('one');
    first.hub.remove('one-team');
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(first.hub.objects.size).toBe(0);
    stop.abort();
  });

  test('that lost its mark while the principal was away is its agent’s still, also when that has removed its project', async () => {
    const first = start();
    for (const name of ['kept', 'dropped']) {
      first.cluster.put(project(name));
    }
    await first.settled();
    first.stop();
    for (const name of ['kept', 'dropped']) {
      first.hub.edit(`one-${name}`, { metadata: { annotations: { [annotations.sourceUid]: null } } });
    }
    first.cluster.remove('dropped');
    await start(first).settled();
    expect([...first.hub.objects.keys()]).toEqual(['one-kept']);
    expect(first.hub.objects.get('one-kept')?.metadata.annotations?.[annotations.sourceUid]).toBe('uid-kept');
  });

  test('defect 13: is brought in step after any absence, at the cost of the difference', async () => {
    const first = start();
    for (const name of ['kept', 'changed', 'dropped', 'meddled', 'lost']) {
      first.cluster.put(project(name));
    }
    await first.settled();
    first.stop();
    first.cluster.edit('changed', { metadata: { annotations: { a: 'b' } } });
    first.cluster.remove('dropped');
    first.hub.edit('one-meddled', { spec: { sourceRepos: ['mine'] } });
    first.hub.remove('one-lost');
    const second = start(first);
    await second.settled();
    expect(summaries(second.sent).sort()).toEqual([
      'appproject delete dropped',
      'appproject spec-update changed',
      'appproject spec-update lost',
      'appproject spec-update meddled',
    ]);
    expect([...first.hub.objects.keys()].sort()).toEqual(['one-changed', 'one-kept', 'one-lost', 'one-meddled']);
    expect(first.hub.objects.get('one-meddled')?.spec.sourceRepos).toEqual(['*']);
    expect(first.hub.objects.get('one-changed')?.metadata.annotations).toMatchObject({ a: 'b' });
  });
});

describe('an agent can reach only its own mirrors', () => {
  const others: Record<string, AppProject> = {
    'the hub has a project of its own of that name': project('one-x'),
    'the project of that name on the hub is a mirror of agent one-x': {
      metadata: { name: 'one-x', annotations: { [annotations.sourceUid]: 'u', [annotations.mirrorOf]: 'one-x' } },
      spec: { sourceRepos: ['*'], sourceNamespaces: ['one'] },
    },
    'a name in common with a mirror of argocd-agent’s': {
      metadata: { name: 'one-x', annotations: { [annotations.sourceUid]: 'u' } },
      spec: { sourceRepos: ['*'], sourceNamespaces: ['one', 'two'] },
    },
  };

  test.each(Object.entries(others))('%s', async (why, other) => {
    const { hub, cluster, settled, warnings, log } = start();
    hub.put(other, 'u');
    cluster.put(project('x', { sourceRepos: ['evil'] }), 'u');
    await settled();
    cluster.edit('x', { spec: { sourceRepos: ['more-evil'] } });
    await settled();
    cluster.remove('x');
    await settled();
    expect(hub.objects.get('one-x')?.spec.sourceRepos).toEqual(['*']);
    expect(hub.writes).toEqual([]);
    expect(log.warnings).toHaveLength(1);
    expect(log.warnings[0]).toContain(why.startsWith('a name') ? 'a project of its own' : why);
    expect(warnings).toEqual([]);
  });

  test('and gets the name when it is free', async () => {
    const { hub, cluster, settled } = start();
    hub.put(project('one-x'));
    cluster.put(project('x', { sourceRepos: ['mine'] }));
    await settled();
    hub.remove('one-x');
    await settled();
    expect(hub.objects.get('one-x')?.spec.sourceRepos).toEqual(['mine']);
  });

  describe('defect 31: project b-c of agent a and project c of agent a-b come to one name: the longer agent name has it', () => {
    function agents() {
      const hub = new Memory<AppProject>();
      const log = testLog();
      const troubles: unknown[] = [];
      const onFailure = (trouble: unknown) => troubles.push(trouble);
      const mirrors = new ProjectMirrors({ store: hub, namespace: 'argocd', onFailure, runtime: processRuntime(log) });
      const stop = new AbortController();
      onTestFinished(() => stop.abort());
      mirrors.start(stop.signal);
      const send = (agent: string, name: string, type: 'create' | 'delete' = 'create') => {
        const object = { metadata: { name, uid: `${agent}/${name}` }, spec: { description: agent } };
        const message = { target: 'appproject', type, resourceId: name, eventId: `${agent}/${type}`, object } as const;
        mirrors.syncFor(agent).receive(message);
      };
      const shown = () => hub.objects.get('a-b-c')?.spec;
      return { hub, log, troubles, send, shown };
    }
    const message = 'the name a-b-c on the hub belongs to project c of agent a-b';

    test('also when the other agent came first, which receives the reason', async () => {
      const { hub, log, troubles, send, shown } = agents();
      send('a', 'b-c');
      await until(() => expect(shown()).toEqual({ description: 'a', sourceNamespaces: ['a'] }));
      send('a-b', 'c');
      await until(() => expect(shown()).toEqual({ description: 'a-b', sourceNamespaces: ['a-b'] }));
      await until(() => expect(troubles).toEqual([{ agent: 'a', kind: 'AppProject', name: 'b-c', message }]));
      expect(log.warnings).toEqual([`AppProject cannot be had here: ${message}`]);
      // What the other agent does to its own project does not concern the mirror any more.
      send('a', 'b-c', 'delete');
      hub.edit('a-b-c', { spec: { sourceNamespaces: ['a'] } });
      await until(() => expect(shown()).toEqual({ description: 'a-b', sourceNamespaces: ['a-b'] }));
      expect(hub.objects.get('a-b-c')?.metadata.annotations?.[annotations.mirrorOf]).toBe('a-b');
      expect(hub.writes).not.toContain('delete');
    });

    test('and when it goes, the other one has the name', async () => {
      const { troubles, send, shown } = agents();
      send('a-b', 'c');
      await until(() => expect(shown()).toMatchObject({ description: 'a-b' }));
      send('a', 'b-c');
      await until(() => expect(troubles).toEqual([{ agent: 'a', kind: 'AppProject', name: 'b-c', message }]));
      expect(shown()).toMatchObject({ description: 'a-b' });
      send('a-b', 'c', 'delete');
      await until(() => expect(shown()).toEqual({ description: 'a', sourceNamespaces: ['a'] }));
    });
  });

  test('a name that is too long is refused', async () => {
    const { cluster, hub, settled, log } = start();
    cluster.put(project('x'.repeat(250)));
    await settled();
    expect(hub.writes).toEqual([]);
    expect(log.warnings[0]).toContain('more than 253 characters');
  });
});

test('defect 14: what a Go agent would compare with its own project is the checksum of that, not of the mirror', async () => {
  const { hub, cluster, settled, principal } = start();
  const spec = { sourceRepos: ['*'], destinations: [{ server: 'https://kubernetes.default.svc', namespace: '*' }] };
  cluster.put(project('team', spec));
  await settled();
  const sent: unknown[] = [];
  principal.connected('one', 'autonomous', { send: (message) => sent.push(message) > 0, acknowledge: () => undefined });
  principal.receive('one', {
    target: 'resourceResync',
    type: 'request-resource-resync',
    resourceId: 'r',
    eventId: 'another',
    payload: {},
  });
  expect(sent).toMatchObject([
    { payload: { kind: 'AppProject', name: 'one-team', uid: 'uid-team', checksum: specChecksum(spec) } },
  ]);
  expect(hub.writes).toEqual(['create']);
});

test('a field of another form is refused with its path', async () => {
  const { cluster, hub, settled, log } = start();
  cluster.put(project('x', { roles: [{ name: 'r', policies: [1] }] }));
  await settled();
  expect(hub.writes).toEqual([]);
  expect(log.warnings[0]).toContain('spec.roles.0.policies.0: ');
});

describe('a mirror that is there already', () => {
  const old: AppProject = {
    metadata: { name: 'one-x', labels: { a: 'b' }, annotations: { [annotations.sourceUid]: 'uid-x' } },
    spec: {
      sourceRepos: ['*'],
      sourceNamespaces: ['one'],
      destinations: [{ name: 'one', server: '*', namespace: '*' }],
      roles: [
        {
          name: 'r',
          groups: ['attackers'],
          policies: [
            'p, proj:one-x:r, applications, *, one-x/*, allow',
            'p, proj:one-x:r, applications, sync, one-x/one/*, allow',
          ],
        },
      ],
    },
  };
  const roles = [{ name: 'r', policies: ['p, proj:one-x:r, applications, sync, one-x/one/*, allow'] }];

  function expecting(clusterOf: () => ProjectMirrorPlace['cluster']) {
    const hub = new Memory<AppProject>();
    hub.put(old);
    const runtime = processRuntime(testLog());
    const mirrors = new ProjectMirrors({ store: hub, namespace: 'argocd', clusterOf, runtime });
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    mirrors.start(stop.signal);
    mirrors.syncFor('one');
    return { hub, mirrors };
  }

  test('loses what gives rights before its agent connects', async () => {
    const { hub } = expecting(() => ({ name: 'one', server: 'https://one' }));
    await until(() =>
      expect(hub.objects.get('one-x')).toMatchObject({
        metadata: { labels: {} },
        spec: { destinations: [{ name: 'one', server: 'https://one', namespace: '*' }], roles },
      }),
    );
    expect(hub.writes).toEqual(['patch']);
  });

  test("follows the cluster's name and URL", async () => {
    let cluster: ProjectMirrorPlace['cluster'] = { name: 'one', server: 'https://one' };
    const { hub, mirrors } = expecting(() => cluster);
    cluster = { name: 'uno', server: 'https://uno' };
    mirrors.clusterChanged('one');
    await until(() =>
      expect(hub.objects.get('one-x')?.spec).toMatchObject({
        destinations: [{ name: 'uno', server: 'https://uno', namespace: '*' }],
        roles,
      }),
    );
  });

  test('is what its agent has, after the agent has connected, and the agent sends nothing when all restart', async () => {
    const hub = new Memory<AppProject>();
    hub.put(old);
    const cluster = new Memory<AppProject>();
    cluster.put(project('x', { destinations: [{ name: 'in-cluster', namespace: 'y' }] }));
    const first = start({ hub, cluster });
    await first.settled();
    expect(hub.objects.get('one-x')?.spec).toEqual({
      destinations: [{ name: 'one', namespace: 'y' }],
      sourceNamespaces: ['one'],
    });
    first.stop();
    const second = start(first);
    await second.settled();
    expect(summaries(second.sent)).toEqual([]);
  });
});
