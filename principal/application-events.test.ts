import { expect, test } from 'vitest';
import type { Application } from '../lib/argocd/index.ts';
import type { InformerHandler, KubeObject } from '../lib/kube/index.ts';
import { ApplicationEvents } from './application-events.ts';

/** What is told when the status of an Application changes, with a clock that stands still. */
function start(options: { owner?: string; isResponsible?: boolean } = {}) {
  const { owner = 'one', isResponsible = true } = options;
  const told: string[] = [];
  const record = (type: string) => (object: KubeObject, reason: string, note: string) =>
    void told.push(`${type} ${object.kind} ${object.metadata.uid} ${reason}: ${note}`);
  const events = new ApplicationEvents({
    ownerOf: () => owner || undefined,
    isResponsible: () => isResponsible,
    events: { normal: record('Normal'), warning: record('Warning') },
    now: () => 0,
  });
  let handler: InformerHandler<KubeObject> = {};
  events.follow({
    subscribe: (given) => {
      handler = given;
      return () => undefined;
    },
  });
  let before = application({});
  return {
    told,
    /** The agent reports this. */
    reports: (status: NonNullable<Application['status']>, uid?: string) => {
      const now = application(status, uid);
      handler.updated?.(before as unknown as KubeObject, now as unknown as KubeObject);
      before = now;
      return told.splice(0);
    },
  };
}

const application = (status: NonNullable<Application['status']>, uid = 'u'): Application => ({
  metadata: { namespace: 'argocd', name: 'shop', uid },
  spec: { project: 'default' },
  status,
});
const automated = { initiatedBy: { automated: true }, sync: { revision: 'abc' } };

test('sync, health and operations of an Application are told as they change', () => {
  const { reports } = start();
  expect(reports({ sync: { status: 'OutOfSync' }, health: { status: 'Missing' } })).toEqual([
    'Normal Application u ResourceUpdated: Sync status changed: none -> OutOfSync, says agent one',
    'Normal Application u ResourceUpdated: Health status changed: none -> Missing, says agent one',
  ]);
  const rest = { sync: { status: 'OutOfSync' }, health: { status: 'Missing' } };
  const running = { phase: 'Running', startedAt: '1', operation: automated };
  expect(reports({ ...rest, operationState: running })).toEqual([
    'Normal Application u OperationStarted: Automated sync to abc started, says agent one',
  ]);
  expect(reports({ ...rest, operationState: { ...running, message: 'waits for hooks' } })).toEqual([]);
  const failed = { ...running, phase: 'Failed', finishedAt: '2', message: 'one or more objects failed' };
  expect(reports({ ...rest, operationState: failed })).toEqual([
    'Warning Application u OperationCompleted: Sync to abc ended: Failed, one or more objects failed, says agent one',
  ]);
  // Too short for a report of its own, and started by somebody on the hub.
  const done = { phase: 'Succeeded', startedAt: '3', finishedAt: '3', syncResult: { revision: 'def' } };
  expect(reports({ ...rest, sync: { status: 'Synced' }, operationState: done })).toEqual([
    'Normal Application u ResourceUpdated: Sync status changed: OutOfSync -> Synced, says agent one',
    'Normal Application u OperationCompleted: Sync to def ended: Succeeded, says agent one',
  ]);
  expect(reports({ ...rest, sync: { status: 'Synced' }, operationState: done, reconciledAt: '4' })).toEqual([]);
  expect(reports({ health: rest.health }), 'a status that is taken away is no state').toEqual([]);
});

test('nothing is told of an Application of nobody, of another replica, or in place of another one', () => {
  const synced = { sync: { status: 'Synced' } };
  expect(start({ owner: '' }).reports(synced)).toEqual([]);
  expect(start({ isResponsible: false }).reports(synced)).toEqual([]);
  expect(start().reports(synced, 'other')).toEqual([]);
});

test('odd values are no states', () => {
  const { reports } = start();
  const odd = { operationState: { startedAt: 3, finishedAt: {}, operation: null, syncResult: 'x' } };
  expect(reports(odd as never)).toEqual([]);
  expect(reports({ operationState: null } as never)).toEqual([]);
});

test('an agent that flaps without end costs a bounded number of Events', () => {
  const { reports } = start();
  const all = Array.from({ length: 1_000 }, (_, n) => reports({ sync: { status: `s${n}` } })).flat();
  expect(all).toHaveLength(100);
});
