import { afterAll, beforeAll, expect, test } from 'vitest';
import { application, namespace, type Pair, pairApplications, startPair } from '../e2e/pair/index.ts';
import { until } from '../lib/base/testing.ts';
import { type KubeObject, resourceType } from '../lib/kube/index.ts';

/** As Argo CD's API server reads them for App details > Events. */
const coreEvents = resourceType<KubeObject & { type?: string; reason?: string; message?: string }>({
  group: '',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  namespaced: true,
});
let pair: Pair;

beforeAll(async () => {
  pair = await startPair({ principal: { args: ['--application-events'] } });
});
afterAll(() => pair?.stop());

test('what a cluster reports of an Application are Events of it on the hub', async () => {
  const { hub, managed, name } = pair;
  const { metadata } = await hub.client.create(pairApplications, application({ name: 'shop', namespace: name }));
  const key = { namespace, name: 'shop' };
  const logs = { details: () => `${pair.principal.output.slice(-3_000)}\n---\n${pair.agent.output.slice(-3_000)}` };
  await until('the copy is made', () => managed.client.get(pairApplications, key), logs);
  const times = { startedAt: '2026-01-01T00:00:00Z', finishedAt: '2026-01-01T00:00:01Z' };
  const operationState = {
    ...times,
    phase: 'Failed',
    message: 'one or more objects failed to apply',
    operation: { initiatedBy: { automated: true }, sync: { revision: 'abc' } },
  };
  await managed.client.mergePatch(pairApplications, key, {
    status: { sync: { status: 'OutOfSync' }, health: { status: 'Missing' }, operationState },
  });
  const fieldSelector = `involvedObject.name=shop,involvedObject.uid=${metadata.uid},involvedObject.namespace=${name}`;
  const told = async () =>
    (await hub.client.list(coreEvents, { namespace: name, fieldSelector }))
      .map(({ type, reason, message }) => `${type} ${reason}: ${message}`)
      .sort();
  await until(
    'all of it is told',
    async () =>
      expect(await told()).toEqual([
        `Normal OperationStarted: Automated sync to abc started, says agent ${name}`,
        `Normal ResourceUpdated: Health status changed: none -> Missing, says agent ${name}`,
        `Normal ResourceUpdated: Sync status changed: none -> OutOfSync, says agent ${name}`,
        `Warning OperationCompleted: Sync to abc ended: Failed, one or more objects failed to apply, says agent ${name}`,
      ]),
    logs,
  );
});
