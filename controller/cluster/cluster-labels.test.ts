import { expect, test } from 'vitest';
import type { Secret } from '../../lib/kube/index.ts';
import { keys, type ManagedCluster } from '../hub/index.ts';
import { defaultClusterLabels } from '../spec/index.ts';
import { copiedLabels, copiedLabelsRecord, labelsCopied } from './cluster-labels.ts';

const everything = { labels: ['*'], claims: ['*'] };

function managed(labels: Record<string, string>, claims: Record<string, string> = {}): ManagedCluster {
  const clusterClaims = Object.entries(claims).map(([name, value]) => ({ name, value }));
  return { metadata: { name: 'c1', labels }, status: { clusterClaims } };
}

function secret(labels: Record<string, string>, copied: string): Secret {
  return { metadata: { name: 'cluster-c1', labels, annotations: { [keys.copiedLabels]: copied } } };
}

test('exact names and beginnings select labels and claims, each from their own list', () => {
  const cluster = managed(
    { env: 'prod', environment: 'x', 'topology.kubernetes.io/region': 'eu', 'topology.kubernetes.io.evil/zone': 'z' },
    { 'id.k8s.io': 'c1', env: 'claimed', 'platform.open-cluster-management.io': 'AWS' },
  );
  const selection = { labels: ['env', 'topology.kubernetes.io/*'], claims: ['platform.*'] };
  expect(copiedLabels(cluster, selection, undefined)).toEqual({
    labels: { env: 'prod', 'topology.kubernetes.io/region': 'eu', 'platform.open-cluster-management.io': 'AWS' },
    skipped: [],
  });
  expect(copiedLabels(cluster, { labels: [], claims: [] }, undefined)).toEqual({ labels: {}, skipped: [] });
  expect(copiedLabels(undefined, everything, undefined)).toEqual({ labels: {}, skipped: [] });
  expect(copiedLabels({ metadata: { name: 'c1' } }, everything, undefined)).toEqual({ labels: {}, skipped: [] });
});

test('a cluster cannot claim what the hub says: a label comes first, and the cluster set is copied from the label only', () => {
  const set = 'cluster.open-cluster-management.io/clusterset';
  expect(copiedLabels(managed({ [set]: 'dev' }, { [set]: 'prod' }), everything, undefined).labels).toEqual({
    [set]: 'dev',
  });
  expect(copiedLabels(managed({}, { [set]: 'prod' }), defaultClusterLabels, undefined).labels).toEqual({});
  expect(copiedLabels(managed({ [set]: 'dev', env: 'prod' }), defaultClusterLabels, undefined).labels).toEqual({
    [set]: 'dev',
  });
});

test('no wildcard selects what Argo CD or this controller reads', () => {
  const names = [
    ...['argocd.argoproj.io/secret-type', 'argocd.argoproj.io/instance', 'argoproj.io/x'],
    ...['argocd-agent.argoproj-labs.io/agent-name', 'app.kubernetes.io/managed-by', 'app.kubernetes.io/instance'],
    ...['apps.open-cluster-management.io/cluster-name', 'gitopscluster.apps.open-cluster-management.io/name'],
    'placement-name',
  ];
  const all = Object.fromEntries(names.map((name) => [name, 'stolen']));
  for (const selection of [everything, { labels: ['a*', 'argocd.*', 'p*'], claims: names }]) {
    expect(copiedLabels(managed(all, all), selection, undefined)).toEqual({ labels: {}, skipped: [] });
  }
});

test('what no label can be is skipped with its name and the reason', () => {
  const claims = {
    'version.example.com': 'v1.30+k3s1',
    ['n'.repeat(64)]: 'x',
    'a b': 'x',
    ['__proto__']: 'x',
    constructor: 'yes',
    note: 'two words',
  };
  expect(copiedLabels(managed({}, claims), everything, undefined)).toEqual({
    labels: { constructor: 'yes' },
    skipped: [
      'claim "__proto__": its name is no label key',
      'claim "a b": its name is no label key',
      `claim "${'n'.repeat(64)}": its name is no label key`,
      'claim note: "two words" is no label value',
      'claim version.example.com: "v1.30+k3s1" is no label value',
    ],
  });
  const odd = {
    metadata: { name: 'c1' },
    status: { clusterClaims: [{}, { name: 'env' }, { name: 'env', value: 'x' }] },
  };
  expect(copiedLabels(odd, everything, undefined)).toEqual({
    labels: { env: '' },
    skipped: ['claim "": its name is no label key'],
  });
});

test('a label that somebody else gave to the Secret stays; one that was copied is followed', () => {
  const cluster = managed({ env: 'prod', tier: 'gold', same: 'yes', zone: 'a' });
  const live = secret({ env: 'test', tier: 'silver', same: 'yes' }, 'tier');
  const copied = copiedLabels(cluster, everything, live);
  expect(copied).toEqual({
    labels: { tier: 'gold', zone: 'a' },
    skipped: ['label env: somebody else labelled the Secret env=test'],
  });
  expect(copiedLabelsRecord(copied)).toBe('tier,zone');
  // Nor by a claim of the same value.
  const claimed = managed({ env: 'prod' }, { env: 'test' });
  expect(copiedLabels(claimed, everything, live).labels).toEqual({});
});

test('number and message are bounded, and the same ones are left out each time', () => {
  const names = Array.from({ length: 40_000 }, (_, index) => `claim-${String(index).padStart(5, '0')}`);
  const of = (all: readonly string[]) => managed({}, Object.fromEntries(all.map((name) => [name, 'x'])));
  const { labels, skipped } = copiedLabels(of(names), everything, undefined);
  expect(Object.keys(labels)).toEqual(names.slice(0, 64));
  expect(skipped[0]).toBe('claim claim-00064: at most 64 labels are copied');
  expect(skipped).toHaveLength(1_000 - 64);
  const few = names.slice(0, 100);
  expect(copiedLabels(of(few.toReversed()), everything, undefined)).toEqual(
    copiedLabels(of(few), everything, undefined),
  );
  const long = Object.fromEntries(few.map((name) => [`${name}${'!'.repeat(200)}`, 'y'.repeat(1_024)]));
  const condition = labelsCopied(copiedLabels(managed({}, long), everything, undefined).skipped);
  expect(condition).toMatchObject({ type: 'ClusterLabelsCopied', status: 'False' });
  expect(condition?.message).toMatch(/^not copied to the cluster Secret: claim "claim-00000!+…: .*; and 95 more$/);
  expect(condition?.message.length).toBeLessThan(2_000);
  expect(labelsCopied([])).toBeUndefined();
});
