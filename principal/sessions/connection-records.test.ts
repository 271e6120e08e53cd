import { afterEach, expect, test } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import { ApiError, type Informer, type KubeClient, type Lease } from '../../lib/kube/index.ts';
import { createLogger } from '../../lib/ops/index.ts';
import { ConnectionRecords } from './connection-records.ts';

const stop: AbortController[] = [];
afterEach(() => {
  for (const controller of stop.splice(0)) {
    controller.abort();
  }
});

/** Records with a client that stores applied objects; `before` is the state left by a former process. */
function start(before: Lease[] = [], graceMs = 60_000) {
  const applied: Lease[] = [];
  const state = { fail: 0 };
  const stored = new Map<string, Lease>();
  const client = {
    get: async (_type: unknown, { name }: { name: string }) => stored.get(name),
    apply: async (_type: unknown, lease: Lease) => {
      if (state.fail-- > 0) {
        throw new Error('the API server is away');
      }
      const { name, resourceVersion } = lease.metadata;
      const now = stored.get(name)?.metadata.resourceVersion;
      if (resourceVersion !== undefined && resourceVersion !== now) {
        throw new ApiError({ status: 409, reason: 'Conflict', message: 'the object has been modified' });
      }
      applied.push(lease);
      const written = { ...lease, metadata: { ...lease.metadata, resourceVersion: String(applied.length) } };
      stored.set(name, written);
      return written;
    },
  } as unknown as KubeClient;
  const informer = {
    list: () => before,
    get: ({ name }: { name: string }) => before.find(({ metadata }) => metadata.name === name),
  } as unknown as Informer<Lease>;
  const records = new ConnectionRecords({
    client,
    namespace: 'argocd',
    identity: 'pod-1',
    informer,
    logger: createLogger({ level: 'fatal' }),
  });
  const controller = new AbortController();
  stop.push(controller);
  void records.run(controller.signal, graceMs);
  return { records, applied, state, stored, stop: () => controller.abort() };
}

const left = (agent: string, connected: string): Lease => ({
  metadata: {
    name: `argocd-agent-${agent}`,
    namespace: 'argocd',
    labels: { 'argocd-agent.argoproj-labs.io/agent-name': agent },
    annotations: { 'argocd-agent.argoproj-labs.io/connected': connected },
  },
});
const summary = (lease: Lease) => [
  lease.metadata.name,
  lease.metadata.annotations?.['argocd-agent.argoproj-labs.io/connected'],
  lease.spec?.holderIdentity,
];

test('a connection and its end are recorded', async () => {
  const { records, applied } = start();
  records.connected('one', { mode: 'managed', version: '1.0.0' });
  await until(() => applied.length === 1);
  records.disconnected('one');
  await until(() => applied.length === 2);
  expect(applied.map(summary)).toEqual([
    ['argocd-agent-one', 'true', 'pod-1'],
    ['argocd-agent-one', 'false', ''],
  ]);
  expect(applied[0]?.metadata.labels).toEqual({
    'app.kubernetes.io/part-of': 'argocd-agent',
    'app.kubernetes.io/component': 'connection',
    'argocd-agent.argoproj-labs.io/agent-name': 'one',
  });
});

test('a failed write is repeated with the state as it is then', async () => {
  const { records, applied, state } = start();
  state.fail = 1;
  records.connected('one', { mode: 'managed', version: '1.0.0' });
  records.disconnected('one');
  await until(() => applied.length === 1);
  expect(applied.map(summary)).toEqual([['argocd-agent-one', 'false', '']]);
});

test('what a former process left as connected is corrected after the time to come back', async () => {
  const { records, applied } = start([left('gone', 'true'), left('back', 'true'), left('off', 'false')], 1);
  records.connected('back', { mode: 'managed', version: '1.0.0' });
  await until(() => applied.length === 2);
  expect(applied.map(summary).sort()).toEqual([
    ['argocd-agent-back', 'true', 'pod-1'],
    ['argocd-agent-gone', 'false', ''],
  ]);
});

test('a clean end disconnects all', async () => {
  const { records, applied } = start();
  records.connected('one', { mode: 'managed', version: '1.0.0' });
  await until(() => applied.length === 1);
  await records.close();
  expect(applied.map(summary)[1]).toEqual(['argocd-agent-one', 'false', '']);
});

test('an agent that has gone to another principal is not marked as disconnected', async () => {
  const { records, applied, stored } = start();
  for (const agent of ['stays', 'goes']) {
    records.connected(agent, { mode: 'managed', version: '1.0.0' });
  }
  await until(() => applied.length === 2);
  const touch = (agent: string, spec: NonNullable<Lease['spec']>) =>
    stored.set(`argocd-agent-${agent}`, { metadata: { name: `argocd-agent-${agent}`, resourceVersion: 'new' }, spec });
  touch('goes', { holderIdentity: 'pod-2' });
  touch('stays', { holderIdentity: 'pod-1' });
  for (const agent of ['stays', 'goes']) {
    records.disconnected(agent);
  }
  await records.close();
  await until(() => applied.length === 3);
  expect(applied.map(summary)[2]).toEqual(['argocd-agent-stays', 'false', '']);
});

const modeOf = (lease: Lease | undefined) =>
  lease?.metadata.annotations?.['argocd-agent.argoproj-labs.io/agent-mode'] ?? 'none';

test('the mode of the last connection is remembered, by this process and the next', async () => {
  const { records, applied } = start();
  expect(records.modeOf('one')).toBeUndefined();
  records.connected('one', { mode: 'autonomous', version: '1.0.0' });
  expect(records.modeOf('one')).toBe('autonomous');
  await until(() => applied.length === 1);
  records.disconnected('one');
  await until(() => applied.length === 2);
  expect(applied.map(modeOf)).toEqual(['autonomous', 'autonomous']);
  const next = start(applied.slice(1));
  expect(next.records.modeOf('one')).toBe('autonomous');
});

test('the mode of an agent that left the fleet is forgotten, also when it left while no principal ran', async () => {
  const former = start();
  for (const agent of ['one', 'two']) {
    former.records.connected(agent, { mode: 'managed', version: '1.0.0' });
  }
  await until(() => former.applied.length === 2);
  for (const agent of ['one', 'two']) {
    former.records.disconnected(agent);
  }
  await until(() => former.applied.length === 4);
  const { records, applied } = start(former.applied.slice(2));
  records.forgetAllBut((agent) => agent === 'two');
  await until(() => applied.length === 1);
  expect([applied[0]?.metadata.name, modeOf(applied[0])]).toEqual(['argocd-agent-one', 'none']);
  expect([records.modeOf('one'), records.modeOf('two')]).toEqual([undefined, 'managed']);
  records.connected('one', { mode: 'autonomous', version: '1.0.0' });
  expect(records.modeOf('one')).toBe('autonomous');
});

test("the record of a former process has the time of a managed agent's last connection", () => {
  const seen = (agent: string, mode: string): Lease => {
    const lease = left(agent, 'false');
    const annotations = { ...lease.metadata.annotations, 'argocd-agent.argoproj-labs.io/agent-mode': mode };
    return {
      ...lease,
      metadata: { ...lease.metadata, annotations },
      spec: { renewTime: '2026-01-02T03:04:05.000000Z' },
    };
  };
  const { records } = start([seen('one', 'managed'), seen('two', 'autonomous'), left('three', 'false')]);
  expect(records.managedLastSeen('one')).toEqual(new Date('2026-01-02T03:04:05Z'));
  for (const other of ['two', 'three', 'four']) {
    expect(records.managedLastSeen(other)).toBeUndefined();
  }
});

test('a later process gives the same time for an agent that is away, however this one ended', async () => {
  const { records, applied, state } = start();
  for (const agent of ['left', 'stayed']) {
    records.connected(agent, { mode: 'autonomous', version: '1.0.0' });
  }
  await until(() => applied.length === 2);
  // The record is late, and has the time of the end all the same.
  state.fail = 1;
  records.disconnected('left');
  const end = records.lastSeen('left');
  expect(end).toBeDefined();
  await until(() => applied.length === 3);
  await records.close();
  await until(() => applied.length === 4);
  const closed = records.lastSeen('stayed');
  const next = start(applied.slice(2));
  expect([next.records.lastSeen('left'), next.records.lastSeen('stayed')]).toEqual([end, closed]);

  // A process that was killed recorded no end: it was before the start of the next, which records that.
  const killed = start([left('gone', 'true'), left('never', 'false')], 1);
  const since = killed.records.lastSeen('gone');
  expect(since).toBeDefined();
  expect(killed.records.lastSeen('never')).toBeUndefined();
  await until(() => killed.applied.length === 1);
  expect(start(killed.applied).records.lastSeen('gone')).toEqual(since);
});
