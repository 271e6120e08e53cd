import { describe, expect, it } from 'vitest';
import type { Application } from '../../lib/argocd/index.ts';
import { applyMergePatch } from '../../lib/base/index.ts';
import { beginOperation, compare, endOperation, isOperating, report, takeFinalizer } from './rules.ts';

const at = '2026-01-01T00:00:10Z';
const source = { repoURL: 'https://git.example.com/shop.git', path: 'shop', targetRevision: 'v1' };
const destination = { name: 'in-cluster', namespace: 'shop' };
const refresh = 'argocd.argoproj.io/refresh';

/** An Application with other fields. */
const application = (fields: Partial<Application> = {}): Application => ({
  metadata: { name: 'shop', namespace: 'argocd' },
  spec: { source, destination },
  ...fields,
});
/** It, after a write. */
const written = (before: Application, patch: object | undefined) => applyMergePatch(before, patch ?? {}) as Application;
const sync = { info: [{ name: 'id', value: '1' }], initiatedBy: { username: 'ann' }, sync: { revision: 'v1' } };

describe('an operation', () => {
  const begin = (fields: Partial<Application> = {}) => {
    const asked = application({ operation: sync, ...fields });
    return written(asked, beginOperation(asked, at));
  };

  it('runs with what was asked for, and stays asked for', () => {
    const begun = begin();
    expect(begun.operation).toEqual(sync);
    expect(begun.status?.operationState).toEqual({ phase: 'Running', operation: sync, startedAt: at });
    expect(isOperating(begun)).toBe(true);
  });

  it('keeps message and result of the one before until its end, and not the time of its end', () => {
    const former = { phase: 'Failed', message: 'no', finishedAt: at, syncResult: { revision: 'v0' } };
    const { finishedAt: _, ...kept } = former;
    expect(begin({ status: { operationState: former } }).status?.operationState).toEqual({
      ...kept,
      phase: 'Running',
      operation: sync,
      startedAt: at,
    });
  });

  it('that succeeds is no longer asked for, and is in the history', () => {
    const ended = written(begin(), endOperation(begin(), '2026-01-01T00:00:20Z', 'abc'));
    expect(ended.operation).toBeUndefined();
    expect(isOperating(ended)).toBe(false);
    expect(ended.status).toEqual({
      operationState: {
        phase: 'Succeeded',
        message: 'successfully synced (all tasks run)',
        operation: sync,
        startedAt: at,
        finishedAt: '2026-01-01T00:00:20Z',
        syncResult: { revision: 'abc', source },
      },
      history: [
        {
          id: 0,
          revision: 'abc',
          deployStartedAt: at,
          deployedAt: '2026-01-01T00:00:20Z',
          initiatedBy: { username: 'ann' },
          source,
        },
      ],
    });
  });

  it('that is terminated fails, and is not in the history', () => {
    const begun = written(begin(), { status: { operationState: { phase: 'Terminating' } } });
    expect(isOperating(begun)).toBe(true);
    const { operation, status } = written(begun, endOperation(begun, at, 'abc'));
    expect([operation, status?.history]).toEqual([undefined, undefined]);
    expect(status?.operationState).toMatchObject({ phase: 'Failed', message: 'Operation terminated', finishedAt: at });
  });

  it.each([{ sync: { dryRun: true } }, { sync: { resources: [{ kind: 'ConfigMap', name: 'x' }] } }])(
    'that is no full sync is not in the history: %o',
    (operation) => {
      const begun = begin({ operation });
      expect(written(begun, endOperation(begun, at, 'abc')).status?.history).toBeUndefined();
    },
  );

  it.each([
    { limit: undefined, kept: [2, 3, 4, 5, 6, 7, 8, 9, 10, 11] },
    { limit: 2, kept: [10, 11] },
    { limit: 0, kept: [] },
  ])('has another number in the history than all before, of which it keeps $limit', ({ limit, kept }) => {
    let one = application({
      spec: { source, destination, ...(limit !== undefined && { revisionHistoryLimit: limit }) },
    });
    for (let round = 0; round < 12; round++) {
      const asked = { ...one, operation: sync };
      const begun = written(asked, beginOperation(asked, at));
      one = written(begun, endOperation(begun, at, `c${round}`));
    }
    const ids = ((one.status?.history ?? []) as { id: number }[]).map(({ id }) => id);
    expect(ids).toEqual(kept);
  });
});

describe('a comparison', () => {
  const compared = (fields: Partial<Application> = {}) => {
    const one = application(fields);
    return written(one, compare(one, at, 'abc'));
  };
  const found = compared();

  it('finds what was not deployed', () => {
    expect(found.status).toEqual({
      sync: { status: 'OutOfSync', revision: 'abc', comparedTo: { source, destination } },
      health: { status: 'Healthy', lastTransitionTime: at },
      reconciledAt: at,
    });
  });

  it('is not due again until something has changed', () => {
    expect(compare(found, at, 'abc')).toBeUndefined();
    const later = '2026-01-01T00:01:00Z';
    expect(compare(found, later, 'def')).toMatchObject({ status: { sync: { revision: 'def' }, reconciledAt: later } });
    const { path: _, ...rest } = source;
    const moved = { ...found, spec: { source: rest, destination } };
    expect(written(moved, compare(moved, later, 'abc')).status?.sync?.comparedTo).toEqual(moved.spec);
  });

  it('is due after an operation, and finds what that has deployed', () => {
    const history = [{ id: 0, revision: 'abc' }];
    const operationState = { phase: 'Succeeded', finishedAt: '2026-01-01T00:00:30Z' };
    const ended = written(found, { status: { history, operationState } });
    const later = '2026-01-01T00:00:40Z';
    expect(compare(ended, later, 'abc')).toEqual({ status: { sync: { status: 'Synced' }, reconciledAt: later } });
    const failed = written(found, { status: { operationState } });
    expect(compare(failed, later, 'abc')).toEqual({ status: { reconciledAt: later } });
  });

  it('that is asked for answers all requests, and only these', () => {
    const hydrate = 'argocd.argoproj.io/hydrate';
    const asked = written(found, { metadata: { annotations: { [refresh]: 'hard', [hydrate]: 'normal', note: 'x' } } });
    const later = '2026-01-01T00:01:00Z';
    const answered = written(asked, compare(asked, later, 'abc'));
    expect(answered.metadata.annotations).toEqual({ note: 'x' });
    expect(answered.status?.reconciledAt).toBe(later);
  });
});

it('a report dates a change of health, and leaves the rest', () => {
  const health = { status: 'Healthy', lastTransitionTime: at };
  const one = application({ status: { sync: { status: 'Synced' }, health, reconciledAt: at } });
  const later = '2026-01-01T00:01:00Z';
  expect(report(one, { health: 'Healthy' }, later)).toEqual({ status: { reconciledAt: later } });
  expect(report(one, { health: 'Degraded' }, later)).toEqual({
    status: { health: { status: 'Degraded', lastTransitionTime: later }, reconciledAt: later },
  });
});

it('finalizers of Argo CD go one after the other, and those of others stay', () => {
  const finalizers = [
    'example.com/keeps',
    'post-delete-finalizer.argocd.argoproj.io/cleanup',
    'post-delete-finalizer.argocd.argoproj.io',
    'resources-finalizer.argocd.argoproj.io/background',
  ];
  let one = application({ metadata: { name: 'shop', finalizers } });
  for (const left of [3, 2, 1]) {
    one = written(one, takeFinalizer(one));
    expect(one.metadata.finalizers).toEqual(finalizers.slice(0, left));
  }
  expect(takeFinalizer(one)).toBeUndefined();
});
