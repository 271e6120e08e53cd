import { describe, expect, it } from 'vitest';
import { type Feedback, feedbackOf } from './feedback.ts';
import type { PullApplication, PullStatus, PullWork } from './resources.ts';
import { statusFor } from './status.ts';
import { payloadFor, workFor } from './work.ts';

const now = new Date('2026-01-02T03:04:05Z');
const operationKey = 'apps.open-cluster-management.io/operation';

function application(change: Partial<PullApplication> = {}): PullApplication {
  return {
    metadata: { namespace: 'argocd', name: 'guestbook', uid: '01234567' },
    spec: { source: { repoURL: 'r' }, destination: {} },
    ...change,
  };
}
const statusOf = (feedback: Feedback, status?: PullStatus, rest: Partial<PullApplication> = {}) =>
  statusFor(application({ ...(status ? { status } : {}), ...rest }), { feedback, cluster: 'c1' }, now);

/** A work with these feedback values. */
function workWith(values: { name: string; fieldValue: object }[], name = 'guestbook'): PullWork {
  const one = application();
  const target = { cluster: 'c1', namespace: 'argocd', name: 'guestbook' };
  const resourceMeta = { ordinal: 0, name, namespace: 'argocd' };
  const manifests = [{ resourceMeta, conditions: [], statusFeedback: { values } }];
  const status = { resourceStatus: { manifests } } as unknown as NonNullable<PullWork['status']>;
  return { ...workFor(one, target, payloadFor(one, target)), status };
}
const text = (name: string, string: string) => ({ name, fieldValue: { type: 'String', string } });

describe('feedback', () => {
  it('ocm defect M20: is read by name and type; values of another type are missing', () => {
    const work = workWith([
      text('healthStatus', 'Healthy'),
      { name: 'syncStatus', fieldValue: { type: 'Integer', integer: 1 } },
      { name: 'operationStatePhase', fieldValue: { type: 'String' } },
      { name: 'historyId', fieldValue: { type: 'Integer', integer: 3 } },
      { name: 'operationStateAutomated', fieldValue: { type: 'Boolean', boolean: true } },
      text('somethingElse', 'x'),
    ]);
    expect(feedbackOf(work)).toEqual({ healthStatus: 'Healthy', historyNumber: 3, operationStateAutomated: 'true' });
    expect(feedbackOf(undefined)).toEqual({});
  });

  it('of a copy with another name, from before a change, is not used', () => {
    expect(feedbackOf(workWith([text('healthStatus', 'Healthy')], 'before'))).toEqual({});
  });
});

describe('the status of the hub’s Application', () => {
  it('stays as it is while there is no feedback', () => {
    expect(statusOf({})).toEqual({});
    const status: PullStatus = { sync: { status: 'Synced' }, health: { status: 'Healthy' } };
    expect(statusOf({}, status)).toEqual(status);
  });

  it('ocm defect M21: is what the cluster reports, with messages, revision, last deployment and first condition', () => {
    const status = statusOf({
      healthStatus: 'Degraded',
      healthMessage: 'no pods',
      syncStatus: 'OutOfSync',
      syncRevision: 'abc',
      operationStatePhase: 'Failed',
      operationStateStartedAt: '2026-01-01T00:00:00Z',
      operationStateFinishedAt: '2026-01-01T00:00:09Z',
      operationStateMessage: 'one hook failed',
      operationStateRevision: 'abc',
      operationStateAutomated: 'true',
      historyNumber: 4,
      historyDeployedAt: '2025-12-31T00:00:00Z',
      historyRevision: 'aaa',
      conditionType: 'SyncError',
      conditionMessage: 'failed',
    });
    expect(status).toEqual({
      health: { status: 'Degraded', message: 'no pods' },
      sync: { status: 'OutOfSync', revision: 'abc' },
      operationState: {
        phase: 'Failed',
        startedAt: '2026-01-01T00:00:00Z',
        finishedAt: '2026-01-01T00:00:09Z',
        message: 'one hook failed',
        operation: { initiatedBy: { automated: true } },
        syncResult: { revision: 'abc' },
      },
      history: [{ id: 4, deployedAt: '2025-12-31T00:00:00Z', revision: 'aaa', source: { repoURL: 'r' } }],
      conditions: [
        { type: 'SyncError', message: 'managed cluster c1: failed', lastTransitionTime: '2026-01-02T03:04:05Z' },
      ],
    });
  });

  it('ocm defect M21: goes from Healthy to Healthy directly, and an unchanged report changes nothing', () => {
    const feedback: Feedback = {
      healthStatus: 'Healthy',
      syncStatus: 'Synced',
      conditionType: 'SyncError',
      conditionMessage: 'x',
      historyNumber: 1,
      historyDeployedAt: '2025-12-31T00:00:00Z',
    };
    const first = statusOf(feedback);
    expect(first.health).toEqual({ status: 'Healthy' });
    const later = new Date(now.getTime() + 60_000);
    expect(statusFor(application({ status: first }), { feedback, cluster: 'c1' }, later)).toEqual(first);
  });

  it('ocm defect M21: has no operationState without feedback about one', () => {
    expect(statusOf({ healthStatus: 'Healthy', syncStatus: 'Synced' }).operationState).toBeUndefined();
    expect(statusOf({ operationStatePhase: 'Succeeded' }).operationState).toBeUndefined();
  });

  it('keeps an operation that the cluster has not begun; the feedback is about an earlier one', () => {
    const operation = { sync: {}, info: [{ name: operationKey, value: 'two' }] };
    const operationState = { phase: 'Running', startedAt: '2026-01-02T00:00:00Z', operation };
    const reported: Feedback = {
      operationStatePhase: 'Succeeded',
      operationStateStartedAt: '2026-01-01T00:00:00Z',
      operationTaken: 'one',
    };
    expect(statusOf(reported, { operationState }, { operation }).operationState).toEqual(operationState);
    expect(statusOf({ ...reported, operationTaken: 'two' }, { operationState }, { operation }).operationState).toEqual({
      phase: 'Succeeded',
      startedAt: '2026-01-01T00:00:00Z',
      operation,
    });
  });

  it('keeps ten deployments, and starts over when the copy does', () => {
    let status: PullStatus = {};
    for (let id = 0; id < 13; id++) {
      status = statusOf({ historyNumber: id, historyDeployedAt: `2026-01-01T00:00:${10 + id}Z` }, status);
    }
    expect(status.history?.map(({ id }) => id)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    status = statusOf({ historyNumber: 0, historyDeployedAt: '2026-02-01T00:00:00Z' }, status);
    expect(status.history?.map(({ deployedAt }) => deployedAt)).toEqual(['2026-02-01T00:00:00Z']);
  });

  it('keeps the conditions of others, and removes its own when they no longer hold', () => {
    const others = { type: 'OrphanedResourceWarning', message: 'x' };
    const problem = statusFor(
      application({ status: { conditions: [others] } }),
      { feedback: {}, problem: 'there is no ManagedCluster c9' },
      now,
    );
    expect(problem.conditions).toEqual([
      others,
      { type: 'PullModelError', message: 'there is no ManagedCluster c9', lastTransitionTime: '2026-01-02T03:04:05Z' },
    ]);
    expect(statusFor(application({ status: problem }), { feedback: {} }, now).conditions).toEqual([others]);
  });
});
