import { expect, test } from 'vitest';
import { type Application, annotations } from '../../index.ts';
import { planOwnOperation } from '../cluster/request-plan.ts';
import { desiredMirrorAfter, foreignChange, hasMirrorDrifted, planMirror, settled } from './mirror-plan.ts';

// The mark by which an agent knows that it has carried out an operation already.

const sync = { sync: { revision: 'v1' } };
const run = (startedAt: string) => ({ phase: 'Succeeded', startedAt, operation: sync });
const place = { agent: 'a', cluster: 'a' };
const labelsOf = (labels: Readonly<Record<string, string>>) => labels;

/** The agent's Application after a run that began then. */
const source = (startedAt: string): Application => ({
  metadata: { namespace: 'argocd', name: 'shop', uid: 'shop-1', resourceVersion: '5' },
  spec: { project: 'default' },
  status: { operationState: run(startedAt) },
});

/** What the hub shows after the report of that run, on a mirror that a user asked for the operation. */
function reported(startedAt: string, operationDelivered: boolean, marked: string): Application {
  const desired = { ...desiredMirrorAfter(source(startedAt), undefined), mirrorUid: 'mirror-1' };
  const mirror: Application = {
    metadata: {
      namespace: 'a',
      name: 'shop',
      uid: 'mirror-1',
      annotations: { [annotations.sourceUid]: 'shop-1', [annotations.reportedOperation]: marked },
    },
    spec: { project: 'a-default' },
    operation: sync,
  };
  const context = { operationDelivered, triggersDelivered: true, terminating: false };
  const plan = planMirror(desired, mirror, {
    name: 'shop',
    place,
    adoptionPolicy: 'never',
    labelsOf,
    now: new Date(0),
    report: { source: source(startedAt), context },
  });
  if (plan.action !== 'update') {
    throw new Error(`the plan is ${plan.action}`);
  }
  const patch = plan.patch as {
    metadata: { annotations: Record<string, string> };
    operation?: null;
    status?: Application['status'];
  };
  const { operation, ...others } = mirror;
  return {
    ...others,
    ...(patch.operation === null ? {} : { operation }),
    metadata: { ...mirror.metadata, annotations: { ...mirror.metadata.annotations, ...patch.metadata.annotations } },
    status: patch.status ?? {},
  } as Application;
}

test('an operation that has run is not run again by another principal that only sees it stand there', () => {
  const mirror = reported('10:00', false, '09:00');
  expect(mirror.operation).toEqual(sync);
  expect(mirror.status?.operationState).toMatchObject({ startedAt: '10:00' });
  expect(planOwnOperation(mirror, source('10:00'), { startedAt: '10:00' }, 'any')).toEqual({ action: 'none' });
});

test('an operation that is asked for again after the report of its last run is run again', () => {
  const { operation, ...done } = reported('10:00', true, '09:00');
  expect(operation).toBeUndefined();
  expect(done.metadata.annotations?.[annotations.reportedOperation]).toBe('10:00');
  const again = { ...done, operation: sync };
  expect(planOwnOperation(again, source('10:00'), { startedAt: '10:00' }, 'any')).toMatchObject({ action: 'update' });
});

test('the report of an older run is no answer to an operation that stands there', () => {
  const mirror = reported('09:00', false, '09:00');
  expect(planOwnOperation(mirror, source('09:00'), { startedAt: '09:00' }, 'any')).toMatchObject({ action: 'update' });
});

test('a mirror that another principal made with less gets the mark with the status', () => {
  const desired = { ...desiredMirrorAfter(source('10:00'), undefined), mirrorUid: 'mirror-1' };
  const metadata = {
    namespace: 'a',
    name: 'shop',
    uid: 'mirror-2',
    annotations: { [annotations.sourceUid]: 'shop-1', [annotations.reportedOperation]: '' },
  };
  const mirror: Application = { metadata, spec: { project: 'a-default' } };
  const options = { name: 'shop', place, adoptionPolicy: 'never', labelsOf, now: new Date(0) } as const;
  const plan = planMirror(desired, mirror, options);
  expect(plan).toMatchObject({
    action: 'update',
    patch: {
      metadata: { annotations: { [annotations.reportedOperation]: '10:00' } },
      status: { operationState: run('10:00') },
    },
  });
});

test('a mirror that another principal wrote with an older report gets the status with what is reverted', () => {
  const desired = { ...desiredMirrorAfter(source('10:00'), undefined), mirrorUid: 'mirror-1' };
  const notes = { [annotations.sourceUid]: 'shop-1', [annotations.reportedOperation]: '09:00' };
  const metadata = { namespace: 'a', name: 'shop', uid: 'mirror-1', annotations: notes };
  const mirror: Application = { metadata, spec: { project: 'other' }, status: { operationState: run('09:00') } };
  const options = { name: 'shop', place, adoptionPolicy: 'never', labelsOf, now: new Date(0) } as const;
  expect(planMirror(desired, mirror, options)).toMatchObject({
    patch: {
      metadata: { annotations: { [annotations.reportedOperation]: '10:00' } },
      spec: { project: 'a-default' },
      status: { operationState: { startedAt: '10:00' } },
    },
  });
  const asked = planMirror(desired, { ...mirror, operation: sync }, options) as { readonly patch: object };
  expect(asked.patch, 'a user asks for a sync, and has taken the status of the last one away').not.toHaveProperty(
    'status',
  );
});

test('what a mirror was before it became one is written again when its hub goes back to that time', () => {
  const options = { name: 'shop', place, adoptionPolicy: 'always', labelsOf, now: new Date(0) } as const;
  const own: Application = { metadata: { namespace: 'a', name: 'shop', uid: 'own-1' }, spec: { project: 'own' } };
  const recordIn = (patch: unknown) =>
    (patch as { metadata: { annotations: Record<string, string> } }).metadata.annotations[annotations.takenOver] ?? '';
  const desired = desiredMirrorAfter(source('t1'), undefined);
  const first = planMirror(desired, own, options);
  const record = first.action === 'update' ? recordIn(first.patch) : '';
  expect(record).toContain('own');
  const mirror = { ...own, metadata: { ...own.metadata, annotations: { [annotations.takenOver]: record } } };
  const again = planMirror(settled(desired, mirror), own, options);
  expect(again.action === 'update' && recordIn(again.patch)).toBe(record);
});

test('nobody changed a mirror of which the API server dropped a field, also when its cluster has another name now', () => {
  const wanted = { ...source('09:00'), spec: { project: 'default', newer: true } as Application['spec'] };
  const made = reported('09:00', false, '09:00');
  const mirror = {
    ...made,
    metadata: { ...made.metadata, annotations: { ...made.metadata.annotations, [annotations.lastUpdated]: '10:00' } },
    spec: { project: 'a-default', destination: { name: 'a' } },
  };
  const desired = settled(desiredMirrorAfter(wanted, undefined), mirror);
  expect(hasMirrorDrifted(mirror, desired, place)).toBe(false);
  const renamed = { ...place, cluster: 'b' };
  expect(hasMirrorDrifted(mirror, desired, renamed)).toBe(true);
  expect(foreignChange(mirror, desired, renamed)).toBeUndefined();
  const theirs = { ...mirror, spec: { ...mirror.spec, source: { path: 'theirs' } } };
  expect(foreignChange(theirs, desired, renamed)).toBe('changed');
});
