import { expect, test } from 'vitest';
import { findCondition } from '../lib/kube/index.ts';
import { namesText } from './cluster-steps.ts';
import { nextStatus, type Outcome, runSteps } from './fleet.ts';
import { agentSubject, labelValue } from './names.ts';
import type { GitOpsCluster } from './resources.ts';
import { type ClusterSummary, failed, type StepContext, succeeded } from './steps.ts';

const summary: ClusterSummary = {
  clusters: ['a', 'b'],
  skipped: [],
  lost: [],
  pending: [],
  failed: { import: [], works: [], addOn: [] },
  available: ['a'],
  connected: ['a', 'b'],
  leaving: [],
  cleanedUp: 0,
};
const goc: GitOpsCluster = { metadata: { namespace: 'argocd', name: 'fleet', generation: 3 } };
const [monday, tuesday] = [new Date('2030-01-07T00:00:00Z'), new Date('2030-01-08T00:00:00Z')];
const good: Outcome[] = [
  { condition: 'ServerDiscovered', result: succeeded('Server at x:1') },
  { condition: 'AddonConfigured', result: succeeded('done') },
  { condition: 'ClustersReady', result: { status: 'False', reason: 'InProgress', message: '1 of 2 available' } },
  { condition: 'RemovedClustersCleanedUp', result: undefined },
];

test('Ready sums up whether the controller did its work, with how the clusters fare as its message', () => {
  const status = nextStatus(goc, good, { clusters: summary, now: monday });
  expect(status).toMatchObject({ observedGeneration: 3, clusters: 2, availableClusters: 1, connectedClusters: 2 });
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

test('nothing changes when nothing has changed', () => {
  const first = nextStatus(goc, good, { clusters: summary, now: monday });
  expect(nextStatus({ ...goc, status: first }, good, { clusters: summary, now: tuesday })).toEqual(first);
});

test('Ready names the first of what is wrong, and that there is more', () => {
  const bad: Outcome[] = [
    { condition: 'ServerDiscovered', result: failed('Server discovery failed: x', 'ServerNotDiscovered') },
    { condition: 'AddonConfigured', result: failed('Failed to configure addon') },
  ];
  const first = nextStatus(goc, good, { clusters: summary, now: monday });
  const status = nextStatus({ ...goc, status: first }, bad, { clusters: summary, now: tuesday });
  expect(findCondition(status.conditions, 'Ready')).toMatchObject({
    status: 'False',
    reason: 'ServerNotDiscovered',
    message: 'ServerDiscovered: Server discovery failed: x (and 1 more: AddonConfigured)',
    lastTransitionTime: '2030-01-08T00:00:00Z',
  });
});

test('the counts of before stay until every cluster has been looked at', () => {
  const before = nextStatus(goc, good, { clusters: summary, now: monday });
  const fresh = { ...summary, pending: ['a', 'b'], available: [], connected: [] };
  expect(nextStatus({ ...goc, status: before }, good, { clusters: fresh, now: tuesday })).toEqual(before);
});

test('a step that throws is a failed condition, and the others go on', async () => {
  const context = { signal: new AbortController().signal } as StepContext;
  const broken = { condition: 'A', purpose: 'do a', run: () => Promise.reject(new Error('no')) };
  const outcomes = await runSteps(
    [[broken], [{ condition: 'B', purpose: 'do b', run: () => succeeded('b') }]],
    context,
  );
  expect(outcomes).toEqual([
    { condition: 'A', result: failed('Failed to do a: no'), error: expect.any(Error) },
    { condition: 'B', result: succeeded('b') },
  ]);
});

test('names are listed in the form of the original', () => {
  expect(namesText(['a', 'b', 'c'])).toBe('[a b c]');
  expect(namesText(['a', 'b', 'c', 'd'])).toBe('[a b c]... (4 total)');
});

test('long names make valid and different label values', () => {
  const [x, y] = ['x'.repeat(80), `${'x'.repeat(79)}y`];
  expect(labelValue('short')).toBe('short');
  expect(labelValue(x)).toHaveLength(63);
  expect(labelValue(x)).not.toBe(labelValue(y));
});

test("an agent's subject is what OCM would request", () => {
  expect(agentSubject('c1')).toEqual({
    commonName: 'system:open-cluster-management:cluster:c1:addon:argocd-agent-addon:agent:argocd-agent-addon-agent',
    organizations: [
      'system:open-cluster-management:cluster:c1:addon:argocd-agent-addon',
      'system:open-cluster-management:addon:argocd-agent-addon',
    ],
  });
});
