import { describe, expect, it } from 'vitest';
import { decisionGroups } from './decision-groups.ts';
import { type Candidates, schedule } from './schedule.ts';
import type { OcmManagedCluster, OcmPlacement } from './types.ts';

const cluster = (name: string, labels: Record<string, string> = {}, spec: OcmManagedCluster['spec'] = {}) => ({
  metadata: { name, labels: { 'cluster.open-cluster-management.io/clusterset': 'default', ...labels } },
  spec,
});
const placement = (spec: NonNullable<OcmPlacement['spec']>): OcmPlacement => ({
  metadata: { name: 'p', namespace: 'argocd' },
  spec,
});
const world = (clusters: OcmManagedCluster[], more: Partial<Candidates> = {}): Candidates => ({
  clusters,
  sets: [
    { metadata: { name: 'global' }, spec: { clusterSelector: { selectorType: 'LabelSelector', labelSelector: {} } } },
    { metadata: { name: 'default' }, spec: { clusterSelector: { selectorType: 'ExclusiveClusterSetLabel' } } },
  ],
  bindings: [{ metadata: { name: 'global', namespace: 'argocd' } }],
  current: new Set(),
  ...more,
});

describe('schedule', () => {
  it('selects every cluster of the bound sets, sorted by name', () => {
    const result = schedule(placement({}), world([cluster('b'), cluster('a')]));
    expect(result).toMatchObject({ clusters: ['a', 'b'], satisfied: true, reason: 'AllDecisionsScheduled' });
  });

  it('says why nothing is selected', () => {
    expect(schedule(placement({}), world([cluster('a')], { bindings: [] })).reason).toBe('NoManagedClusterSetBindings');
    expect(schedule(placement({ clusterSets: ['x'] }), world([cluster('a')])).reason).toBe('NoIntersection');
    expect(schedule(placement({}), world([])).reason).toBe('AllManagedClusterSetsEmpty');
    const production = { requiredClusterSelector: { labelSelector: { matchLabels: { env: 'production' } } } };
    expect(schedule(placement({ predicates: [production] }), world([cluster('a')])).reason).toBe(
      'NoManagedClusterMatched',
    );
  });

  it('keeps tainted clusters out unless they are tolerated', () => {
    const unreachable = { key: 'cluster.open-cluster-management.io/unreachable', effect: 'NoSelect' as const };
    const clusters = [cluster('a', {}, { taints: [unreachable] }), cluster('b')];
    expect(schedule(placement({}), world(clusters)).clusters).toEqual(['b']);
    const tolerations = [{ key: unreachable.key, operator: 'Exists' as const }];
    expect(schedule(placement({ tolerations }), world(clusters)).clusters).toEqual(['a', 'b']);
  });

  it('spares a selected cluster from NoSelectIfNew and prefers it under numberOfClusters', () => {
    const taint = { key: 'full', effect: 'NoSelectIfNew' as const };
    const clusters = [cluster('a'), cluster('b', {}, { taints: [taint] })];
    const result = schedule(placement({ numberOfClusters: 1 }), world(clusters, { current: new Set(['b']) }));
    expect(result.clusters).toEqual(['b']);
  });

  it('reports fewer clusters than wanted', () => {
    const result = schedule(placement({ numberOfClusters: 2 }), world([cluster('a')]));
    expect(result).toMatchObject({ clusters: ['a'], satisfied: false, reason: 'NotAllDecisionsScheduled' });
  });
});

describe('decision groups', () => {
  const ring = (value: string) => ({
    groupName: value,
    groupClusterSelector: { labelSelector: { matchLabels: { ring: value } } },
  });
  const clusters = [
    cluster('d'),
    cluster('b', { ring: 'canary' }),
    cluster('a', { ring: 'canary' }),
    cluster('c', { ring: 'early' }),
    cluster('e', { ring: 'early' }),
    cluster('unselected', { ring: 'canary' }),
  ];
  const selected = ['a', 'b', 'c', 'd', 'e'];
  const groups = (groupStrategy: object, of = selected) =>
    decisionGroups(placement({ decisionStrategy: { groupStrategy } }), of, clusters).map(
      ({ name, clusters: members }) => [name, ...members],
    );

  it('are one without name when nothing is said, also when nothing is selected', () => {
    expect(groups({})).toEqual([['', ...selected]]);
    expect(groups({}, [])).toEqual([['']]);
  });

  it('take what they ask for, the first that does, and leave the others to one without name', () => {
    const everything = { groupName: 'rest', groupClusterSelector: {} };
    expect(groups({ decisionGroups: [ring('canary'), ring('early')] })).toEqual([
      ['canary', 'a', 'b'],
      ['early', 'c', 'e'],
      ['', 'd'],
    ]);
    expect(groups({ decisionGroups: [ring('canary'), everything, ring('early')] })).toEqual([
      ['canary', 'a', 'b'],
      ['rest', 'c', 'd', 'e'],
    ]);
  });

  it('are cut to their size: a number, or a share of all that are selected', () => {
    expect(groups({ decisionGroups: [ring('canary')], clustersPerDecisionGroup: 1 })).toEqual([
      ['canary', 'a'],
      ['canary', 'b'],
      ['', 'c'],
      ['', 'd'],
      ['', 'e'],
    ]);
    expect(groups({ clustersPerDecisionGroup: '30%' })).toEqual([
      ['', 'a', 'b'],
      ['', 'c', 'd'],
      ['', 'e'],
    ]);
  });
});
