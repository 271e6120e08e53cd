import { expect, test } from 'vitest';
import type { Application } from '../../application.ts';
import { type AgentReport, type DeliveredRequests, operationMark, triggerMark } from './agent-report.ts';
import { EarlyReports } from './early-reports.ts';

const refresh = { 'argocd.argoproj.io/refresh': 'normal' };
const hydrate = { 'argocd.argoproj.io/hydrate': 'normal' };
const operation = { sync: { revision: 'x' } };
const underWay: DeliveredRequests = { operation: undefined, triggers: undefined };

function hub(fields: { annotations?: Record<string, string>; operation?: object; startedAt?: string }): Application {
  const { annotations = {}, startedAt } = fields;
  return {
    metadata: { name: 'app', namespace: 'agent', uid: 'u', annotations },
    spec: {},
    ...(fields.operation === undefined ? {} : { operation: fields.operation }),
    status: startedAt === undefined ? {} : { operationState: { phase: 'Succeeded', startedAt, operation } },
  } as Application;
}

/** The agent has received all that the hub's object asks for. */
const all = (object: Application): DeliveredRequests => ({
  operation: operationMark(object),
  triggers: triggerMark(object),
});

const report = (startedAt?: string, delivered = underWay): AgentReport => ({
  key: { kind: 'Application', namespace: 'agent', name: 'app' },
  message: {
    target: 'application',
    type: 'status-update',
    resourceId: 'r',
    eventId: 'e',
    object: hub({ ...(startedAt ? { startedAt } : {}) }),
  },
  delivered,
  terminating: false,
});

function lookedAtAgain(first: AgentReport, object: Application, later = object): DeliveredRequests | undefined {
  const early = new EarlyReports();
  early.came(first, object, () => false);
  const again = early.acknowledged('app_u', () => all(later))?.delivered;
  expect(
    early.acknowledged('app_u', () => all(later)),
    'only once',
  ).toBeUndefined();
  return again;
}

test('a report that overtakes the acknowledgement of a request is looked at once more', () => {
  const refreshed = hub({ annotations: refresh });
  expect(lookedAtAgain(report(), refreshed)).toEqual({ operation: undefined, triggers: triggerMark(refreshed) });
  const synced = hub({ operation, startedAt: '1' });
  expect(lookedAtAgain(report('2'), synced)).toEqual(all(synced));
});

test('a report is no answer to what users request after it came', () => {
  const first = hub({ annotations: refresh, operation, startedAt: '1' });
  const later = hub({
    annotations: { ...refresh, ...hydrate },
    operation: { sync: { revision: 'y' } },
    startedAt: '1',
  });
  const again = lookedAtAgain(report('2'), first, later);
  expect(again?.operation).not.toBe(operationMark(later));
  expect(again?.triggers).not.toBe(triggerMark(later));
});

test('an operation is done only if the report shows a run that was not known', () => {
  expect(lookedAtAgain(report('1'), hub({ operation, startedAt: '1' }))?.operation).toBeUndefined();
  expect(lookedAtAgain(report('2'), hub({ operation: { sync: {} } }))?.operation).toBeUndefined();
});

test('hydration is done only when a later report says so: agents of the original would drop the wish', () => {
  expect(lookedAtAgain(report(), hub({ annotations: { ...refresh, ...hydrate } }))?.triggers).toBeUndefined();
});

test('a report that came before an error is not looked at again: it would hide the error', () => {
  const refreshed = hub({ annotations: refresh });
  const early = new EarlyReports();
  early.came(report(), refreshed, () => false);
  const error = { resourceName: 'app', resourceNamespace: 'a', message: '504 Timeout' };
  const failed = { ...report().message, type: 'error', error } as unknown as AgentReport['message'];
  early.came({ ...report(), message: failed }, refreshed, () => false);
  expect(early.acknowledged('app_u', () => all(refreshed))).toBeUndefined();
});

test('nothing is looked at again when nothing was asked for, the agent had it, or not all is acknowledged', () => {
  const refreshed = hub({ annotations: refresh });
  const done = all(refreshed);
  expect(lookedAtAgain(report(), hub({}))).toBeUndefined();
  expect(lookedAtAgain(report(undefined, done), refreshed)).toBeUndefined();
  const early = new EarlyReports();
  early.came(report(), refreshed, () => false);
  expect(early.acknowledged('other_u', () => done)).toBeUndefined();
  expect(early.acknowledged('app_u', () => underWay)).toBeUndefined();
  early.came(report(undefined, done), refreshed, () => false);
  expect(
    early.acknowledged('app_u', () => done),
    'a later report is the answer',
  ).toBeUndefined();
  early.came(report(), refreshed, () => false);
  early.clear();
  expect(early.acknowledged('app_u', () => done)).toBeUndefined();
});

test('what a report was an answer to when it came, it still is: it may not be written yet when it is looked at again', () => {
  const synced = hub({ operation, startedAt: '1' });
  const half: DeliveredRequests = { operation: operationMark(synced), triggers: undefined };
  expect(lookedAtAgain(report('1', half), synced)).toEqual(all(synced));
  const other: DeliveredRequests = { operation: undefined, triggers: '|t' };
  expect(lookedAtAgain(report('1', other), hub({ annotations: { ...refresh, ...hydrate } }))?.triggers).toBe('|t');
});
