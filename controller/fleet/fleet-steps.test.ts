import { expect, test } from 'vitest';
import { ApiError, findCondition } from '../../lib/kube/index.ts';
import {
  agentSubject,
  type FleetStatus,
  failed,
  type GitOpsCluster,
  labelValue,
  namesText,
  succeeded,
} from '../hub/index.ts';
import type { ClusterSummary } from '../ownership/index.ts';
import { nextStatus, writeStatus } from './fleet-status.ts';
import { runStep, type StepOutcome } from './run-step.ts';

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
    message: '1 of 2 available',
    observedGeneration: 3,
  });
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

test('a step that throws yields a failed condition, and the other steps run', async () => {
  const { signal } = new AbortController();
  const outcomes = await Promise.all([
    runStep({ condition: 'A', purpose: 'do a' }, signal, () => Promise.reject(new Error('no'))),
    runStep({ condition: 'B', purpose: 'do b' }, signal, () => ({ result: succeeded('b') })),
  ]);
  expect(outcomes).toEqual([
    { condition: 'A', result: failed('Failed to do a: no'), error: expect.any(Error) },
    { condition: 'B', result: succeeded('b') },
  ]);
});

test('the findings of a step that fails later are kept', async () => {
  const { signal } = new AbortController();
  const error = new Error('no');
  const step = { condition: 'A', purpose: 'do a' };
  expect(await runStep(step, signal, () => ({ result: succeeded('a'), found: 7, error }))).toEqual({
    condition: 'A',
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
