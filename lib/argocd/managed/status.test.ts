import { describe, expect, test } from 'vitest';
import { applyMergePatch } from '../../base/index.ts';
import { type Application, annotations } from '../index.ts';
import {
  planAgentError,
  planReport,
  planWarnings,
  type ReportContext,
  reportDigest,
  withoutPrincipalConditions,
} from './status.ts';

const settled: ReportContext = { operationDelivered: true, triggersDelivered: true, terminating: false };
const sync = { sync: { revision: '1' } };

const app = (rest: Partial<Application> = {}, own: Record<string, string> = {}): Application => ({
  metadata: { name: 'shop', uid: 'u', resourceVersion: '7', annotations: own },
  spec: {},
  ...rest,
});

test('writes the difference of the status and nothing else', () => {
  const hub = app({ status: { sync: { status: 'Synced' }, health: { status: 'Healthy' } } });
  const report = app({ spec: { project: 'other' }, status: { sync: { status: 'OutOfSync' } } }, { local: '1' });
  expect(planReport(hub, report, settled)).toEqual({
    metadata: { uid: 'u' },
    status: { sync: { status: 'OutOfSync' }, health: null },
  });
  expect(planReport(hub, hub, settled)).toBeUndefined();
});

test('a finished operation goes, a request that the agent has not got stays', () => {
  const hub = app({ operation: sync });
  expect(planReport(hub, app(), settled)).toEqual({ metadata: { uid: 'u', resourceVersion: '7' }, operation: null });
  expect(planReport(hub, app(), { ...settled, operationDelivered: false })).toBeUndefined();
});

test('an operation that began on the managed cluster is shown', () => {
  expect(planReport(app(), app({ operation: sync }), settled)).toMatchObject({ operation: sync });
});

test('a refresh that is done goes; one that is not delivered, or not done, stays', () => {
  const hub = app({}, { [annotations.refresh]: 'hard' });
  expect(planReport(hub, app(), settled)).toEqual({
    metadata: { uid: 'u', resourceVersion: '7', annotations: { [annotations.refresh]: null } },
  });
  expect(planReport(hub, app(), { ...settled, triggersDelivered: false })).toBeUndefined();
  expect(planReport(hub, hub, settled)).toBeUndefined();
  const dated = app({}, { [annotations.refresh]: 'hard', [annotations.refreshTimestamp]: '1' });
  const left = app({}, { [annotations.refreshTimestamp]: '1' });
  expect(planReport(dated, left, settled), 'its timestamp goes with it').toMatchObject({
    metadata: { annotations: { [annotations.refresh]: null, [annotations.refreshTimestamp]: null } },
  });
  expect(planReport(app(), hub, settled), 'a refresh of the managed cluster is its own').toBeUndefined();
});

test('a termination that is under way is not undone by an older report', () => {
  const hub = app({ status: { operationState: { phase: 'Terminating' } } });
  const report = app({ status: { operationState: { phase: 'Running' } } });
  expect(planReport(hub, report, { ...settled, terminating: true })).toBeUndefined();
  expect(planReport(hub, report, settled)).toMatchObject({ status: { operationState: { phase: 'Running' } } });
});

test('an error of the agent shows as a condition; the rest of the status stays', () => {
  const hub = app({ status: { sync: { status: 'Synced' }, conditions: [{ type: 'Other', message: 'm' }] } });
  const patch = planAgentError(hub, 'a1', 'spec is invalid', new Date('2026-01-02T03:04:05.678Z'));
  const after = applyMergePatch(hub, patch) as Application;
  expect(after.status).toEqual({
    sync: { status: 'Synced' },
    health: { status: 'Degraded' },
    conditions: [
      { type: 'Other', message: 'm' },
      { type: 'AgentError', message: 'agent a1: spec is invalid', lastTransitionTime: '2026-01-02T03:04:05Z' },
    ],
  });
  expect(planAgentError(after, 'a1', 'spec is invalid', new Date())).toBeUndefined();
});

test('a report counts as new when its source, status, operation or open triggers change', () => {
  const base = app({ status: { sync: { status: 'Synced' } } }, { [annotations.sourceUid]: 'h1' });
  const others = [
    app({ status: { sync: { status: 'Synced' } } }, { [annotations.sourceUid]: 'h2' }),
    app({ status: {} }, { [annotations.sourceUid]: 'h1' }),
    { ...base, operation: sync },
    app({ status: { sync: { status: 'Synced' } } }, { [annotations.sourceUid]: 'h1', [annotations.refresh]: 'normal' }),
  ];
  expect(new Set([base, ...others].map(reportDigest)).size).toBe(5);
  expect(reportDigest({ ...base, spec: { project: 'p' } })).toBe(reportDigest(base));
});

test("what the principal says on the hub stays through an agent's reports; what an agent says again keeps its time", () => {
  const notice = { type: 'AgentWarning', message: 'waiting', lastTransitionTime: 't1' };
  const error = { type: 'AgentError', message: 'refused', lastTransitionTime: 't1' };
  const hub = app({ status: { conditions: [error, notice] } });
  const again = app({ status: { conditions: [{ ...error, lastTransitionTime: 't2' }] } });
  expect(planReport(hub, again, settled)).toBeUndefined();
  const forged = app({ status: { conditions: [error, { ...notice, message: 'all is well' }] } });
  expect(planReport(hub, forged, settled), 'it is not the agent’s to say').toBeUndefined();
  const other = { type: 'ComparisonError', message: 'm', lastTransitionTime: 't3' };
  expect(planReport(hub, app({ status: { conditions: [other] } }), settled)).toMatchObject({
    status: { conditions: [other, notice] },
  });
  expect(planReport(hub, app({ status: {} }), settled)).toMatchObject({ status: { conditions: [notice] } });
  expect(planReport(app({ status: {} }), app({ status: { conditions: [] } }), settled)).toMatchObject({
    status: { conditions: [] },
  });
});

describe("the principal's own conditions", () => {
  const now = new Date('2026-01-02T03:04:05Z');
  const time = '2026-01-02T03:04:05Z';
  const none = { AgentWarning: undefined, AgentDisconnectedWarning: undefined };
  const other = { type: 'ComparisonError', message: 'm' };
  const disconnected = { type: 'AgentDisconnectedWarning', message: 'away', lastTransitionTime: 't1' };

  test('are written and removed together, for the object as it is; what stands there already is not moved', () => {
    const hub = app({ status: { conditions: [disconnected, other] } });
    const same = { ...none, AgentDisconnectedWarning: 'away' };
    expect(planWarnings(hub, same, now)).toBeUndefined();
    expect(planWarnings(hub, { ...same, AgentWarning: 'waiting' }, now)).toEqual({
      metadata: { uid: 'u', resourceVersion: '7' },
      status: {
        conditions: [disconnected, other, { type: 'AgentWarning', message: 'waiting', lastTransitionTime: time }],
      },
    });
    expect(planWarnings(hub, none, now)).toMatchObject({ status: { conditions: [other] } });
    expect(planWarnings(app({ status: { conditions: [disconnected] } }), none, now)).toMatchObject({
      status: { conditions: null },
    });
  });

  test('are no part of what an agent knows', () => {
    expect(withoutPrincipalConditions({ conditions: [disconnected, other] })).toEqual({ conditions: [other] });
    expect(withoutPrincipalConditions({ health: {}, conditions: [disconnected] })).toEqual({ health: {} });
    const status = { conditions: [other] };
    expect(withoutPrincipalConditions(status)).toBe(status);
    const hub = app({ status: { conditions: [disconnected] } });
    const forged = app({ status: { conditions: [{ ...disconnected, message: 'here' }] } });
    expect(planReport(hub, forged, settled)).toBeUndefined();
  });
});
