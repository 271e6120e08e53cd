import { describe, expect, test } from 'vitest';
import { until } from '../../base/testing.ts';
import { processRuntime } from '../../sync/index.ts';
import {
  type AppProject,
  annotations,
  HubSync,
  ProjectMirrors,
  projectForHub,
  publishOwnAppProjects,
  specChecksum,
} from '../index.ts';
import { Memory, pair, summaries, testLog } from './testing.ts';

function start({ hub = new Memory<AppProject>(), cluster = new Memory<AppProject>() } = {}) {
  const log = testLog();
  const common = { namespace: 'argocd', runtime: processRuntime(log) };
  const joined = pair({
    autonomous: [
      new ProjectMirrors({ ...common, store: hub, runtime: { ...common.runtime, today: () => new Date(0) } }),
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
        { name: 'one', server: '*', namespace: 'x' },
        { name: 'one', server: '*', namespace: 'y' },
      ],
    });
    expect(mirror?.metadata.labels).toEqual({ a: 'b' });
    expect(mirror?.metadata).not.toHaveProperty('ownerReferences');
    expect(mirror?.metadata.annotations).toEqual({
      note: 'x',
      [annotations.sourceUid]: 'uid-team',
      [annotations.mirrorOf]: 'one',
      [annotations.mirrorChecksums]: expect.stringMatching(/^\S+ \S+$/),
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
    first.cluster.edit('changed', { metadata: { labels: { a: 'b' } } });
    first.cluster.remove('dropped');
    first.hub.edit('one-meddled', { spec: { sourceRepos: ['mine'] } });
    first.hub.remove('one-lost');
    const second = start(first);
    await second.settled();
    expect(summaries(second.sent).sort()).toEqual([
      'appproject create lost',
      'appproject delete dropped',
      'appproject spec-update changed',
      'appproject spec-update meddled',
    ]);
    expect([...first.hub.objects.keys()].sort()).toEqual(['one-changed', 'one-kept', 'one-lost', 'one-meddled']);
    expect(first.hub.objects.get('one-meddled')?.spec.sourceRepos).toEqual(['*']);
    expect(first.hub.objects.get('one-changed')?.metadata.labels).toEqual({ a: 'b' });
  });
});

describe('an agent can reach only its own mirrors', () => {
  const others: Record<string, AppProject> = {
    'the hub has a project of its own of that name': project('one-x'),
    "the project of that name on the hub is the mirror of agent one-x's": {
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

  test('defect 31: two agents whose names come together: the first has it, the second is refused and changes nothing', async () => {
    const hub = new Memory<AppProject>();
    const log = testLog();
    const troubles: unknown[] = [];
    const onFailure = (trouble: unknown) => troubles.push(trouble);
    const mirrors = new ProjectMirrors({ store: hub, namespace: 'argocd', onFailure, runtime: processRuntime(log) });
    const stop = new AbortController();
    mirrors.start(stop.signal);
    const tell = async (agent: string, name: string, sourceRepos: string[]) => {
      const object = { metadata: { name, uid: `${agent}/${name}` }, spec: { sourceRepos } };
      mirrors
        .syncFor(agent)
        .receive({ target: 'appproject', type: 'create', resourceId: name, eventId: agent, object });
      await new Promise((resolve) => setTimeout(resolve, 5));
    };
    await tell('a', 'b-c', ['first']);
    await until(() => expect(hub.objects.size).toBe(1));
    await tell('a-b', 'c', ['second']);
    await until(() => expect(troubles).toHaveLength(1));
    expect(hub.objects.get('a-b-c')?.spec).toEqual({ sourceRepos: ['first'], sourceNamespaces: ['a'] });
    expect(log.warnings).toEqual([
      "AppProject cannot be had here: the project of that name on the hub is the mirror of agent a's",
    ]);
    const message = "the project of that name on the hub is the mirror of agent a's";
    expect(troubles).toEqual([{ agent: 'a-b', kind: 'AppProject', name: 'c', message }]);
    hub.edit('a-b-c', { spec: { sourceRepos: ['mine'] } });
    await until(() => expect(hub.objects.get('a-b-c')?.spec.sourceRepos).toEqual(['first']));
    stop.abort();
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

test('role policies speak of the mirror', () => {
  const policies = [
    'p, proj:sample:read-only, applications, get, sample/*, allow',
    'p,proj:sample:read-only,logs,get,sample/x,allow',
    'p, proj:sample, exec, create, sample/*, allow',
    'p, proj:sample:read-only, applications, get, sample/ns/x, allow',
    'p, example-user, extensions, invoke, httpbin, allow',
    'p, proj:sample:differentrole, applications, get, sample/*, allow',
    'p, proj:diffproject:read-only, applications, get, sample/*, allow',
    'p, proj:sample:read-only, applications, get, other/*, allow',
    'p, proj:sample:read-only, clusters, get, sample/*, allow',
    'g, group, proj:sample:read-only',
  ];
  const roles = [{ name: 'read-only', groups: ['x'], policies }, 'nonsense'];
  const { spec } = projectForHub(project('sample', { roles }), 'agent');
  expect(spec.roles).toEqual([
    {
      name: 'read-only',
      groups: ['x'],
      policies: [
        'p, proj:agent-sample:read-only, applications, get, agent-sample/agent/*, allow',
        'p,proj:agent-sample:read-only,logs,get, agent-sample/agent/x,allow',
        'p, proj:sample, exec, create, agent-sample/agent/*, allow',
        'p, proj:agent-sample:read-only, applications, get, sample/ns/x, allow',
        ...policies.slice(4),
      ],
    },
    'nonsense',
  ]);
});
