import { expect, test } from 'vitest';
import type { ArgoObject } from '../pair/index.ts';
import { openProject } from './app-projects.ts';
import { generatedBy, newSet, setName } from './application-sets.ts';
import { type ChaosView, checkInvariants, type Invariant, type SeenAgent } from './invariants.ts';
import { Ledger, type RequestedOperation } from './ledger.ts';
import { findingsText, verdictText } from './verdict.ts';

// The checker of a run: it finds nothing where all is well, and names every fault that is put in on purpose.

const spec = (targetRevision: string) => ({
  project: 'default',
  source: { repoURL: 'https://git.example.com/repo.git', path: 'app', targetRevision },
  destination: { name: 'cluster1', namespace: 'default' },
});
const status = { sync: { status: 'Synced', revision: 'v1' }, health: { status: 'Healthy' } };

function object(name: string, uid: string, fields: Partial<ArgoObject> = {}, sourceUid?: string): ArgoObject {
  const annotations = sourceUid === undefined ? {} : { 'argocd.argoproj.io/source-uid': sourceUid };
  return { metadata: { name, uid, annotations }, spec: spec('v1'), status: structuredClone(status), ...fields };
}

const asked: RequestedOperation = {
  id: 'sync-1',
  agent: 'cluster1',
  name: 'web',
  isAccepted: true,
  isExcused: false,
  mayRunAgain: false,
};

interface Scene {
  readonly ledger: Ledger;
  readonly sets: Ledger;
  readonly projects: Ledger;
  readonly managed: SeenAgent & { onHub: ArgoObject[]; onCluster: ArgoObject[] };
  readonly autonomous: SeenAgent & { onHub: ArgoObject[]; onCluster: ArgoObject[] };
  view: { -readonly [Key in keyof ChaosView]: ChaosView[Key] };
}

/** A managed agent with Application `web` and those of an ApplicationSet, and an autonomous one with `shop`, all as it must be. */
function scene(): Scene {
  const [ledger, sets, projects] = [new Ledger(), new Ledger(), new Ledger()];
  const made = { ...newSet('cluster1'), metadata: { namespace: 'cluster1', name: setName, uid: 'set-uid' } };
  sets.want({ agent: 'cluster1', name: setName, uid: 'set-uid', spec: structuredClone(made.spec) });
  const generated = generatedBy(sets);
  const own = { ...spec('v1'), destination: { server: 'https://kubernetes.default.svc', namespace: 'default' } };
  ledger.want({ agent: 'cluster1', name: 'web', uid: 'web-1', spec: spec('v1') });
  ledger.want({ agent: 'cluster2', name: 'shop', uid: 'shop-1', spec: own });
  ledger.operations.push({ ...asked });
  const copy = { ...spec('v1'), destination: { name: 'in-cluster', namespace: 'default' } };
  const mirror = { ...own, project: 'cluster2-default', destination: { name: 'cluster2', namespace: 'default' } };
  const project = { metadata: { name: 'team-cluster1', uid: 'team-uid' }, spec: openProject('cluster1') };
  projects.want({ agent: 'cluster1', name: 'team-cluster1', uid: 'team-uid', spec: openProject('cluster1') });
  const agent = { holder: 'replica-1', isConnected: true };
  const managed = {
    ...agent,
    name: 'cluster1',
    mode: 'managed' as const,
    onHub: [object('web', 'web-1'), ...generated.map(({ name, spec: wanted }) => object(name, name, { spec: wanted }))],
    onCluster: [
      object('web', 'copy-1', { spec: copy }, 'web-1'),
      ...generated.map(({ name, spec: wanted }) =>
        object(name, `copy-${name}`, { spec: { ...wanted, destination: copy.destination } }, name),
      ),
    ],
  };
  const autonomous = {
    ...agent,
    name: 'cluster2',
    mode: 'autonomous' as const,
    onHub: [object('shop', 'mirror-1', { spec: mirror }, 'shop-1')],
    onCluster: [object('shop', 'shop-1', { spec: own })],
  };
  const view = {
    agents: [managed, autonomous],
    generated,
    sets: [made],
    projects: {
      onHub: [project],
      onClusters: new Map([['cluster1', [structuredClone(project)]]]),
    },
    runs: [{ agent: 'cluster1', name: 'web', id: 'sync-1' }],
    goneCopies: [],
    removedWorkloads: [],
    replicas: ['replica-1', 'replica-2'],
    running: 2,
    unhealthy: [],
    exits: [],
    memory: [{ name: 'principal1', mostBytes: 100, boundBytes: 100 }],
    failovers: [],
    both: { active: [object('web', 'web-1')], standby: [object('web', 'web-2')] },
    unanswered: [],
    wrongAnswers: [],
  };
  return { ledger, sets, projects, managed, autonomous, view };
}

test('nothing is found where all is well', () => {
  const { view, ...ledgers } = scene();
  expect(checkInvariants(ledgers, view)).toEqual([]);
  expect(verdictText({ seed: 7, findings: [], counts: [], quietSeconds: 1, traces: [] })).toContain(
    'Everything is as it must be',
  );
});

const only = <T>(items: readonly T[]) => items[0] as T;

const faults: readonly (readonly [what: string, put: (scene: Scene) => void, found: Invariant, says: RegExp])[] = [
  [
    'an edit is lost at its source',
    ({ ledger }) => ledger.want({ agent: 'cluster1', name: 'web', uid: 'web-1', spec: spec('v2') }),
    'lost',
    /cluster1\/web: an edit is lost on the hub: source .*"v2".* and .*"v1"/,
  ],
  ['an Application is lost', ({ managed }) => managed.onHub.shift(), 'lost', /cluster1\/web is not on the hub/],
  [
    'an Application was made anew',
    ({ autonomous }) => Object.assign(only(autonomous.onCluster).metadata, { uid: 'shop-2' }),
    'lost',
    /cluster2\/shop is another one on cluster2: shop-2 instead of shop-1/,
  ],
  [
    'an edit of an ApplicationSet is lost',
    ({ view }) => Object.assign(only(view.sets).spec, { generators: [] }),
    'lost',
    /ApplicationSet cluster1\/set: an edit is lost: generators/,
  ],
  ['an ApplicationSet is lost', ({ view }) => (view.sets = []), 'lost', /ApplicationSet cluster1\/set is undefined/],
  [
    'an ApplicationSet has not made an Application',
    ({ managed }) => managed.onHub.pop(),
    'lost',
    /cluster1\/set-2 is not on the hub/,
  ],
  [
    'a copy of what an ApplicationSet made was deleted in between',
    ({ view }) => (view.goneCopies = [{ agent: 'cluster1', name: 'set-1', uid: 'copy-0', sourceUid: 'set-1' }]),
    'taken',
    /copy set-1 \(copy-0\) was deleted while its source was wanted/,
  ],
  ['a copy is missing', ({ managed }) => managed.onCluster.shift(), 'specs', /cluster1\/web is not on cluster1/],
  ['a mirror is missing', ({ autonomous }) => autonomous.onHub.pop(), 'specs', /cluster2\/shop is not on the hub/],
  [
    'a copy has another spec',
    ({ managed }) => Object.assign(only(managed.onCluster).spec, { source: { path: 'meddled' } }),
    'specs',
    /cluster1\/web on cluster1: source .*meddled/,
  ],
  [
    'a mirror is for another cluster',
    ({ autonomous }) => Object.assign(only(autonomous.onHub).spec, { destination: { name: 'cluster1' } }),
    'specs',
    /cluster2\/shop on the hub: destination/,
  ],
  [
    'a copy is of another source',
    ({ managed }) => Object.assign(only(managed.onCluster).metadata, { annotations: {} }),
    'specs',
    /is the copy of undefined instead of web-1/,
  ],
  [
    'a copy is being deleted',
    ({ managed }) => Object.assign(only(managed.onCluster).metadata, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    'specs',
    /cluster1\/web on cluster1 is being deleted/,
  ],
  [
    'a status is old',
    ({ managed }) => Object.assign(only(managed.onHub).status ?? {}, { health: { status: 'Degraded' } }),
    'statuses',
    /cluster1\/web: health .*Degraded.*Healthy/,
  ],
  [
    'an operation is left on one side',
    ({ managed }) => Object.assign(only(managed.onHub), { operation: { sync: {} } }),
    'statuses',
    /cluster1\/web: operation/,
  ],
  [
    'a copy is there that nobody wants',
    ({ managed }) => managed.onCluster.push(object('old', 'old-1')),
    'foreign',
    /cluster1\/old is on cluster1 though nobody wants it/,
  ],
  [
    'an agent has the Application of another one',
    ({ autonomous }) => autonomous.onHub.push(object('web', 'web-2')),
    'foreign',
    /cluster2\/web is on the hub though nobody wants it/,
  ],
  ['a sync was not done', ({ view }) => (view.runs = []), 'operations', /sync sync-1 of cluster1\/web .* has not run/],
  ['a sync was done twice', ({ view }) => (view.runs = [...view.runs, ...view.runs]), 'twice', /has run 2 times/],
  [
    'a sync was done that nobody asked for',
    ({ view }) => (view.runs = [...view.runs, { agent: 'cluster1', name: 'web', id: 'sync-9' }]),
    'twice',
    /sync-9 .* nobody asked for it/,
  ],
  [
    'a copy was deleted in between',
    ({ view }) => (view.goneCopies = [{ agent: 'cluster1', name: 'web', uid: 'copy-0', sourceUid: 'web-1' }]),
    'taken',
    /copy web \(copy-0\) was deleted while its source was wanted/,
  ],
  [
    'a workload was removed with a copy whose source had no finalizer when it was deleted',
    ({ ledger, view }) => {
      const web = { agent: 'cluster1', name: 'web', uid: 'web-1', spec: spec('v1') };
      ledger.want({ ...web, cascades: true });
      ledger.want({ ...web, cascades: false });
      ledger.drop(only(ledger.of('cluster1')));
      ledger.workloads.follow(object('web', 'copy-1', {}, 'web-1'));
      view.removedWorkloads = [{ agent: 'cluster1', name: 'web', uid: 'copy-1', sourceUid: 'web-1' }];
    },
    'workloads',
    /cluster1: the workload of web \(copy-1, of web-1\) was removed unasked/,
  ],
  [
    'a workload was removed on another agent than the one that the Application left',
    ({ ledger, view }) => {
      ledger.drop({ agent: 'cluster1', name: 'web', uid: 'web-1', spec: spec('v1'), cascades: true });
      ledger.workloads.follow(object('web', 'copy-3', {}, 'web-1'));
      view.removedWorkloads = [{ agent: 'cluster3', name: 'web', uid: 'copy-3', sourceUid: 'web-1' }];
    },
    'workloads',
    /cluster3: the workload of web \(copy-3, of web-1\) was removed unasked/,
  ],
  [
    'the workload of what an ApplicationSet still makes was removed',
    ({ view }) =>
      (view.removedWorkloads = [{ agent: 'cluster1', name: 'set-1', uid: 'copy-set-1', sourceUid: 'set-1' }]),
    'workloads',
    /the workload of set-1 .* was removed unasked/,
  ],
  [
    'what users keep out is copied',
    ({ ledger }) => ledger.want({ agent: 'cluster1', name: 'web', uid: 'web-1', spec: spec('v1'), isKeptOut: true }),
    'foreign',
    /cluster1\/web is on cluster1 though users keep it out/,
  ],
  [
    'what users keep out has gone from the hub',
    ({ ledger, managed }) => {
      ledger.want({ agent: 'cluster1', name: 'web', uid: 'web-1', spec: spec('v1'), isKeptOut: true });
      managed.onHub.shift();
    },
    'lost',
    /cluster1\/web is not on the hub/,
  ],
  [
    'an edit of an AppProject is lost',
    ({ view }) => Object.assign(only(view.projects.onHub).spec, { sourceRepos: [] }),
    'lost',
    /AppProject team-cluster1: an edit is lost: sourceRepos/,
  ],
  [
    'an AppProject that is locked down still permits sources on its cluster',
    ({ projects, view }) => {
      const locked = { ...openProject('cluster1'), sourceRepos: [] };
      projects.want({ agent: 'cluster1', name: 'team-cluster1', uid: 'team-uid', spec: locked });
      Object.assign(only(view.projects.onHub).spec, locked);
    },
    'projects',
    /cluster1: AppProject team-cluster1 permits the sources \["\*"\] instead of \[\]/,
  ],
  [
    'an AppProject that names no destination is still on a cluster',
    ({ projects }) => {
      const locked = { ...openProject('cluster1'), destinations: [] };
      projects.want({ agent: 'cluster1', name: 'team-cluster1', uid: 'team-uid', spec: locked });
    },
    'projects',
    /cluster1: AppProject team-cluster1 is there/,
  ],
  [
    'an AppProject that is open is not on its cluster',
    ({ view }) => (view.projects = { ...view.projects, onClusters: new Map() }),
    'projects',
    /cluster1: AppProject team-cluster1 is not there/,
  ],
  [
    'a condition is left',
    ({ managed }) => Object.assign(only(managed.onHub).status ?? {}, { conditions: [{ type: 'AgentWarning' }] }),
    'conditions',
    /cluster1\/web has AgentWarning/,
  ],
  [
    'an agent is held by a replica that is gone',
    ({ view }) => (view.replicas = ['replica-2', 'replica-3']),
    'holds',
    /cluster1 is held by replica-1, which is no live replica/,
  ],
  ['a replica that is gone has a Lease', ({ view }) => (view.running = 1), 'holds', /2 replicas have Leases and 1 run/],
  [
    'an agent is not connected',
    ({ managed }) => Object.assign(managed, { isConnected: false }),
    'holds',
    /the Lease of cluster1 says that it is not connected/,
  ],
  ['a program is not well', ({ view }) => (view.unhealthy = ['principal1: 503']), 'healthy', /principal1: 503/],
  ['a program has ended', ({ view }) => (view.exits = ['agent ended with code 1']), 'exits', /ended with code 1/],
  [
    'a program takes too much memory',
    ({ view }) => (view.memory = [{ name: 'principal1', mostBytes: 2 ** 30, boundBytes: 2 ** 29 }]),
    'memory',
    /principal1 took 1024 MiB, and its bound is 512 MiB/,
  ],
  ['a failover lost something', ({ view }) => (view.failovers = ['cluster1/web: gone']), 'failovers', /web: gone/],
  [
    'the standby hub lacks an Application',
    ({ view }) => (view.both = { active: [object('web', 'web-1')], standby: [] }),
    'standby',
    /web is not on the standby hub/,
  ],
  [
    'the standby hub has another status',
    ({ view }) => Object.assign(view.both?.standby[0]?.status ?? {}, { health: { status: 'Degraded' } }),
    'standby',
    /web differs on the standby hub: health/,
  ],
  [
    'the standby hub has more',
    ({ view }) => (view.both = { active: [], standby: [object('web', 'web-1')] }),
    'standby',
    /web is on the standby hub alone/,
  ],
  ['live access does not answer', ({ view }) => (view.unanswered = ['for cluster1: 503']), 'live', /for cluster1: 503/],
  [
    'live access answers for another cluster',
    ({ view }) => (view.wrongAnswers = ['cluster1 was asked and cluster2 answered']),
    'live',
    /cluster2 answered/,
  ],
];

test.each(faults)('%s: the checker names it', (_, put, invariant, says) => {
  const stage = scene();
  put(stage);
  const findings = checkInvariants(stage, stage.view);
  const named = findings.filter((one) => one.invariant === invariant);
  expect(named.map(({ what }) => what).join('\n')).toMatch(says);
  const verdict = { seed: 7, findings, counts: [], quietSeconds: 1, traces: [] };
  expect(verdictText(verdict)).toMatch(says);
  expect(findingsText(verdict)).toMatch(says);
});

test('what users did themselves is no fault', () => {
  const { view, managed, ...ledgers } = scene();
  const { ledger } = ledgers;
  // The copy was deleted by a user: it may be made again and its sync repeated.
  ledger.meddle('cluster1', 'web', 'copy-0');
  view.goneCopies = [{ agent: 'cluster1', name: 'web', uid: 'copy-0', sourceUid: 'web-1' }];
  view.runs = [...view.runs, ...view.runs];
  expect(checkInvariants(ledgers, view)).toEqual([]);
  // The Application was deleted: its sync need not have happened, its copy goes with it.
  const web = ledger.find('cluster1', 'web');
  ledger.drop(web ?? { agent: '', name: '', uid: '', spec: {} });
  managed.onHub.shift();
  managed.onCluster.shift();
  view.runs = [];
  view.goneCopies = [
    { agent: 'cluster1', name: 'web', uid: 'copy-1', sourceUid: 'web-1' },
    // The ApplicationSet has lost that element.
    { agent: 'cluster1', name: 'set-3', uid: 'copy-3', sourceUid: 'set-3' },
  ];
  expect(checkInvariants(ledgers, view)).toEqual([]);
});

test('a sync whose request had no answer may have been lost, and runs at most once', () => {
  const { view, ...ledgers } = scene();
  const { ledger } = ledgers;
  ledger.operations[0] = { ...asked, isAccepted: false };
  view.runs = [];
  expect(checkInvariants(ledgers, view)).toEqual([]);
  view.runs = ['sync-1', 'sync-1'].map((id) => ({ agent: 'cluster1', name: 'web', id }));
  expect(checkInvariants(ledgers, view).map((one) => one.invariant)).toEqual(['twice']);
});
