import { expect, test } from 'vitest';
import { clustersOf, type HubApplication, slimApplication, urlsIn } from '../hub/index.ts';
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

test('or the one with the URL that is its destination, when that has no name', () => {
  const to = (destination: object) => ({ metadata: { namespace: 'argocd', name: 'a' }, spec: { destination } });
  expect(clustersOf(to({ server: 'https://p?agentName=c1' }))).toEqual(['https://p?agentName=c1', 'argocd']);
  expect(clustersOf(to({ name: '', server: 'https://c1' }))).toEqual(['https://c1', 'argocd']);
  expect(clustersOf(to({ name: 'c2', server: 'https://c1' }))).toEqual(['c2', 'argocd']);
  expect(clustersOf(to({ server: 'https://kubernetes.default.svc' }))).toEqual(['argocd']);
  const slim = slimApplication(to({ name: '', server: 'https://c1', namespace: 'shop' }));
  expect(clustersOf(slim)).toEqual(['https://c1', 'argocd']);
});

test('the URL of a cluster is that of its cluster Secret, as Argo CD reads it', () => {
  const secret = (type: string) => ({
    metadata: { name: 's', labels: { 'argocd.argoproj.io/secret-type': type } },
    data: { server: Buffer.from('https://p?agentName=c1/').toString('base64') },
  });
  expect([urlsIn(secret('cluster')), urlsIn(secret('repository'))]).toEqual([['https://p?agentName=c1'], []]);
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
