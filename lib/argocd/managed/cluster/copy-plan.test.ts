import { expect, test } from 'vitest';
import { applyMergePatch } from '../../../base/index.ts';
import { type Application, annotations } from '../../index.ts';
import { newTriggers } from '../../triggers.ts';
import type { Plan } from '../../writing/plan.ts';
import { managedCopyDigest } from '../copy.ts';
import { type PlanOptions, planDeletion, planManagedApplication, planStuckDeletion } from './copy-plan.ts';
import { planOperation, planTermination } from './operation-plan.ts';

const options: PlanOptions = { namespace: 'argocd', mismatchPolicy: 'recreate', adoptionPolicy: 'always' };

const hub = (metadata: Partial<Application['metadata']> = {}, rest: Partial<Application> = {}): Application => ({
  metadata: {
    name: 'shop',
    namespace: 'agent',
    uid: 'hub-1',
    resourceVersion: '7',
    labels: { team: 'a' },
    annotations: { note: 'x', [annotations.lastApplied]: '{}', [annotations.notified]: 'hub' },
    ownerReferences: [{ uid: 'set' }],
    ...metadata,
  },
  spec: { project: 'default', destination: { server: 'https://proxy', name: 'agent', namespace: 'shop' } },
  status: { sync: { status: 'Synced' } },
  ...rest,
});

const plan = (
  object: Application,
  local?: Application,
  more: Partial<PlanOptions> = {},
  principalUid: string | undefined = 'p',
) => planManagedApplication({ object, principalUid }, local, { ...options, ...more });

function created(one: Plan): Application {
  expect(one.action).toBe('create');
  return (one as Plan & { action: 'create' }).object;
}

/** A copy as it is in the managed cluster. */
const copy = (change: Partial<Application['metadata']> = {}, rest: Partial<Application> = {}): Application => {
  const object = created(plan(hub()));
  return { ...object, ...rest, metadata: { ...object.metadata, uid: 'local-1', resourceVersion: '3', ...change } };
};

const annotated = (more: Record<string, string | undefined>) =>
  JSON.parse(JSON.stringify({ annotations: { ...copy().metadata.annotations, ...more } }));

test('a new copy: the hub decides, without what belongs to the hub alone', () => {
  expect(created(plan(hub({ finalizers: ['f', 'foregroundDeletion'] })))).toEqual({
    apiVersion: 'argoproj.io/v1alpha1',
    kind: 'Application',
    metadata: {
      name: 'shop',
      namespace: 'argocd',
      labels: { team: 'a' },
      annotations: { note: 'x', [annotations.sourceUid]: 'hub-1', [annotations.principalUid]: 'p' },
      finalizers: ['f'],
    },
    spec: { project: 'default', destination: { name: 'in-cluster', namespace: 'shop' } },
  });
});

test('a copy that is as it should be is left alone, and has the digest of its source', () => {
  expect(plan(hub(), copy())).toEqual({ action: 'none' });
  expect(managedCopyDigest(copy())).toBe(managedCopyDigest(hub()));
  expect(managedCopyDigest(hub({ labels: {} }))).not.toBe(managedCopyDigest(hub()));
});

test('an update writes the difference, and keeps what belongs to the managed cluster', () => {
  const local = copy({
    labels: { team: 'b', mine: 'y' },
    annotations: {
      ...copy().metadata.annotations,
      [annotations.refresh]: 'normal',
      [annotations.notified]: 'here',
      stray: '1',
    },
  });
  expect(plan(hub(), local)).toEqual({
    action: 'update',
    reason: 'changed',
    patch: { metadata: { uid: 'local-1', labels: { team: 'a', mine: null }, annotations: { stray: null } } },
  });
});

test.each<[string, Application, Application, Partial<PlanOptions>, string | undefined, string]>([
  ['another principal', hub({ uid: 'hub-2' }), copy(), {}, 'p2', 'principal-changed'],
  [
    'the first principal that names itself',
    hub({ uid: 'hub-2' }),
    copy(annotated({ [annotations.principalUid]: undefined })),
    {},
    'p',
    'principal-changed',
  ],
  ['an object that nobody manages', hub(), copy({ annotations: {} }), {}, 'p', 'adopted'],
  ['another source, upsert', hub({ uid: 'hub-2' }), copy(), { mismatchPolicy: 'upsert' }, 'p', 'source-replaced'],
  [
    'another source, upsert by annotation',
    hub({ uid: 'hub-2', annotations: { [annotations.mismatchPolicy]: 'upsert' } }),
    copy(),
    {},
    'p',
    'source-replaced',
  ],
])('taken over in place: %s', (_, object, local, more, principalUid, reason) => {
  const next = plan(object, local, more, principalUid);
  expect(next).toMatchObject({ action: 'update', reason });
  const after = applyMergePatch(local, (next as Plan & { action: 'update' }).patch) as Application;
  expect(after.metadata.annotations?.[annotations.sourceUid]).toBe(object.metadata.uid);
  expect(after.metadata.annotations?.[annotations.principalUid]).toBe(principalUid);
});

test('another source is replaced: deleted, waited for, made anew', () => {
  expect(plan(hub({ uid: 'hub-2' }), copy())).toEqual({ action: 'delete', uid: 'local-1', propagation: 'Background' });
  expect(plan(hub({ uid: 'hub-2' }), copy({ deletionTimestamp: 't' }))).toEqual({ action: 'wait' });
});

test('adoption may be refused, by setting or by the object', () => {
  const strange = copy({ annotations: {} });
  expect(plan(hub(), strange, { adoptionPolicy: 'never' })).toMatchObject({ action: 'refuse' });
  expect(plan(hub(), copy({ annotations: { [annotations.adoptionPolicy]: 'never' } }))).toMatchObject({
    action: 'refuse',
  });
  expect(
    plan(hub(), copy({ annotations: { [annotations.adoptionPolicy]: 'always' } }), { adoptionPolicy: 'never' }),
  ).toMatchObject({ action: 'update' });
  expect(plan(hub(), strange, { adoptionPolicy: 'never', ours: true })).toMatchObject({ action: 'update' });
});

test('a hub object that is being deleted takes its copy with it, and then hears that it is gone', () => {
  const leaving = hub({ deletionTimestamp: 't', finalizers: ['f'] });
  const local = copy({ finalizers: ['f'] });
  expect(plan(leaving, local)).toEqual({ action: 'delete', uid: 'local-1', propagation: 'Foreground' });
  expect(plan(leaving, copy({ finalizers: ['f', 'foregroundDeletion'], deletionTimestamp: 't' }))).toEqual({
    action: 'wait',
  });
  expect(plan(leaving)).toEqual({ action: 'gone', sourceUid: 'hub-1' });
});

test('no finalizer is added to what is being deleted, and the API server keeps its own', () => {
  const leaving = hub({ deletionTimestamp: 't', finalizers: ['new'] });
  const local = copy({ finalizers: ['old', 'foregroundDeletion'], deletionTimestamp: 't' });
  expect(plan(leaving, local)).toMatchObject({ patch: { metadata: { finalizers: ['foregroundDeletion'] } } });
});

test('a copy whose source is gone is not held by finalizers that nobody removes here', () => {
  const held = copy({
    finalizers: ['example.com/hold', 'resources-finalizer.argocd.argoproj.io', 'foregroundDeletion'],
  });
  const last = hub({ finalizers: ['example.com/hold', 'resources-finalizer.argocd.argoproj.io'] });
  const patch = { metadata: { finalizers: ['resources-finalizer.argocd.argoproj.io', 'foregroundDeletion'] } };
  expect(planDeletion('hub-1', held, last)).toMatchObject({ action: 'update', patch });
  const leaving = { ...held, metadata: { ...held.metadata, deletionTimestamp: 't' } };
  expect(planDeletion('hub-1', leaving, last)).toMatchObject({ action: 'update', patch });
});

test('defect 3: a deletion is of one incarnation', () => {
  expect(planDeletion('hub-1', copy(), hub())).toEqual({ action: 'delete', uid: 'local-1', propagation: 'Background' });
  expect(planDeletion('hub-0', copy(), hub())).toEqual({ action: 'none' });
  expect(planDeletion('', copy({ annotations: {} }), hub())).toEqual({ action: 'none' });
  expect(planDeletion('hub-1', undefined, hub())).toEqual({ action: 'none' });
});

const sync = { sync: { revision: '1' } };

test('an operation is set on the copy of its source only, when no other is there', () => {
  expect(planOperation(hub({}, { operation: sync }), copy())).toMatchObject({
    patch: { operation: sync, metadata: { uid: 'local-1', resourceVersion: '3' } },
  });
  const later = { action: 'later' };
  expect(planOperation(hub({ uid: 'hub-2' }, { operation: sync }), copy())).toEqual(later);
  expect(planOperation(hub({}, { operation: sync }), undefined)).toEqual(later);
  expect(planOperation(hub({}, { operation: sync }), copy({ deletionTimestamp: 't' }))).toEqual(later);
  expect(planOperation(hub({}, { operation: sync }), copy({}, { operation: { sync: {} } }))).toEqual(later);
  expect(planOperation(hub({}, { operation: sync }), copy({}, { operation: sync }))).toEqual({ action: 'none' });
  expect(planOperation(hub(), copy())).toEqual({ action: 'none' });
});

test.each(['Running', 'Terminating'])(
  'a state that says %s, without an operation, is nothing to begin with',
  (phase) => {
    const stale = copy({}, { status: { operationState: { phase } } });
    expect(planOperation(hub({}, { operation: sync }), stale)).toMatchObject({
      patch: { operation: sync, status: { operationState: null }, metadata: { resourceVersion: '3' } },
    });
  },
);

test('an operation whose first attempt had no answer is not made twice', () => {
  const ran = copy({}, { status: { operationState: { phase: 'Succeeded', operation: sync, startedAt: 't2' } } });
  expect(planOperation(hub({}, { operation: sync }), ran, { startedAt: 't1' })).toEqual({ action: 'none' });
  expect(planOperation(hub({}, { operation: sync }), ran, { startedAt: 't2' })).toMatchObject({ action: 'update' });
});

test('only what runs is terminated, and only while it does', () => {
  const running = copy({}, { operation: sync, status: { operationState: { phase: 'Running' } } });
  expect(planTermination(hub(), running)).toMatchObject({
    patch: { status: { operationState: { phase: 'Terminating' } }, metadata: { uid: 'local-1', resourceVersion: '3' } },
  });
  expect(planTermination(hub(), copy({}, { status: { operationState: { phase: 'Succeeded' } } }))).toEqual({
    action: 'none',
  });
  const seen = (startedAt: string) => ({ status: { operationState: { phase: 'Running', startedAt } } });
  const other = copy({}, { operation: sync, ...seen('t2') });
  expect(planTermination(hub({}, seen('t1')), other), 'the hub saw another one').toEqual({ action: 'none' });
  expect(planTermination(hub({}, seen('t2')), other)).toMatchObject({ action: 'update' });
});

test('a spec that was changed here is put back, and Argo CD made to look at it', () => {
  const strayed = copy({}, { spec: { ...copy().spec, project: 'other' } });
  expect(plan(hub(), strayed, { refreshes: true })).toMatchObject({
    refreshes: true,
    patch: { spec: { project: 'default' }, metadata: { annotations: { [annotations.refresh]: 'normal' } } },
  });
  const asked = copy(annotated({ [annotations.refresh]: 'hard' }), { spec: strayed.spec });
  expect(plan(hub(), asked, { refreshes: true }), 'it is asked to already').toMatchObject({
    refreshes: false,
    patch: { metadata: { uid: 'local-1' } },
  });
  expect(plan(hub(), copy({ labels: {} }), { refreshes: true })).not.toHaveProperty('refreshes');
  expect(plan(hub(), copy(), { refreshes: true })).toEqual({ action: 'none' });
});

test('the spec is put right while the copy is being deleted, because by it Argo CD finds what to remove', () => {
  const elsewhere = { ...copy().spec, destination: { name: 'in-cluster', namespace: 'other' } };
  const right = { spec: { destination: { namespace: 'shop' } } };
  expect(plan(hub(), copy({ deletionTimestamp: 't' }, { spec: elsewhere })), 'deleted here').toMatchObject({
    patch: right,
  });
  const leaving = hub({ deletionTimestamp: 't' });
  expect(plan(leaving, copy({ deletionTimestamp: 't' }, { spec: elsewhere })), 'deleted there').toMatchObject({
    patch: right,
  });
  expect(planDeletion('hub-1', copy({}, { spec: elsewhere }), hub(), hub()), 'no longer there').toMatchObject({
    patch: right,
  });
  expect(planDeletion('hub-1', copy(), hub(), hub())).toMatchObject({ action: 'delete' });
});

test('finalizers that Argo CD adds for delete hooks belong to its own cluster', () => {
  const hooks = ['pre-delete-finalizer.argocd.argoproj.io', 'post-delete-finalizer.argocd.argoproj.io/cleanup'];
  const local = copy({ finalizers: hooks });
  expect(plan(hub(), local)).toEqual({ action: 'none' });
  expect(managedCopyDigest(local)).toBe(managedCopyDigest(hub()));
  expect(created(plan(hub({ finalizers: hooks }))).metadata.finalizers).toBeUndefined();
});

test('a deletion that waits for Argo CD is brought to its notice; nothing else is', () => {
  const now = new Date('2026-01-02T03:04:05Z');
  const leaving = { deletionTimestamp: 't', finalizers: ['resources-finalizer.argocd.argoproj.io'] };
  expect(planStuckDeletion(copy(leaving), now)).toMatchObject({
    patch: { metadata: { uid: 'local-1', annotations: { [annotations.nudgedAt]: '2026-01-02T03:04:05.000Z' } } },
  });
  expect(planStuckDeletion(copy({ ...leaving, finalizers: ['somebody.example/else'] }), now)).toEqual({
    action: 'none',
  });
  expect(planStuckDeletion(copy({ finalizers: leaving.finalizers }), now)).toEqual({ action: 'none' });
  expect(planStuckDeletion(undefined, now)).toEqual({ action: 'none' });
});

test('what the managed cluster itself notes on its copy stays there, and only there', () => {
  const own = {
    [annotations.notified]: 'here',
    [annotations.nudgedAt]: 't',
    [annotations.deletionApproved]: 't',
    [annotations.hydrate]: 'normal',
    [annotations.hydrateTimestamp]: '1',
  };
  const local = copy({ annotations: { ...copy().metadata.annotations, ...own } });
  expect(plan(hub(), local)).toEqual({ action: 'none' });
  const noted = hub({ annotations: { [annotations.nudgedAt]: 'x', [annotations.release]: 'true' } });
  expect(created(plan(noted)).metadata.annotations).toEqual({
    [annotations.sourceUid]: 'hub-1',
    [annotations.principalUid]: 'p',
  });
});

test('a second request to look during a first is one of its own, by its timestamp', () => {
  const { refresh, refreshTimestamp, hydrate } = annotations;
  const asked = (more: Record<string, string>) => hub({ annotations: more });
  const first = asked({ [refresh]: 'normal', [refreshTimestamp]: '1', [hydrate]: 'normal' });
  expect(newTriggers(first, undefined)).toEqual(first.metadata.annotations);
  expect(newTriggers(first, first)).toEqual({});
  const second = asked({ [refresh]: 'normal', [refreshTimestamp]: '2', [hydrate]: 'normal' });
  expect(newTriggers(second, first)).toEqual({ [refresh]: 'normal', [refreshTimestamp]: '2' });
  expect(newTriggers(asked({ [refreshTimestamp]: '2' }), first), 'a timestamp alone asks for nothing').toEqual({});
});
