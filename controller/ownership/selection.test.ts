import { expect, test } from 'vitest';
import type { Placement, PlacementDecision } from '../hub/index.ts';
import { type Candidate, type ClusterSelection, decideOwner, readSelection } from './selection.ts';

const reference = { namespace: 'argocd', name: 'p' };
const placement = (status?: Placement['status'], annotations?: Record<string, string>): Placement => ({
  metadata: { ...reference, ...(annotations ? { annotations } : {}) },
  ...(status ? { status } : {}),
});
const page = (...clusters: string[]): PlacementDecision => ({
  metadata: { namespace: 'argocd', name: 'p-decision' },
  status: { decisions: clusters.map((clusterName) => ({ clusterName, reason: '' })) },
});
const known = (selection: ClusterSelection) => (selection.known ? [...selection.clusters] : selection.problem);

test('all pages count, duplicates once', () => {
  expect(known(readSelection(reference, placement(), [page('a', 'b'), page('c', 'a')]))).toEqual(['a', 'b', 'c']);
  expect(known(readSelection(reference, placement(), [page()]))).toEqual([]);
});

test('an incomplete set of decisions is unknown, not empty', () => {
  expect(known(readSelection(reference, undefined, []))).toBe('Placement argocd/p does not exist');
  expect(known(readSelection(reference, placement(), []))).toMatch(/no decisions yet/);
  expect(known(readSelection(reference, placement(), [page('a'), { metadata: { name: 'fresh' } }]))).toMatch(
    /being written/,
  );
  expect(known(readSelection(reference, placement({ numberOfSelectedClusters: 3 }), [page('a', 'b')]))).toMatch(
    /announces 3 clusters, its decisions name 2/,
  );
  const going = { metadata: { ...reference, deletionTimestamp: '2030-01-01T00:00:00Z' } };
  expect(known(readSelection(reference, going, [page('a')]))).toMatch(/being deleted/);
});

test('a page that is empty from the beginning never gets a status: the Placement says that it has no clusters', () => {
  const empty = { metadata: { name: 'p-decision-1' } };
  const groups = (clusterCount: number | undefined) => ({
    decisionGroups: [{ ...(clusterCount === undefined ? {} : { clusterCount }), decisions: ['p-decision-1'] }],
  });
  expect(known(readSelection(reference, placement(groups(0)), [empty]))).toEqual([]);
  expect(known(readSelection(reference, placement(groups(undefined)), [empty]))).toEqual([]);
  expect(known(readSelection(reference, placement(groups(2)), [empty]))).toMatch(/being written/);
  expect(known(readSelection(reference, placement(groups(0)), [empty, { metadata: { name: 'fresh' } }]))).toMatch(
    /being written/,
  );
});

test('an outdated number does not keep clusters selected, nor does that of a Placement without scheduling', () => {
  expect(known(readSelection(reference, placement({ numberOfSelectedClusters: 1 }), [page('a', 'b')]))).toEqual([
    'a',
    'b',
  ]);
  const manual = { 'cluster.open-cluster-management.io/experimental-scheduling-disable': 'true' };
  expect(known(readSelection(reference, placement({ numberOfSelectedClusters: 9 }, manual), [page('a')]))).toEqual([
    'a',
  ]);
});

const candidate = (key: string, createdAt: string, clusters: string[] | undefined, isDeleted = false): Candidate => ({
  key,
  createdAt,
  isDeleted,
  selection: clusters
    ? { known: true, clusters: new Set(clusters) }
    : { known: false, error: true, problem: 'cannot be told' },
});

test('the oldest GitOpsCluster that selects a cluster owns it', () => {
  const old = candidate('x/old', '2030-01-01T00:00:00Z', ['a']);
  const young = candidate('x/young', '2030-01-02T00:00:00Z', ['a', 'b']);
  expect(decideOwner('a', [young, old], undefined)).toEqual({ owner: 'x/old', losers: ['x/young'] });
  expect(decideOwner('a', [young, old], 'x/young').owner).toBe('x/old');
  expect(decideOwner('b', [young, old], undefined).owner).toBe('x/young');
  expect(decideOwner('c', [young, old], 'x/old').owner).toBeUndefined();
  const twin = candidate('x/a-twin', old.createdAt, ['a']);
  expect(decideOwner('a', [old, twin], undefined).owner).toBe('x/a-twin');
});

test('no GitOpsCluster takes a cluster from an owner in another namespace, however old it is', () => {
  const old = candidate('x/old', '2030-01-01T00:00:00Z', ['a']);
  const young = candidate('y/young', '2030-01-02T00:00:00Z', ['a']);
  const sister = candidate('y/sister', '2030-01-01T12:00:00Z', ['a']);
  expect(decideOwner('a', [young, old], undefined)).toEqual({ owner: 'x/old', losers: ['y/young'] });
  expect(decideOwner('a', [young, old], 'y/young')).toEqual({ owner: 'y/young', losers: ['x/old'] });
  expect(decideOwner('a', [young, old, sister], 'y/young').owner).toBe('y/sister');
  expect(decideOwner('a', [candidate('y/young', young.createdAt, []), old], 'y/young').owner).toBe('x/old');
});

test('a GitOpsCluster with an unknown selection keeps its clusters and gets no new ones', () => {
  const blind = candidate('x/blind', '2030-01-01T00:00:00Z', undefined);
  expect(decideOwner('a', [blind], 'x/blind').owner).toBe('x/blind');
  expect(decideOwner('a', [blind], undefined).owner).toBeUndefined();
});

test('a GitOpsCluster that is being deleted owns nothing', () => {
  const going = candidate('x/going', '2030-01-01T00:00:00Z', ['a'], true);
  const next = candidate('x/next', '2030-01-02T00:00:00Z', ['a']);
  expect(decideOwner('a', [going], 'x/going').owner).toBeUndefined();
  expect(decideOwner('a', [going, next], 'x/going').owner).toBe('x/next');
});
