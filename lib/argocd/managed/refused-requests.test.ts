import { expect, test } from 'vitest';
import type { Message } from '../index.ts';
import { hubApplication, Lab } from '../testing/lab.ts';

const onHub = { namespace: 'a', name: 'shop' };
const onCluster = { namespace: 'argocd', name: 'shop' };
const operation = { sync: { revision: 'r1' } };

const answer = (status: number, more: object = {}) =>
  Object.assign(new Error(`refused with ${status}`), { status, ...more });

const refusals: [number, object][] = [
  [400, { reason: 'BadRequest' }],
  [403, { reason: 'Forbidden' }],
  [409, { reason: 'Conflict' }],
  [413, { reason: 'RequestEntityTooLarge' }],
  [422, { reason: 'Invalid' }],
  [429, { reason: 'TooManyRequests' }],
  [500, { reason: 'InternalError' }],
];

/** A hub and an agent with one Application, whose cluster refuses patches that a test names. */
async function fleet() {
  const lab = new Lab();
  const principal = lab.principal();
  let dice = 0;
  // Numbers that differ: what is said again is known by one.
  const runtime = { ...lab.common('a').runtime, random: () => (++dice * 0.618) % 1 };
  const agent = lab.agent({ runtime });
  const leave = lab.join(principal, agent);
  lab.hub.objects.create(hubApplication());
  await lab.run(1_000);
  const state: { denies: Error | undefined; refused: number } = { denies: undefined, refused: 0 };
  const { patch } = agent.cluster;
  agent.cluster.patch = (ref, body) => {
    const isRequest = body.operation !== undefined || (body.status as object | undefined) !== undefined;
    if (state.denies !== undefined && isRequest) {
      state.refused++;
      return Promise.reject(state.denies);
    }
    return patch.call(agent.cluster, ref, body);
  };
  return { lab, principal, agent, state, leave, shown: () => lab.hub.objects.get(onHub) };
}

test.each(refusals)(
  'an operation that is refused for a while (%i %o) is shown, and carried out once',
  async (status, more) => {
    const { lab, agent, state, shown } = await fleet();
    state.denies = answer(status, more);
    lab.hub.objects.patch(onHub, { operation });
    await lab.run(60_000);
    expect(shown()?.operation).toEqual(operation);
    expect(shown()?.status?.conditions).toMatchObject([
      { type: 'AgentError', message: `operation not started: refused with ${status}` },
    ]);
    expect(shown()?.status?.health, 'it is no fault of the Application').toBeUndefined();
    expect(agent.sync.stats().retrying).toBeGreaterThan(0);
    state.denies = undefined;
    await lab.run(600_000);
    expect(agent.copy()?.operation).toEqual(operation);
    expect(shown()?.status?.conditions ?? []).toEqual([]);

    agent.cluster.objects.patch(onCluster, {
      operation: null,
      status: { operationState: { phase: 'Succeeded', operation, startedAt: 't1' } },
    });
    await lab.run(3_600_000);
    expect(agent.copy()?.operation).toBeUndefined();
    expect(shown()?.operation).toBeUndefined();
  },
);

test.each(refusals)('a termination that is refused for a while (%i %o) is carried out', async (status, more) => {
  const { lab, agent, state, shown } = await fleet();
  lab.hub.objects.patch(onHub, { operation });
  await lab.run(1_000);
  agent.cluster.objects.patch(onCluster, {
    status: { operationState: { phase: 'Running', operation, startedAt: 't1' } },
  });
  await lab.run(1_000);
  state.denies = answer(status, more);
  lab.hub.objects.patch(onHub, { status: { operationState: { phase: 'Terminating' } } });
  await lab.run(60_000);
  expect(agent.copy()?.status?.operationState?.phase).toBe('Running');
  expect(shown()?.status?.conditions).toMatchObject([{ message: `operation not terminated: refused with ${status}` }]);
  state.denies = undefined;
  await lab.run(600_000);
  expect(agent.copy()?.status?.operationState?.phase).toBe('Terminating');
  expect(shown()?.status?.conditions ?? []).toEqual([]);
});

test('nothing waits for an operation that is refused', async () => {
  const { lab, agent, state } = await fleet();
  state.denies = answer(422);
  lab.hub.objects.patch(onHub, { operation });
  await lab.run(60_000);
  lab.hub.objects.patch(onHub, { spec: { source: { path: 'p1' } } });
  await lab.run(3_000);
  expect(agent.copy()?.spec.source).toEqual({ path: 'p1' });
});

test('an operation that is refused outlives the agent, and a newer one takes its place', async () => {
  const { lab, principal, agent, state, leave } = await fleet();
  state.denies = answer(422);
  lab.hub.objects.patch(onHub, { operation });
  await lab.run(60_000);
  leave();
  agent.stop.abort();
  const next = lab.agent({}, agent.cluster);
  lab.join(principal, next);
  await lab.run(60_000);
  const second = { sync: { revision: 'r2' } };
  lab.hub.objects.patch(onHub, { operation: second });
  await lab.run(60_000);
  state.denies = undefined;
  await lab.run(600_000);
  expect(next.copy()?.operation).toEqual(second);
});

test('an operation that is withdrawn while it is refused is not carried out', async () => {
  const { lab, agent, state, shown } = await fleet();
  state.denies = answer(422);
  lab.hub.objects.patch(onHub, { operation });
  await lab.run(60_000);
  lab.hub.objects.patch(onHub, { operation: null });
  await lab.run(60_000);
  state.denies = undefined;
  await lab.run(600_000);
  expect(agent.copy()?.operation).toBeUndefined();
  expect(shown()?.status?.conditions ?? []).toEqual([]);
});

test("argocd-agent's principal, which sends nothing else before the acknowledgement, gets it at once", async () => {
  const lab = new Lab();
  const agent = lab.agent();
  agent.connect();
  const hub = hubApplication({ uid: 'u', resourceVersion: '5' });
  const incoming = (type: 'create' | 'set-operation', object = hub): Message => ({
    target: 'application',
    type,
    principalUid: 'p',
    resourceId: 'shop_u',
    eventId: 'shop_u_5',
    object,
  });
  agent.sync.receive(incoming('create'));
  await lab.run();
  let denies = true;
  agent.cluster.intercept = (call) => {
    if (call === 'patch' && denies) {
      throw answer(422);
    }
  };
  agent.sync.receive(incoming('set-operation', { ...hub, operation }));
  await lab.run(1_000);
  expect(agent.acknowledged).toHaveLength(2);
  denies = false;
  await lab.run(600_000);
  expect(agent.copy()?.operation).toEqual(operation);
  expect(agent.acknowledged).toHaveLength(2);
});
