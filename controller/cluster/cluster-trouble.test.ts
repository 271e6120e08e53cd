import { expect, test } from 'vitest';
import type { Condition } from '../../lib/kube/index.ts';
import type { GitOpsCluster } from '../hub/index.ts';
import type { Trouble } from '../ownership/index.ts';
import { type ClusterChange, recordClusterEvents, reportClusterChange } from './cluster-events.ts';
import { findTrouble } from './cluster-trouble.ts';

const delays = { refusedMs: 10_000, slowMs: 300_000 };
const begin = new Date('2030-01-01T00:00:00Z');
const after = (seconds: number) => new Date(begin.getTime() + seconds * 1000);
const condition = (type: string, status: Condition['status'], reason = 'Test'): Condition => ({
  type,
  status,
  reason,
  message: `${type} is ${status}`,
  lastTransitionTime: '2030-01-01T00:00:00Z',
});
const well = ['ManifestApplied', 'Available', 'AgentConnected'].map((type) => condition(type, 'True'));
const but = (...others: Condition[]) => well.map((one) => others.find(({ type }) => type === one.type) ?? one);
const judge = (conditions: readonly Condition[], now: Date, known?: Trouble, problems: object = {}) =>
  findTrouble({ problems, conditions, known, delays, now });

test('a healthy cluster has no trouble and no time to look again', () => {
  expect(judge(well, after(1_000))).toEqual({});
  expect(judge([], after(1_000))).toEqual({});
});

test('a failed concern is trouble at once, since it was first seen', () => {
  const { trouble } = judge(well, after(5), undefined, { import: 'no' });
  expect(trouble).toEqual({ step: 'ClustersImported', reason: 'Failed', message: 'no', since: '2030-01-01T00:00:05Z' });
  expect(judge(well, after(50), trouble, { import: 'still no' }).trouble).toEqual({ ...trouble, message: 'still no' });
  expect(judge(well, after(50), trouble, { works: 'other' }).trouble?.since).toBe('2030-01-01T00:00:50Z');
});

test.each([
  ['a refused work', condition('ManifestApplied', 'False'), 10],
  ['a work that nobody takes', condition('ManifestApplied', 'Unknown'), 300],
  ['a workload that is not ready', condition('Available', 'False'), 300],
  ['an agent that is not connected', condition('AgentConnected', 'False'), 300],
])('%s is wrong after its time, and is looked at then', (_, one, seconds) => {
  const early = judge(but(one), after(seconds - 1));
  expect(early.trouble).toBeUndefined();
  expect(early.lookAgainMs).toBeGreaterThanOrEqual(1_000);
  expect(early.lookAgainMs).toBeLessThanOrEqual(2_000);
  expect(judge(but(one), after(seconds)).trouble).toMatchObject({ step: one.type, since: one.lastTransitionTime });
});

test('a cluster that OCM reports as unreachable is trouble at once', () => {
  const silent = condition('Available', 'Unknown', 'ManagedClusterLeaseUpdateStopped');
  expect(judge(but(silent), after(0)).trouble).toMatchObject({ step: 'Available', reason: silent.reason });
});

test('an agent without a certificate: the missing request is the reason, not that the agent is not ready', () => {
  const missing = condition('ClientCertificateIssued', 'False', 'NotRequested');
  const down = but(condition('Available', 'False'), condition('AgentConnected', 'False'));
  expect(judge([...down, missing], after(299)).trouble).toBeUndefined();
  const { trouble } = judge([...down, missing], after(300));
  expect(trouble).toMatchObject({ step: 'ClientCertificateIssued', reason: 'NotRequested' });
  expect(recorded({ trouble: trouble as Trouble })).toEqual(['Warning CertificateMissing']);
  const silent = condition('Available', 'Unknown', 'ManagedClusterLeaseUpdateStopped');
  expect(judge([...but(silent), missing], after(300)).trouble).toMatchObject({ step: 'Available' });
});

/** The Events about a cluster that one reconcile records. */
function recorded(change: Partial<Parameters<typeof recordClusterEvents>[2]>): string[] {
  const events: string[] = [];
  const record = (type: string) => (_: unknown, reason: string) => void events.push(`${type} ${reason}`);
  const recorder = { normal: record('Normal'), warning: record('Warning') };
  const none = { before: [], conditions: [], known: undefined, trouble: undefined, firstReconcile: undefined };
  recordClusterEvents(recorder, { metadata: { name: 'fleet' } } as GitOpsCluster, { cluster: 'c', ...none, ...change });
  return events;
}
const never = condition('AgentConnected', 'False', 'NeverConnected');
const lost = condition('AgentConnected', 'False', 'Disconnected');

test('enrolment and the first connection are recorded once', () => {
  const applied = [condition('ManifestApplied', 'True'), never];
  expect(recorded({ before: [], conditions: applied })).toEqual(['Normal ClusterEnrolled']);
  expect(recorded({ before: applied, conditions: applied })).toEqual([]);
  expect(recorded({ before: but(never), conditions: well })).toEqual(['Normal ClusterConnected']);
  // It was connected before: neither a reconnection nor a repeated application is recorded.
  expect(recorded({ before: but(lost), conditions: well })).toEqual([]);
  expect(recorded({ before: but(condition('ManifestApplied', 'Unknown', 'Updating')), conditions: well })).toEqual([]);
  expect(recorded({ before: but(condition('ManifestApplied', 'False', 'Refused')), conditions: well })).toEqual([]);
});

test('enrolment is recorded also when the agent connects before the works are reported', () => {
  const pending = condition('ManifestApplied', 'Unknown', 'Progressing');
  expect(recorded({ before: but(never, pending), conditions: but(pending) })).toEqual(['Normal ClusterConnected']);
  expect(recorded({ before: but(pending), conditions: well })).toEqual(['Normal ClusterEnrolled']);
});

const trouble: Trouble = {
  step: 'AgentConnected',
  reason: 'Disconnected',
  message: 'm',
  since: '2030-01-01T00:00:00Z',
};

test('trouble is recorded when it begins and when it ends, not in between', () => {
  expect(recorded({ trouble })).toEqual(['Warning AgentDisconnected']);
  expect(recorded({ trouble: { ...trouble, step: 'Available', reason: 'AgentNotConnected' } })).toEqual([
    'Warning AgentDisconnected',
  ]);
  expect(recorded({ known: trouble, trouble: { ...trouble, message: 'other' } })).toEqual([]);
  expect(recorded({ known: trouble })).toEqual(['Normal ClusterRecovered']);
  expect(recorded({ known: trouble, trouble: { ...trouble, step: 'Available' } })).toEqual([
    'Warning ClusterUnavailable',
  ]);
});

test('a new controller does not record what its predecessor has recorded', () => {
  expect(recorded({ trouble, firstReconcile: { startedAt: after(3_600), delays } })).toEqual([]);
  expect(recorded({ trouble, firstReconcile: { startedAt: after(100), delays } })).toEqual([
    'Warning AgentDisconnected',
  ]);
});

test('who follows the fleet learns the same, and every kind of trouble', () => {
  const reported = (change: Partial<ClusterChange>) => {
    const seen: unknown[] = [];
    const none = { before: [], conditions: [], known: undefined, trouble: undefined, firstReconcile: undefined };
    const report = (type: string, subject: string, data: object) => void seen.push({ type, subject, ...data });
    const fleet = { metadata: { namespace: 'argocd', name: 'fleet' } } as GitOpsCluster;
    reportClusterChange({ report }, fleet, { cluster: 'c', ...none, ...change });
    reportClusterChange(undefined, fleet, { cluster: 'c', ...none, ...change });
    return seen;
  };
  const about = { subject: 'clusters/c', cluster: 'c', gitOpsCluster: 'argocd/fleet' };
  const applied = [condition('ManifestApplied', 'True'), never];
  expect(reported({ conditions: applied })).toEqual([{ type: 'cluster-enrolled', ...about }]);
  expect(reported({ before: applied, conditions: applied })).toEqual([]);
  expect(reported({ trouble })).toEqual([{ type: 'cluster-failing', ...about, ...trouble }]);
  const onHub = { ...trouble, step: 'ManifestWorkCreated', message: 'x'.repeat(5_000) };
  expect(reported({ trouble: onHub })).toEqual([
    { type: 'cluster-failing', ...about, ...onHub, message: 'x'.repeat(1_024) },
  ]);
  expect(reported({ known: trouble, trouble: { ...trouble, message: 'other' } })).toEqual([]);
  const firstReconcile = { startedAt: new Date('2030-01-02T00:00:00Z'), delays };
  expect(reported({ trouble, firstReconcile })).toEqual([]);
  expect(reported({ known: trouble })).toEqual([
    { type: 'cluster-recovered', ...about, step: trouble.step, since: trouble.since },
  ]);
});
