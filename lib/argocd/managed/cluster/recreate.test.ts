import { expect, test } from 'vitest';
import type { ObjectRef } from '../../../sync/index.ts';
import { type Application, annotations } from '../../index.ts';
import { hubApplication, Lab, type LabAgent, LabCluster, sentMessages } from '../../testing/lab.ts';
import { type RecreatePolicy, recreated } from './recreate.ts';

const hubRef: ObjectRef = { namespace: 'a', name: 'shop' };
const local: ObjectRef = { namespace: 'argocd', name: 'shop' };
const resources = 'resources-finalizer.argocd.argoproj.io';
const operation = { sync: { revision: '1' } };
const now = new Date('2026-01-02T03:04:05.678Z');
const ended = {
  phase: 'Failed',
  message: 'the operation ended when the Application was deleted on the managed cluster',
  finishedAt: '2026-01-02T03:04:05Z',
};
const health = { status: 'Healthy' };

function copy(rest: Partial<Application>, source = 'u'): Application {
  return hubApplication({ namespace: 'argocd', annotations: { [annotations.sourceUid]: source } }, rest);
}

test.each([
  ['runs', 'ignore', operation, { phase: 'Running', operation }, operation, undefined],
  ['runs', 'clear-status', operation, { phase: 'Running', operation }, operation, undefined],
  ['runs', 'resync', operation, { phase: 'Running', operation }, operation, undefined],
  ['is to be tried again', 'ignore', operation, { phase: 'Running', finishedAt: 'f' }, operation, undefined],
  ['has not begun', 'ignore', operation, { phase: 'Succeeded' }, operation, { phase: 'Succeeded' }],
  ['has not begun', 'clear-status', operation, { phase: 'Succeeded' }, operation, undefined],
  ['is to be ended', 'ignore', operation, { phase: 'Terminating', operation }, undefined, { operation, ...ended }],
  ['is to be ended', 'clear-status', operation, { phase: 'Terminating' }, undefined, undefined],
  ['is to be ended', 'resync', operation, { phase: 'Terminating' }, { sync: {} }, ended],
  ['is said to run, by nobody', 'ignore', undefined, { phase: 'Running' }, undefined, ended],
  ['is over', 'ignore', undefined, { phase: 'Error' }, undefined, { phase: 'Error' }],
  ['never was', 'ignore', undefined, undefined, undefined, undefined],
] as const)(
  'of a deleted copy whose operation %s, on-application-recreate %s',
  (_, policy, asked, state, again, shown) => {
    const status = { health, ...(state === undefined ? {} : { operationState: state }) };
    const last = copy({
      status: { ...status, reconciledAt: 't' },
      ...(asked === undefined ? {} : { operation: asked }),
    });
    const made = recreated(copy({}), last, policy, now);
    expect(made.operation).toEqual(again);
    expect(made.status).toEqual({ health, ...(shown === undefined ? {} : { operationState: shown }) });
  },
);

test.each<RecreatePolicy>(['ignore', 'clear-status', 'resync'])(
  'what another source left behind is not taken over; on-application-recreate %s',
  (policy) => {
    const object = copy({});
    expect(recreated(object, copy({ status: { health }, operation }, 'other'), policy, now)).toEqual(object);
    const unmarked = hubApplication({}, { status: { health }, operation });
    expect(recreated(object, unmarked, policy, now)).toEqual(object);
  },
);

/** A copy on whose hub Application an operation was asked for. */
async function asked(finalizers: string[] = []) {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication({ finalizers }));
  const principal = lab.principal();
  const agent = lab.agent({}, new LabCluster('agent', lab.time));
  const leave = lab.join(principal, agent);
  await lab.run(3_000);
  lab.hub.objects.patch(hubRef, { operation });
  await lab.run(1_000);
  expect(agent.copy()?.operation).toEqual(operation);
  return { lab, principal, agent, leave, hub: () => lab.hub.objects.get(hubRef) };
}

function begins({ cluster }: LabAgent, startedAt: string) {
  cluster.objects.patch(local, { status: { operationState: { phase: 'Running', operation, startedAt } } });
}

function ends({ cluster }: LabAgent) {
  cluster.objects.patch(local, {
    operation: null,
    status: { operationState: { phase: 'Succeeded', finishedAt: 'e' } },
  });
}

test.each([
  ['at once', []],
  ['when Argo CD has removed what was deployed', [resources]],
])(
  'an operation amid which somebody deletes the copy, which goes %s, begins anew, and the hub sees how it ends',
  async (_, finalizers) => {
    const { lab, principal, agent, hub } = await asked(finalizers);
    begins(agent, 't1');
    await lab.run(1_000);
    const { uid } = agent.copy()?.metadata ?? {};
    agent.cluster.objects.delete(local, { propagation: 'Background' });
    await lab.run(1_000);
    if (finalizers.length > 0) {
      agent.cluster.objects.patch(local, { metadata: { finalizers: null } });
    }
    await lab.run(1_000);
    expect(agent.copy()?.metadata.uid).not.toBe(uid);
    expect(agent.copy()).toMatchObject({ operation });
    expect(agent.copy()?.status?.operationState, 'Argo CD would go on from there').toBeUndefined();
    expect(hub()).toMatchObject({ operation });
    expect(hub()?.status?.operationState, 'nothing runs').toBeUndefined();
    begins(agent, 't2');
    await lab.run(1_000);
    expect(hub()?.status?.operationState).toMatchObject({ phase: 'Running', startedAt: 't2' });
    ends(agent);
    await lab.run(300_000);
    expect(hub()?.operation).toBeUndefined();
    expect(hub()?.status?.operationState).toMatchObject({ phase: 'Succeeded' });
    expect(agent.copy()?.operation, 'once').toBeUndefined();
    expect(sentMessages(principal, 'set-operation')).toHaveLength(1);
  },
);

test('an operation that is to be ended when somebody deletes the copy has ended, and the next one is done', async () => {
  const { lab, agent, hub } = await asked();
  begins(agent, 't1');
  await lab.run(1_000);
  lab.hub.objects.patch(hubRef, { status: { operationState: { phase: 'Terminating' } } });
  await lab.run(1_000);
  agent.cluster.objects.delete(local, { propagation: 'Background' });
  await lab.run(1_000);
  expect(agent.copy()).toBeDefined();
  expect(agent.copy()?.operation).toBeUndefined();
  expect(hub()?.operation).toBeUndefined();
  expect(hub()?.status?.operationState).toMatchObject({ phase: 'Failed', message: ended.message });
  lab.hub.objects.patch(hubRef, { operation: { sync: { revision: '2' } } });
  await lab.run(1_000);
  expect(agent.copy()?.operation).toEqual({ sync: { revision: '2' } });
});

test.each([
  ['is done on the next one', 'Running', operation],
  ['is not, if it was to be ended', 'Terminating', undefined],
])('an operation amid which somebody deletes the copy while no agent runs %s', async (_, phase, again) => {
  const { lab, principal, agent, leave, hub } = await asked();
  begins(agent, 't1');
  await lab.run(1_000);
  leave();
  agent.stop.abort();
  agent.cluster.objects.delete(local, { propagation: 'Background' });
  lab.hub.objects.patch(hubRef, { status: { operationState: { phase } } });
  const next = lab.agent({}, agent.cluster);
  lab.join(principal, next);
  await lab.run(10_000);
  expect(next.copy()).toBeDefined();
  expect(next.copy()?.operation).toEqual(again);
  expect(hub()?.operation).toEqual(again);
  expect(hub()?.status?.operationState, 'nothing runs').toBeUndefined();
});
