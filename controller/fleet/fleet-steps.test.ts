import { expect, test } from 'vitest';
import { ApiError, findCondition } from '../../lib/kube/index.ts';
import {
  agentSubject,
  type FleetConditionType,
  type FleetReasons,
  type FleetStatus,
  failed,
  type GitOpsCluster,
  labelValue,
  namesText,
  succeeded,
} from '../hub/index.ts';
import type { ClusterSummary } from '../ownership/index.ts';
import { FleetEvents } from './fleet-events.ts';
import { nextStatus, writeStatus } from './fleet-status.ts';
import { judgePrincipal } from './principal-step.ts';
import { runStep, type StepOutcome } from './run-step.ts';
import { summarySteps } from './summary-steps.ts';

const summary: ClusterSummary = {
  clusters: ['a', 'b'],
  skipped: [],
  lost: [],
  pending: [],
  failed: { import: [], works: [], addOn: [] },
  enrolled: ['a', 'b'],
  available: ['a'],
  connected: ['a', 'b'],
  failing: [],
  detaching: [],
  unseenDetaching: [],
  cleanedUp: 0,
};
const known = { summary, selection: { known: true, clusters: new Set(['a', 'b']) } } as const;
const goc: GitOpsCluster = { metadata: { namespace: 'argocd', name: 'fleet', generation: 3 } };
const [monday, tuesday] = [new Date('2030-01-07T00:00:00Z'), new Date('2030-01-08T00:00:00Z')];
const good: StepOutcome[] = [
  { condition: 'ServerDiscovered', result: succeeded('Server at x:1') },
  { condition: 'AddonConfigured', result: succeeded('done') },
  { condition: 'ClustersReady', result: { status: 'False', reason: 'InProgress', message: '1 of 2 available' } },
  { condition: 'RemovedClustersCleanedUp', result: undefined },
];

test('Ready sums up whether the controller did its work, with the health of the clusters as its message', () => {
  const status = nextStatus(goc, good, { ...known, now: monday });
  expect(status).toMatchObject({
    observedGeneration: 3,
    clusters: { selected: 2, enrolled: 2, available: 1, connected: 2, failing: 0, failingClusters: [] },
  });
  expect(status.conditions?.map(({ type }) => type)).toEqual([
    'ServerDiscovered',
    'AddonConfigured',
    'ClustersReady',
    'Ready',
  ]);
  expect(findCondition(status.conditions, 'Ready')).toMatchObject({
    status: 'True',
    message: "The hub's side works; 1 of 2 available",
    observedGeneration: 3,
  });
});

test('a condition that only another version of the controller has does not keep Ready from being True', () => {
  const foreign = { type: 'OfTheNextVersion', status: 'False', reason: 'Failed', message: 'no' } as const;
  const conditions = [{ ...foreign, lastTransitionTime: '2030-01-06T00:00:00Z' }];
  const status = nextStatus({ ...goc, status: { conditions } }, good, { ...known, now: monday });
  expect(findCondition(status.conditions, 'Ready')).toMatchObject({ status: 'True', reason: 'Success' });
  expect(findCondition(status.conditions, 'OfTheNextVersion')).toMatchObject(foreign);
});

test('an unchanged state yields an unchanged status', () => {
  const first = nextStatus(goc, good, { ...known, now: monday });
  expect(nextStatus({ ...goc, status: first }, good, { ...known, now: tuesday })).toEqual(first);
});

test('Ready names the first problem, and that there are more', () => {
  const bad: StepOutcome[] = [
    { condition: 'ServerDiscovered', result: failed('Server discovery failed: x', 'ServerNotDiscovered') },
    { condition: 'AddonConfigured', result: failed('Failed to configure addon') },
  ];
  const first = nextStatus(goc, good, { ...known, now: monday });
  const status = nextStatus({ ...goc, status: first }, bad, { ...known, now: tuesday });
  expect(findCondition(status.conditions, 'Ready')).toMatchObject({
    status: 'False',
    reason: 'ServerNotDiscovered',
    message: 'ServerDiscovered: Server discovery failed: x (and 1 more: AddonConfigured)',
    lastTransitionTime: '2030-01-08T00:00:00Z',
  });
});

const trouble = (cluster: string, since: string) => ({
  cluster,
  step: 'AgentConnected',
  reason: 'Disconnected',
  message: 'the agent is not connected',
  since,
});
const at = (second: number) => `2030-01-07T00:00:${String(second).padStart(2, '0')}Z`;

test('ocm defect M9: of many failing clusters the status lists ten, those failing longest, always in the same order', () => {
  const failing = Array.from({ length: 30 }, (_, i) => trouble(`c${30 - i}`, at(30 - i)));
  const of = (before: GitOpsCluster, now: Date) =>
    nextStatus(before, good, { ...known, summary: { ...summary, failing }, now });
  const status = of(goc, monday);
  expect(status.clusters).toMatchObject({ failing: 30 });
  const names = (status.clusters as FleetStatus).failingClusters?.map(({ name }) => name);
  expect(names).toEqual(['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'c9', 'c10']);
  expect(of({ ...goc, status }, tuesday)).toEqual(status);
});

test('a cluster that another GitOpsCluster owns is failing since it was first seen', () => {
  const lost = Array.from({ length: 15 }, (_, i) => ({ cluster: `c${i}`, owner: 'argocd/older' }));
  const of = (before: GitOpsCluster, now: Date) =>
    nextStatus(before, good, { ...known, summary: { ...summary, lost }, now });
  const first = of(goc, monday);
  expect(first.clusters).toMatchObject({ failing: 15 });
  expect((first.clusters as FleetStatus).failingClusters?.[0]).toEqual({
    name: 'c0',
    step: 'PlacementEvaluated',
    reason: 'Conflict',
    message: 'it already belongs to the older GitOpsCluster argocd/older, which keeps it',
    since: '2030-01-07T00:00:00Z',
  });
  expect(of({ ...goc, status: first }, tuesday)).toEqual(first);
});

test('messages in the list are no longer than the CRD allows', () => {
  const failing = [{ ...trouble('c', at(1)), message: 'x'.repeat(5_000) }];
  const { clusters } = nextStatus(goc, good, { ...known, summary: { ...summary, failing }, now: monday });
  expect((clusters as FleetStatus).failingClusters?.[0]?.message).toHaveLength(1024);
});

test('a number in `clusters`, and former fields, are removed', async () => {
  const old = { clusters: 7, availableClusters: 5, conditions: [] } as unknown as NonNullable<GitOpsCluster['status']>;
  const status = nextStatus({ ...goc, status: old }, good, { ...known, now: monday });
  expect(status.clusters).toMatchObject({ selected: 2 });
  const patches: object[] = [];
  const client = { mergePatch: async (_: unknown, __: unknown, patch: object) => patches.push(patch) };
  const deps = { client, signal: new AbortController().signal, logger: console } as never;
  await writeStatus(deps, { ...goc, status: old }, status);
  expect(patches).toMatchObject([{ status: { clusters: { selected: 2 }, availableClusters: null } }]);
});

test('a CRD of another version does not prevent the conditions from being written', async () => {
  const status = nextStatus(goc, good, { ...known, now: monday });
  const patches: { status: object }[] = [];
  const warnings: unknown[] = [];
  const client = {
    mergePatch: async (_: unknown, __: unknown, patch: { status: object }) => {
      if ('clusters' in patch.status) {
        throw new ApiError({ status: 422, message: 'status.clusters: Invalid value: "object"' });
      }
      patches.push(patch);
    },
  };
  const logger = { warn: (...line: unknown[]) => warnings.push(line) };
  const deps = { client, signal: new AbortController().signal, logger } as never;
  await writeStatus(deps, goc, status);
  expect(patches).toMatchObject([{ status: { conditions: status.conditions } }]);
  expect(warnings).toHaveLength(1);
});

const age = (seconds: number) => new Date(monday.getTime() + seconds * 1000);
const principalIs = (isReady: boolean, before: GitOpsCluster['status'], now: Date, service: object | null = {}) =>
  judgePrincipal({
    exposure: {
      ...noExposure,
      service:
        service === null
          ? undefined
          : { metadata: { namespace: 'argocd', name: 'argocd-agent-principal' }, spec: service },
      slices: [
        {
          metadata: { name: 's' },
          addressType: 'IPv4',
          endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: isReady } }],
        },
      ],
    },
    namespace: 'argocd',
    gitOpsCluster: { ...goc, ...(before && { status: before }) },
    now,
  });
const noExposure = {
  service: undefined,
  services: [],
  slices: [],
  nodes: [],
  ingresses: [],
  routes: [],
  tlsRoutes: [],
  gateways: [],
};

test('a principal without ready endpoints is no failure while it is replaced, and one after a minute', () => {
  const first = principalIs(false, undefined, age(0));
  expect(first).toEqual({
    result: {
      status: 'False',
      reason: 'InProgress',
      message: 'Service argocd/argocd-agent-principal has no ready endpoints: agents cannot connect',
    },
    renewAt: age(60).getTime(),
  });
  const status = nextStatus(goc, [{ condition: 'PrincipalAvailable', ...first }], { ...known, now: age(0) });
  expect(findCondition(status.conditions, 'Ready')).toMatchObject({ status: 'False' });
  expect(principalIs(false, status, age(59))).toMatchObject({ result: { reason: 'InProgress' } });
  expect(principalIs(false, status, age(60))).toMatchObject({
    result: { status: 'False', reason: 'Failed', message: expect.stringContaining('has no ready endpoints') },
  });
  expect(principalIs(true, status, age(61))).toMatchObject({
    result: { status: 'True', message: 'Service argocd/argocd-agent-principal has ready endpoints' },
  });
});

test('a principal that is replaced stays available for 20 seconds', () => {
  const status = (report: ReturnType<typeof principalIs>, seconds: number, before = goc) =>
    nextStatus(before, [{ condition: 'PrincipalAvailable', ...report }], { ...known, now: age(seconds) });
  const available = status(principalIs(true, undefined, age(0)), 0);
  const away = principalIs(false, available, age(100));
  expect(away).toMatchObject({ result: { status: 'True', reason: 'InProgress' }, renewAt: age(120).getTime() });
  const replaced = status(away, 100, { ...goc, status: available });
  expect(principalIs(false, replaced, age(119))).toEqual(away);
  expect(principalIs(false, replaced, age(120))).toMatchObject({ result: { status: 'False', reason: 'InProgress' } });
  expect(principalIs(true, replaced, age(119))).toMatchObject({ result: { status: 'True', reason: 'Success' } });
});

test('a principal outside this hub is not judged by endpoints', () => {
  expect(principalIs(false, undefined, age(0), null).result).toMatchObject({ status: 'True' });
  expect(principalIs(false, undefined, age(0), { type: 'ExternalName' }).result).toMatchObject({ status: 'True' });
});

const conditionOf = (name: string, of: Partial<ClusterSummary>, clusters = ['a', 'b']) => {
  const step = summarySteps.find(({ condition }) => condition === name);
  return step?.run({
    fleet: {
      selection: { known: true, clusters: new Set(clusters) },
      spec: { addOn: {} } as never,
      gitOpsCluster: goc,
    },
    found: { endpoint: undefined, authority: undefined },
    summary: { ...summary, ...of },
  });
};

test('ClustersReady turns from InProgress to Failed with the first failing cluster, and gives its reason', () => {
  expect(conditionOf('ClustersReady', {})).toEqual({
    status: 'False',
    reason: 'InProgress',
    message: '1 of 2 clusters available, 2 of 2 agents connected; waiting for [b]',
  });
  const failing = [
    { ...trouble('b', at(1)), message: 'the agent has not been connected to 127.0.0.1:8444 since noon' },
  ];
  expect(conditionOf('ClustersReady', { failing, available: [] })).toEqual({
    status: 'False',
    reason: 'Failed',
    message:
      '0 of 2 clusters available, 2 of 2 agents connected; failing: [b]: the agent has not been connected to 127.0.0.1:8444 since noon; waiting for [a]',
  });
});

test('a GitOpsCluster whose clusters belong to another one says so, and not that its Placement selects none', () => {
  const lost = ['a', 'b'].map((cluster) => ({ cluster, owner: 'argocd/older' }));
  const none = { clusters: [], enrolled: [], available: [], connected: [], lost };
  expect(conditionOf('ClustersReady', none)).toMatchObject({
    status: 'False',
    reason: 'Conflict',
    message: expect.stringContaining('GitOpsCluster argocd/older'),
  });
  for (const condition of ['ClustersImported', 'ManifestWorkCreated', 'AddonConfigured']) {
    expect(conditionOf(condition, none)).toMatchObject({
      reason: 'NoClusters',
      message: 'This GitOpsCluster enrolls none of the 2 selected clusters: see PlacementEvaluated',
    });
  }
  expect(conditionOf('ClustersReady', { ...none, lost: [] }, [])).toMatchObject({
    status: 'True',
    message: 'No managed clusters selected by placement',
  });
});

test('an Event is recorded when a condition fails, also when its message was there before; none about a conflict twice', () => {
  const recorded: string[] = [];
  const record = (_: unknown, reason: string) => recorded.push(reason);
  const events = new FleetEvents({ normal: record, warning: record });
  const of = (reason: FleetReasons[FleetConditionType], type: FleetConditionType = 'PrincipalAvailable') =>
    nextStatus(goc, [{ condition: type, result: failed('no endpoints', reason) }], { ...known, now: monday });
  const none = { skipped: [], lost: [] };
  events.record(goc, of('InProgress'), none, monday);
  expect(recorded).toEqual([]);
  events.record({ ...goc, status: of('InProgress') }, of('Failed'), none, tuesday);
  expect(recorded).toEqual(['PrincipalAvailableFailed']);
  events.record(goc, of('Conflict', 'PlacementEvaluated'), none, tuesday);
  expect(recorded).toHaveLength(1);
});

test('a step that throws yields a failed condition, and the other steps run', async () => {
  const { signal } = new AbortController();
  const outcomes = await Promise.all([
    runStep({ condition: 'ServerDiscovered', purpose: 'do a' }, signal, () => Promise.reject(new Error('no'))),
    runStep({ condition: 'CACertificateReady', purpose: 'do b' }, signal, () => ({ result: succeeded('b') })),
  ]);
  expect(outcomes).toEqual([
    { condition: 'ServerDiscovered', result: failed('Failed to do a: no'), error: expect.any(Error) },
    { condition: 'CACertificateReady', result: succeeded('b') },
  ]);
});

test('the findings of a step that fails later are kept', async () => {
  const { signal } = new AbortController();
  const error = new Error('no');
  const step = { condition: 'ServerDiscovered', purpose: 'do a' } as const;
  expect(await runStep(step, signal, () => ({ result: succeeded('a'), found: 7, error }))).toEqual({
    condition: 'ServerDiscovered',
    result: failed('Failed to do a: no'),
    found: 7,
    error,
  });
});

test('names are listed in argocd-pull-integration’s form', () => {
  expect(namesText(['a', 'b', 'c'])).toBe('[a b c]');
  expect(namesText(['a', 'b', 'c', 'd'])).toBe('[a b c]... (4 total)');
});

test('long names yield valid, distinct label values', () => {
  const [x, y] = ['x'.repeat(80), `${'x'.repeat(79)}y`];
  expect(labelValue('short')).toBe('short');
  expect(labelValue(x)).toHaveLength(63);
  expect(labelValue(x)).not.toBe(labelValue(y));
});

test("an agent's subject is the one that OCM would request", () => {
  expect(agentSubject('c1')).toEqual({
    commonName: 'system:open-cluster-management:cluster:c1:addon:argocd-agent-addon:agent:argocd-agent-addon-agent',
    organizations: [
      'system:open-cluster-management:cluster:c1:addon:argocd-agent-addon',
      'system:open-cluster-management:addon:argocd-agent-addon',
    ],
  });
});
