import { expect, test } from 'vitest';
import type { ArgoObject } from '../pair/index.ts';
import { Ledger } from './ledger.ts';

// What another hub must have had when it takes over, and what it may lack.

const spec = (revision: string) => ({ source: { targetRevision: revision } });
const seen = (name: string, revision: string, more: object = {}): ArgoObject => ({
  metadata: { name, uid: `${name}-2`, ...more },
  spec: spec(revision),
});
const always = Number.POSITIVE_INFINITY;

function wantedSoFar() {
  const ledger = new Ledger();
  const want = (name: string, revision: string) =>
    ledger.want({ agent: 'cluster1', name, uid: `${name}-1`, spec: spec(revision) });
  want('web', 'v1');
  want('old', 'v1');
  const knownAt = performance.now();
  while (performance.now() <= knownAt) {
    // The next versions are later.
  }
  return { ledger, want, knownAt };
}

test('a hub that was told everything must have everything', () => {
  const { ledger, want } = wantedSoFar();
  want('web', 'v2');
  const { lost } = ledger.moved('cluster1', [seen('web', 'v1'), seen('old', 'v1')], always);
  expect(lost).toEqual([expect.stringMatching(/^cluster1\/web: the hub that took over has .*v1.*, wanted was .*v2/)]);
});

test('what was wanted when the hub had everything may not be missing, nor be older', () => {
  const { ledger, want } = wantedSoFar();
  want('web', 'v2');
  const second = performance.now();
  const { lost } = ledger.moved('cluster1', [seen('web', 'v1')], second);
  expect(lost).toHaveLength(2);
});

test('later edits may be undone: what the hub has is wanted from then on', () => {
  const { ledger, want, knownAt } = wantedSoFar();
  want('web', 'v2');
  want('new', 'v1');
  ledger.drop({ agent: 'cluster1', name: 'old', uid: 'old-1', spec: spec('v1') });
  const takeover = ledger.moved('cluster1', [seen('web', 'v1'), seen('old', 'v1')], knownAt);
  expect(takeover).toMatchObject({ lost: [], undone: 3 });
  expect(ledger.wanted.map(({ name, uid, spec: now }) => [name, uid, now]).sort()).toEqual([
    ['old', 'old-2', spec('v1')],
    ['web', 'web-2', spec('v1')],
  ]);
});

test('a deletion counts from when it was accepted', () => {
  const { ledger } = wantedSoFar();
  const old = { agent: 'cluster1', name: 'old', uid: 'old-1', spec: spec('v1') };
  ledger.drop(old);
  const there = [seen('web', 'v1'), seen('old', 'v1')];
  expect(ledger.moved('cluster1', there, performance.now()).lost, 'nobody has accepted it').toEqual([]);
  ledger.drop({ ...old, uid: 'old-2' });
  ledger.dropped(old);
  expect(ledger.moved('cluster1', there, performance.now()).lost).toHaveLength(1);
});

test('a copy of an Application that a user deletes on the second hub may be of the one on the first', () => {
  const { ledger } = wantedSoFar();
  ledger.moved('cluster1', [seen('web', 'v1'), seen('old', 'v1')], always);
  ledger.drop({ agent: 'cluster1', name: 'web', uid: 'web-2', spec: spec('v1') });
  expect(ledger.isTakenAway('web-1')).toBe(true);
  expect(ledger.isTakenAway('old-1')).toBe(false);
});

test('an Application that is being deleted is not there any more', () => {
  const { ledger } = wantedSoFar();
  const leaving = seen('web', 'v1', { deletionTimestamp: '2026-01-01T00:00:00Z' });
  const { lost } = ledger.moved('cluster1', [leaving, seen('old', 'v1')], always);
  expect(lost).toHaveLength(1);
  expect(ledger.isTakenAway('web-2')).toBe(true);
});

const webKeptOut = { agent: 'cluster1', name: 'web', uid: 'web-1', spec: spec('v3'), isKeptOut: true };

test('of what the label keeps to one hub, the other one has what it had before, or nothing', () => {
  const withLabel = (...there: ArgoObject[]) => {
    const { ledger, want } = wantedSoFar();
    want('web', 'v2');
    ledger.want(webKeptOut);
    return { ledger, takeover: ledger.moved('cluster1', [...there, seen('old', 'v1')], always) };
  };
  const before = withLabel(seen('web', 'v2'));
  expect(before.takeover.lost).toEqual([]);
  expect(before.ledger.find('cluster1', 'web')).toMatchObject({ uid: 'web-2', isKeptOut: false });
  expect(withLabel().takeover.lost).toEqual([]);
  expect(withLabel(seen('web', 'v1')).takeover.lost, 'the label came before it was told of v2').toEqual([]);
  expect(withLabel(seen('web', 'v3')).takeover.lost, 'nobody may have told it').toHaveLength(1);
});

test('what is deleted while the label keeps it out is deleted on the other hub, too', () => {
  const { ledger, want } = wantedSoFar();
  want('web', 'v2');
  ledger.want(webKeptOut);
  ledger.drop(webKeptOut);
  const there = (...others: ArgoObject[]) =>
    ledger.moved('cluster1', [...others, seen('old', 'v1')], performance.now()).lost;
  expect(there(seen('web', 'v2')), 'nobody has accepted the deletion').toEqual([]);
  ledger.want(webKeptOut);
  ledger.drop(webKeptOut);
  ledger.dropped(webKeptOut);
  expect(there(seen('web', 'v2'))).toHaveLength(1);
  ledger.want(webKeptOut);
  ledger.drop(webKeptOut);
  ledger.dropped(webKeptOut);
  expect(there()).toEqual([]);
});

test('a workload is asked for by the last state of what leaves, not by a hub that does not know it', () => {
  const { ledger } = wantedSoFar();
  const old = { agent: 'cluster1', name: 'old', uid: 'old-1', spec: spec('v1') };
  ledger.want({ ...old, cascades: true });
  ledger.moved('cluster1', [seen('web', 'v1')], always);
  expect(ledger.workloads.isAsked('cluster1', 'old-1')).toBe(false);
  ledger.keepOut({ ...old, cascades: false });
  expect(ledger.workloads.isAsked('cluster1', 'old-1')).toBe(false);
  ledger.keepOut({ ...old, cascades: true });
  expect(ledger.workloads.isAsked('cluster1', 'old-1')).toBe(true);
});
