import { expect, test } from 'vitest';
import type { Condition } from '../../lib/kube/index.ts';
import { agentConnected, type ManagedCluster, type ManifestWork } from '../hub/index.ts';
import { availability as availabilityWith, certificateIssued, manifestApplied, progress } from './cluster-health.ts';

const at = '2030-01-01T00:00:00Z';
const condition = (type: string, status: Condition['status'], message = ''): Condition => ({
  type,
  status,
  reason: 'Test',
  message,
  lastTransitionTime: at,
  observedGeneration: 1,
});
const cluster = (status: Condition['status']): ManagedCluster => ({
  metadata: { name: 'c' },
  status: { conditions: [condition('ManagedClusterConditionAvailable', status)] },
});
const up = cluster('True');
const lease = (connected: string) => ({
  metadata: { name: 'l', annotations: { 'argocd-agent.argoproj-labs.io/connected': connected } },
  spec: { acquireTime: at, renewTime: at },
});
const availability = (works: ManifestWork[], of: ManagedCluster, before: Condition | undefined) =>
  availabilityWith(works, of, before, agentConnected(lease('true')));

function work(
  options: { applied?: Condition['status']; ready?: Record<string, number | undefined>; refused?: string } = {},
): ManifestWork {
  const { applied = 'True', ready = { agent: 1, controller: 1 }, refused } = options;
  const kinds = ['Deployment', 'StatefulSet'];
  const manifests = Object.keys(ready).map((name, i) => ({
    kind: kinds[i % 2] ?? '',
    metadata: { namespace: 'argocd', name },
  }));
  return {
    metadata: { namespace: 'c', name: 'w', generation: 1 },
    spec: {
      workload: { manifests },
      manifestConfigs: manifests.map(({ metadata }) => ({
        resourceIdentifier: { resource: 'x', name: metadata.name },
        feedbackRules: [{ type: 'WellKnownStatus' as const }],
      })),
    },
    status: {
      conditions: [condition('Applied', applied, 'failed'), condition('Available', applied)],
      resourceStatus: {
        manifests: manifests.map(({ kind, metadata }, ordinal) => {
          const count = ready[metadata.name];
          const values = [
            { name: 'Replicas', fieldValue: { type: 'Integer', integer: 1 } },
            ...(count === undefined
              ? []
              : [{ name: 'ReadyReplicas', fieldValue: { type: 'Integer', integer: count } }]),
          ];
          return {
            resourceMeta: { ordinal, kind, ...metadata },
            conditions: refused && ordinal === 0 ? [condition('Applied', 'False', refused)] : [],
            statusFeedback: { values },
          };
        }),
      },
    },
  };
}

test('ocm defect M17: available when every workload has a ready pod', () => {
  expect(availability([work()], up, undefined)).toMatchObject({ status: 'True', reason: 'ProbeAvailable' });
  expect(availability([work({ ready: { agent: 0, controller: 1 } })], up, undefined)).toMatchObject({
    status: 'False',
    reason: 'ProbeUnavailable',
    message: 'not ready: agent',
  });
  // A StatefulSet without ready pods lacks the field readyReplicas.
  expect(availability([work({ ready: { agent: 1, controller: undefined } })], up, undefined)).toMatchObject({
    message: 'not ready: controller',
  });
});

test('unknown until the cluster has reported', () => {
  expect(availability([], up, undefined)).toMatchObject({ status: 'Unknown', reason: 'WorkNotFound' });
  expect(availability([work({ applied: 'Unknown' })], up, undefined)).toMatchObject({
    status: 'Unknown',
    reason: 'WorkNotApplied',
  });
  expect(availability([work({ ready: { agent: undefined, controller: undefined } })], up, undefined)).toMatchObject({
    status: 'Unknown',
    reason: 'NoProbeResult',
  });
});

test('ocm defect M17: the message names the manifest that the cluster refuses', () => {
  const refused = work({ applied: 'False', refused: 'namespaces "argocd" not found' });
  const message = 'ManifestWork w: Deployment argocd/agent: namespaces "argocd" not found';
  expect(availability([refused], up, undefined)).toMatchObject({ status: 'False', reason: 'WorkNotApplied', message });
  expect(manifestApplied([refused], undefined, undefined)).toMatchObject({
    status: 'False',
    reason: 'AddonManifestAppliedFailed',
    message,
  });
  expect(progress([refused], undefined)).toMatchObject({ status: 'True', message: expect.stringContaining(message) });
});

test('a cluster that does not report is unknown, with OCM’s reason if OCM set one first', () => {
  expect(availability([work()], cluster('Unknown'), undefined)).toMatchObject({
    status: 'Unknown',
    reason: 'ManagedClusterNotAvailable',
  });
  const theirs = { ...condition('Available', 'Unknown', 'lease'), reason: 'ManagedClusterLeaseUpdateStopped' };
  expect(availability([work()], cluster('Unknown'), theirs)).toMatchObject({ reason: theirs.reason, message: 'lease' });
});

test('progress ends when every work is applied in its current generation', () => {
  expect(progress([work()], undefined)).toMatchObject({ status: 'False', reason: 'Completed' });
  const changed = work();
  changed.metadata.generation = 2;
  expect(progress([changed], undefined)).toMatchObject({ status: 'True', reason: 'Progressing' });
  expect(progress([work()], 'too large')).toEqual({
    type: 'Progressing',
    status: 'False',
    reason: 'Failed',
    message: 'too large',
  });
  expect(manifestApplied([], 'too large', undefined)).toMatchObject({
    status: 'False',
    reason: 'ManifestWorkApplyFailed',
  });
});

test('a cluster that applied before is updating', () => {
  const applied = manifestApplied([work()], undefined, undefined);
  expect(applied.status).toBe('True');
  const at = { lastTransitionTime: '2030-01-01T00:00:00Z' };
  const updating = manifestApplied([], undefined, { ...applied, ...at });
  expect(updating).toMatchObject({ status: 'Unknown', reason: 'Updating' });
  expect(manifestApplied([], undefined, { ...updating, ...at })).toMatchObject({ reason: 'Updating' });
  expect(manifestApplied([], undefined, undefined)).toMatchObject({ reason: 'Progressing' });
});

test('agentConnected reports what the principal records', () => {
  expect(agentConnected(undefined)).toMatchObject({ status: 'False', reason: 'NeverConnected' });
  expect(agentConnected(lease('true'))).toMatchObject({ status: 'True', message: expect.stringContaining(at) });
  expect(agentConnected(lease('false'))).toMatchObject({ status: 'False', reason: 'Disconnected' });
  expect(agentConnected(lease('false'), { address: '2001:db8::1', port: '8444' }).message).toBe(
    `the agent has not been connected to [2001:db8::1]:8444 since ${at}`,
  );
});

test('an agent that only lacks its connection is reported with the address that it dials', () => {
  const down = { ready: { 'argocd-agent-agent': 0, controller: 1 } };
  const disconnected = agentConnected(lease('false'), { address: '127.0.0.1', port: '8444' });
  expect(availabilityWith([work(down)], up, undefined, disconnected)).toEqual({
    type: 'Available',
    status: 'False',
    reason: 'AgentNotConnected',
    message: `the agent has not been connected to 127.0.0.1:8444 since ${at}; not ready: argocd-agent-agent`,
  });
  expect(availability([work(down)], up, undefined)).toMatchObject({ reason: 'ProbeUnavailable' });
  const all = { ready: { 'argocd-agent-agent': 0, controller: 0 } };
  expect(availabilityWith([work(all)], up, undefined, disconnected)).toMatchObject({
    reason: 'ProbeUnavailable',
    message: 'not ready: argocd-agent-agent, controller',
  });
});

test('the status that argocd-operator writes for an ArgoCD counts', () => {
  const argoCd = (phase: string | undefined): ManifestWork => {
    const made = work({ ready: {} });
    const metadata = { namespace: 'argocd', name: 'argocd' };
    const values = phase === undefined ? [] : [{ name: 'Phase', fieldValue: { type: 'String', string: phase } }];
    made.spec.workload.manifests.push({ kind: 'ArgoCD', metadata });
    made.spec.manifestConfigs?.push({ resourceIdentifier: { resource: 'argocds', ...metadata }, feedbackRules: [] });
    const meta = { ordinal: 0, kind: 'ArgoCD', ...metadata };
    made.status?.resourceStatus?.manifests?.push({ resourceMeta: meta, conditions: [], statusFeedback: { values } });
    return made;
  };
  expect(availability([argoCd('Available')], up, undefined)).toMatchObject({ status: 'True' });
  expect(availability([argoCd('Pending')], up, undefined)).toMatchObject({
    status: 'False',
    message: 'not ready: argocd',
  });
  expect(availability([argoCd(undefined)], up, undefined)).toMatchObject({
    status: 'Unknown',
    reason: 'NoProbeResult',
  });
});

test('the message names an object that the cluster must have and lacks', () => {
  const missing = work();
  missing.status?.resourceStatus?.manifests?.push({
    resourceMeta: { ordinal: 2, kind: 'CustomResourceDefinition', name: 'applications.argoproj.io' },
    conditions: [condition('Applied', 'True'), condition('Available', 'False')],
  });
  expect(availability([missing], up, undefined)).toEqual({
    type: 'Available',
    status: 'False',
    reason: 'ResourceNotAvailable',
    message: 'ManifestWork w: the cluster does not have CustomResourceDefinition applications.argoproj.io',
  });
});

test('a cluster that does not request its certificate is reported with what to do', () => {
  const now = new Date('2030-01-01T12:00:00Z');
  const [on, off, lost] = [agentConnected(lease('true')), agentConnected(undefined), agentConnected(lease('false'))];
  const judge = (until: string | undefined, isDelivered: boolean, connection = off) =>
    certificateIssued(until === undefined ? undefined : { until }, { isDelivered }, connection, now);
  expect(judge('2030-01-02T00:00:00Z', false)).toMatchObject({ status: 'True', reason: 'Issued' });
  const never = judge(undefined, false);
  expect(never).toMatchObject({ status: 'False', reason: 'NotRequested' });
  expect(never.message).toMatch(/registration agent .* has not requested .*clientCertificate: Generated/);
  expect(judge('2030-01-01T00:00:00Z', false)).toMatchObject({
    status: 'False',
    reason: 'Expired',
    message: expect.stringContaining('expired at 2030-01-01T00:00:00Z'),
  });
  // A delivered key does not hide that the cluster does not request its own.
  expect(judge(undefined, true, on)).toMatchObject({ status: 'False', reason: 'NotRequested' });
  expect(judge(undefined, true, on).message).toMatch(/uses the key that the hub delivered$/);
  // The record of the certificate may be lost, but nothing else lets an agent connect.
  expect(judge(undefined, false, on)).toMatchObject({ status: 'True', reason: 'InUse' });
  expect(judge(undefined, false, lost)).toMatchObject({ status: 'True', reason: 'InUse' });
  expect(judge('2030-01-01T00:00:00Z', false, lost)).toMatchObject({ status: 'False', reason: 'Expired' });
});
