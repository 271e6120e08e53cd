import { expect, onTestFinished, test, vi } from 'vitest';
import { FairTurns } from '../../base/index.ts';
import { until } from '../../base/testing.ts';
import { processRuntime } from '../../sync/index.ts';
import {
  type AppProject,
  annotations,
  HubSync,
  type Mapping,
  publishAppProjects,
  replicateAppProjects,
} from '../index.ts';
import { Lab, LabCluster } from '../testing/lab.ts';
import { Memory, pair, summaries, testLog } from './testing.ts';

function start(
  options: { mapping?: Mapping; sharesDefault?: boolean; hub?: Memory<AppProject>; managed?: Memory<AppProject> } = {},
) {
  const { mapping = 'destination', sharesDefault, hub = new Memory(), managed = new Memory() } = options;
  const log = testLog();
  const common = { namespace: 'argocd', runtime: processRuntime(log) };
  const joined = pair({
    managed: [
      publishAppProjects({
        ...common,
        store: hub,
        principalUid: 'p',
        mapping,
        ...(sharesDefault !== undefined && { sharesDefault }),
      }),
    ],
    agent: { mode: 'managed', kinds: [replicateAppProjects({ ...common, store: managed })] },
  });
  return { hub, managed, log, ...joined };
}

const project = (name: string, spec: AppProject['spec'] = specFor()): AppProject => ({ metadata: { name }, spec });
const specFor = (agent = 'one', repository = '*') => ({
  sourceRepos: [repository],
  destinations: [{ name: agent, namespace: '*' }],
});

test('a project that names the agent is made, changed and removed', async () => {
  const { hub, managed, settled } = start();
  hub.put(project('team'));
  await settled();
  expect(managed.objects.get('team')).toMatchObject({
    metadata: { annotations: { [annotations.sourceUid]: 'uid-team' } },
    spec: { destinations: [{ name: 'in-cluster', server: 'https://kubernetes.default.svc', namespace: '*' }] },
  });
  hub.put(project('team', specFor('one', 'https://other')));
  await settled();
  expect(managed.objects.get('team')?.spec.sourceRepos).toEqual(['https://other']);
  hub.put(project('team', specFor('two')));
  await settled();
  expect(managed.objects.has('team')).toBe(false);
  expect(managed.writes).toEqual(['create', 'patch', 'delete']);
});

test('others are left alone', async () => {
  const { hub, managed, settled } = start({ mapping: 'namespace' });
  hub.put(project('elsewhere', specFor('two')));
  hub.put(project('not-mine'));
  hub.put({
    metadata: { name: 'two-mirror', annotations: { [annotations.sourceUid]: 'u' } },
    spec: { ...specFor(), sourceNamespaces: ['two'] },
  });
  managed.put(project('local'));
  await settled();
  expect(managed.writes).toEqual([]);
});

const untouched = project('default', {
  sourceRepos: ['*'],
  destinations: [{ namespace: '*', server: '*' }],
  clusterResourceWhitelist: [{ group: '*', kind: '*' }],
});

test.each<[Parameters<typeof start>[0]]>([[{}], [{ mapping: 'namespace', sharesDefault: true }]])(
  "the hub's untouched default project reaches every agent, and takes over the one that is there: %o",
  async (options) => {
    const managed = new Memory<AppProject>();
    managed.put(project('default', { sourceRepos: [] }));
    const { hub, settled } = start({ ...options, managed });
    hub.put(untouched);
    await settled();
    expect(managed.writes).toEqual(['patch']);
    expect(managed.objects.get('default')?.spec.sourceRepos).toEqual(['*']);
  },
);

test('by namespace, the untouched default project reaches nobody: it admits no namespace', async () => {
  const { hub, managed, settled } = start({ mapping: 'namespace' });
  hub.put(untouched);
  await settled();
  expect(managed.writes).toEqual([]);
  hub.put({ ...untouched, spec: { ...untouched.spec, sourceNamespaces: ['one'] } });
  await settled();
  expect(managed.objects.has('default')).toBe(true);
});

test('defect 8: a hub project that was copied from another hub is no mirror', async () => {
  const { hub, managed, settled } = start();
  hub.put({ ...project('team'), metadata: { name: 'team', annotations: { [annotations.sourceUid]: 'other-hub' } } });
  await settled();
  expect(managed.objects.get('team')?.metadata.annotations).toEqual({ [annotations.sourceUid]: 'uid-team' });
});

test('labels and annotations are exactly the hub’s; owners stay there, and so does what kubectl noted', async () => {
  const { hub, managed, settled } = start();
  const metadata = {
    name: 'team',
    labels: { team: 'a' },
    annotations: { note: 'x', [annotations.lastApplied]: '{}' },
    finalizers: ['resources-finalizer.argocd.argoproj.io', 'foregroundDeletion'],
    ownerReferences: [{ kind: 'Secret', name: 'x', uid: 'y' }],
  };
  hub.put({ ...project('team'), metadata });
  await settled();
  const copy = managed.objects.get('team')?.metadata;
  expect(copy).toMatchObject({ labels: { team: 'a' }, finalizers: ['resources-finalizer.argocd.argoproj.io'] });
  expect(copy?.annotations).toEqual({ note: 'x', [annotations.sourceUid]: 'uid-team' });
  expect(copy).not.toHaveProperty('ownerReferences');
  managed.edit('team', { metadata: { labels: { mine: 'b' }, annotations: { note: null, mine: 'c' } } });
  await settled();
  expect(managed.objects.get('team')?.metadata.labels).toEqual({ team: 'a' });
  expect(managed.objects.get('team')?.metadata.annotations).toEqual({ note: 'x', [annotations.sourceUid]: 'uid-team' });
});

test('changes made on the managed cluster are put back, also its mark', async () => {
  const { hub, managed, settled } = start();
  hub.put(project('team'));
  await settled();
  managed.edit('team', {
    spec: { sourceRepos: ['mine'] },
    metadata: { annotations: { [annotations.sourceUid]: null } },
  });
  await settled();
  expect(managed.objects.get('team')).toMatchObject({
    metadata: { annotations: { [annotations.sourceUid]: 'uid-team' } },
    spec: { sourceRepos: ['*'] },
  });
  managed.remove('team');
  await settled();
  expect(managed.objects.has('team')).toBe(true);
});

test('what an API server makes of a project is not fought over', async () => {
  const { hub, managed, settled } = start();
  hub.put(project('team', { ...specFor(), unknownField: true }));
  const patch = managed.patch.bind(managed);
  managed.create = async (object) => {
    const { unknownField: _, ...spec } = object.spec;
    return Memory.prototype.create.call(managed, { ...object, spec }) as Promise<AppProject>;
  };
  managed.patch = async (ref, change) => patch(ref, JSON.parse(JSON.stringify({ ...change, spec: {} })));
  await settled();
  expect(managed.writes).toEqual(['create', 'patch']);
  managed.edit('team', { spec: { sourceRepos: ['mine'] } });
  await settled();
  expect(managed.writes).toEqual(['create', 'patch', 'patch']);
});

test('defect 47: a write that fails is repeated', async () => {
  const { hub, managed, settled } = start();
  managed.fail = 2;
  hub.put(project('team'));
  await settled();
  expect(managed.objects.has('team')).toBe(true);
});

test('a project that the API server refuses is told once, acknowledged, and tried again', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { hub, managed, settled, principal, log } = start();
  managed.fail = 3;
  managed.status = 422;
  hub.put(project('team'));
  await until(() => expect(principal.stats('one').pending).toBe(0));
  expect(managed.objects.has('team')).toBe(false);
  await vi.advanceTimersByTimeAsync(60_000);
  await settled();
  expect(managed.objects.has('team')).toBe(true);
  expect(log.warnings).toEqual(['AppProject cannot be had here: status 422']);
});

test('defect 53: a project that was deleted and made again while nobody could hear it is changed in place', async () => {
  const { hub, managed, settled, connect, disconnect } = start();
  hub.put(project('team'));
  await settled();
  const { uid } = managed.objects.get('team')?.metadata ?? {};
  disconnect();
  hub.remove('team');
  hub.put(project('team', specFor('one', 'https://new')), 'second');
  connect();
  await settled();
  expect(managed.objects.get('team')).toMatchObject({
    metadata: { uid, annotations: { [annotations.sourceUid]: 'second' } },
    spec: { sourceRepos: ['https://new'] },
  });
});

test('defect 14: after a restart of both sides nothing is sent or written that is in step, and what must go goes', async () => {
  const first = start();
  first.hub.put(project('kept'));
  first.hub.put(project('changed'));
  first.hub.put(project('dropped'));
  await first.settled();
  first.stop();
  first.hub.remove('dropped');
  first.hub.edit('changed', { metadata: { labels: { team: 'a' } } });
  first.managed.writes.length = 0;
  const second = start({ hub: first.hub, managed: first.managed });
  await second.settled();
  expect(summaries(second.sent).sort()).toEqual(['appproject delete dropped', 'appproject spec-update changed']);
  expect(first.managed.writes.sort()).toEqual(['delete', 'patch']);
  // What was found is protected before the hub has spoken of it.
  first.managed.edit('kept', { spec: { sourceRepos: ['mine'] } });
  await second.settled();
  expect(first.managed.objects.get('kept')?.spec.sourceRepos).toEqual(['*']);
});

test('a change made on a cluster while its agent was away is put back', async () => {
  const first = start();
  first.hub.put(project('team'));
  await first.settled();
  first.stop();
  first.managed.edit('team', { spec: { sourceRepos: ['mine'] } });
  await start({ hub: first.hub, managed: first.managed }).settled();
  expect(first.managed.objects.get('team')?.spec.sourceRepos).toEqual(['*']);
});

test('a reconnect sends only what changed meanwhile', async () => {
  const { hub, sent, settled, connect, disconnect } = start();
  for (let i = 0; i < 20; i++) {
    hub.put(project(`team-${i}`));
  }
  await settled();
  disconnect();
  hub.edit('team-3', { spec: { sourceRepos: ['https://new'] } });
  sent.length = 0;
  connect();
  await settled();
  expect(summaries(sent)).toEqual(['appproject spec-update team-3']);
  expect(sent).toHaveLength(1);
});

test('an agent that says only the checksum of a spec is told nothing that it has', async () => {
  const { hub, principal, sent, settled } = start();
  hub.put(project('team'));
  await settled();
  const update = sent.find((message) => message.target === 'appproject' && message.type === 'create');
  if (update?.target !== 'appproject') {
    throw new Error('nothing was sent');
  }
  const payload = { kind: 'AppProject', name: 'team', namespace: 'argocd', uid: 'uid-team' } as const;
  const { specChecksum } = await import('../index.ts');
  sent.length = 0;
  const say = (eventId: string, checksum: string) =>
    principal.receive('one', {
      target: 'resourceResync',
      type: 'request-update',
      resourceId: eventId,
      eventId,
      payload: { ...payload, checksum },
    });
  say('1', specChecksum(update.object.spec));
  expect(sent).toEqual([]);
  say('2', 'another');
  await settled();
  expect(summaries(sent)).toEqual(['appproject spec-update team']);
});

test('a project that the cluster refuses is acknowledged with the reason, for the people of the hub', async () => {
  const { hub, managed, refusals, settled } = start();
  managed.status = 422;
  managed.fail = 1;
  hub.put(project('team'));
  await settled();
  expect(refusals).toEqual(['AppProject team cannot be had here: status 422']);
  hub.put(project('other'));
  await settled();
  expect(refusals).toHaveLength(1);
});

test('a project that is too large goes to nobody, and the log says so once', async () => {
  const { hub, managed, log, settled } = start();
  hub.put(project('team'));
  await settled();
  expect(managed.objects.has('team')).toBe(true);
  const name = `{*,[!x]}`.repeat(500);
  hub.put(project('team', { destinations: Array.from({ length: 40 }, (_, i) => ({ name: `${name}${i}` })) }));
  await settled();
  expect(managed.objects.has('team')).toBe(false);
  expect(log.warnings.filter((one) => one.startsWith('AppProject goes to no agent'))).toHaveLength(1);
});

test('one change of a project is looked at for some agents in each turn of the event loop, and reaches all', async () => {
  const lab = new Lab();
  const store = new LabCluster('hub', lab.time, 'AppProject');
  const asked: string[] = [];
  const later: (() => void)[] = [];
  const most = Number.POSITIVE_INFINITY;
  const limits = { bytes: most, milliseconds: most, millisecondsPerPeer: most, restFactor: 0 };
  const turns = new FairTurns<object>({ ...limits, messages: 3, messagesPerPeer: most }, (run) => later.push(run));
  const runtime = { ...lab.common('p').runtime, turns };
  const publisher = publishAppProjects({
    namespace: 'argocd',
    store,
    principalUid: 'p',
    mapping: 'destination',
    clustersOf: (agent) => {
      asked.push(agent);
      return [];
    },
    runtime,
  });
  const sync = new HubSync({ managed: [publisher], runtime });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  sync.start(stop.signal);
  const sent: string[] = [];
  const agents = Array.from({ length: 10 }, (_, i) => `agent-${i}`);
  for (const agent of agents) {
    sync.connected(agent, 'managed', {
      send: (message) => {
        if (message.target === 'appproject') {
          sent.push(agent);
        } else {
          queueMicrotask(() => sync.acknowledged(agent, message));
        }
        return true;
      },
      acknowledge: () => undefined,
    });
  }
  await lab.run(60_000);
  store.objects.create({
    ...project('team', { destinations: [{ name: '*' }] }),
    metadata: { namespace: 'argocd', name: 'team' },
  });
  expect(new Set(asked).size).toBe(3);
  expect(sent).toEqual(agents.slice(0, 3));
  while (later.length > 0) {
    const before = new Set(asked).size;
    later.shift()?.();
    expect(new Set(asked).size).toBeLessThanOrEqual(before + 3);
  }
  expect(sent).toEqual(agents);
});
