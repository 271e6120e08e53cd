import { expect, test } from 'vitest';
import { clustersOf, type HubApplication, slimApplication } from '../hub/index.ts';
import { pendingDeletions } from './drain.ts';

const at = '2030-01-01T00:00:00Z';
const owner = { apiVersion: 'argoproj.io/v1alpha1', kind: 'ApplicationSet', name: 'set', uid: 'u', controller: true };
const app = (name: string, metadata: Partial<HubApplication['metadata']> = {}): HubApplication => ({
  metadata: { namespace: 'argocd', name, ...metadata },
  spec: { destination: { name: 'c1' } },
});

test('Applications that are being deleted, or that an ApplicationSet will delete, need the agent; others do not', () => {
  const { controller: _, ...noController } = owner;
  const all = [
    app('kept'),
    app('set', { ownerReferences: [owner] }),
    app('going', { deletionTimestamp: at }),
    app('app-of-apps', { ownerReferences: [{ ...owner, kind: 'Application' }] }),
    app('named-only', { ownerReferences: [noController] }),
    app('both', { deletionTimestamp: at, ownerReferences: [owner] }),
  ];
  expect(pendingDeletions(all, true)).toEqual(['argocd/both', 'argocd/going', 'argocd/set']);
  expect(pendingDeletions([app('kept')], true)).toEqual([]);
});

test('an ApplicationSet follows the Placement only: when the GitOpsCluster is deleted, its Applications stay', () => {
  const all = [app('set', { ownerReferences: [owner] }), app('going', { deletionTimestamp: at })];
  expect(pendingDeletions(all, false)).toEqual(['argocd/going']);
});

test('an Application belongs to the cluster that its destination or its namespace names', () => {
  expect(clustersOf(app('a'))).toEqual(['c1', 'argocd']);
  expect(clustersOf({ metadata: { namespace: 'c2', name: 'a' } })).toEqual(['c2']);
  expect(clustersOf({ metadata: { namespace: 'c1', name: 'a' }, spec: { destination: { name: 'c1' } } })).toEqual([
    'c1',
  ]);
});

test('the other fields of an Application are dropped', () => {
  const full = {
    ...app('a', { resourceVersion: '7', annotations: { a: 'b' }, ownerReferences: [owner], deletionTimestamp: at }),
    status: { resources: [] },
  };
  expect(slimApplication(full)).toEqual(
    app('a', { resourceVersion: '7', ownerReferences: [owner], deletionTimestamp: at }),
  );
});
