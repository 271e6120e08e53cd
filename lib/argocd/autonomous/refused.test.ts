import { expect, test } from 'vitest';
import { annotations } from '../index.ts';
import { alone, incoming, own } from './testing/alone.ts';
import { joined, ownApplication, StagePrincipal } from './testing/stage.ts';

const local = { namespace: 'argocd', name: 'shop' };
const hubRef = { namespace: 'a', name: 'shop' };
const operation = { sync: { revision: 'r1' } };

const answer = (status: number, message = `refused with ${status}`) => Object.assign(new Error(message), { status });

async function fleet() {
  const { lab, principal, agent } = joined();
  agent.cluster.objects.create(ownApplication());
  await lab.run(5_000);
  const state: { denies: Error | undefined } = { denies: undefined };
  agent.cluster.intercept = (call) => {
    if (call === 'patch' && state.denies !== undefined) {
      throw state.denies;
    }
  };
  return { lab, principal, agent, state, conditions: () => principal.mirror()?.status?.conditions ?? [] };
}

test.each([400, 403, 409, 413, 422, 429, 500])(
  'an operation that the cluster refuses for a while (%i) is shown on the mirror, and carried out once',
  async (status) => {
    const { lab, principal, agent, state, conditions } = await fleet();
    state.denies = answer(status);
    lab.hub.objects.patch(hubRef, { operation });
    await lab.run(60_000);
    expect(principal.mirror()?.operation).toEqual(operation);
    expect(conditions()).toMatchObject([
      { type: 'AgentError', message: `operation not started: refused with ${status}` },
    ]);
    state.denies = undefined;
    await lab.run(600_000);
    expect(agent.application()?.operation).toEqual(operation);
    expect(conditions()).toEqual([]);
    agent.cluster.objects.patch(local, {
      operation: null,
      status: { operationState: { phase: 'Succeeded', operation, startedAt: 't1' } },
    });
    await lab.run(600_000);
    expect(agent.application()?.operation).toBeUndefined();
    expect(principal.mirror()?.operation).toBeUndefined();
    expect(conditions()).toEqual([]);
  },
);

test('a refresh that the cluster refuses for a while is made, and another request does not wait for it', async () => {
  const { lab, principal, agent, state, conditions } = await fleet();
  state.denies = answer(422);
  lab.hub.objects.patch(hubRef, { metadata: { annotations: { [annotations.refresh]: 'hard' } } });
  await lab.run(60_000);
  expect(conditions()).toMatchObject([{ message: 'not refreshed: refused with 422' }]);
  state.denies = undefined;
  lab.hub.objects.patch(hubRef, { operation });
  await lab.run(20_000);
  expect(agent.application()?.operation).toEqual(operation);
  await lab.run(600_000);
  expect(agent.application()?.metadata.annotations?.[annotations.refresh]).toBe('hard');
  agent.cluster.objects.patch(local, { metadata: { annotations: { [annotations.refresh]: null } } });
  await lab.run(1_000);
  expect(principal.mirror()?.metadata.annotations?.[annotations.refresh]).toBeUndefined();
});

test('a termination that the cluster refuses for a while is carried out, and acknowledged then', async () => {
  const { lab, principal, agent, state } = await fleet();
  const running = { phase: 'Running', operation, startedAt: 't1' };
  agent.cluster.objects.patch(local, { operation, status: { operationState: running } });
  await lab.run(1_000);
  state.denies = answer(422);
  lab.hub.objects.patch(hubRef, { status: { operationState: { phase: 'Terminating' } } });
  await lab.run(60_000);
  state.denies = undefined;
  await lab.run(600_000);
  expect(agent.application()?.status?.operationState?.phase).toBe('Terminating');
  expect(principal.sync.stats('a')).toMatchObject({ pending: 0 });
});

test.each([500, 503])(
  'a mirror that the hub refuses for more than a minute (%i) is told of, and made later',
  async (status) => {
    const { lab, principal, agent } = joined();
    let denies = true;
    lab.hub.intercept = (call) => {
      if (call === 'create' && denies) {
        throw answer(status, 'failed calling webhook');
      }
    };
    agent.cluster.objects.create(ownApplication());
    await lab.run(60_000);
    expect(principal.failures).toMatchObject([{ agent: 'a', name: 'shop', message: 'failed calling webhook' }]);
    denies = false;
    await lab.run(600_000);
    expect(principal.mirror()).toBeDefined();
  },
);

test.each([400, 403, 413, 422, 500])(
  'a status that the hub refuses for a while (%i) is written to the mirror later',
  async (code) => {
    const { lab, principal, agent } = await fleet();
    let denies = true;
    lab.hub.intercept = (call) => {
      if (call === 'patch' && denies) {
        throw answer(code);
      }
    };
    agent.cluster.objects.patch(local, { status: { health: { status: 'Healthy' } } });
    await lab.run(60_000);
    expect(principal.failures).toMatchObject([{ name: 'shop', message: `refused with ${code}` }]);
    denies = false;
    await lab.run(600_000);
    expect(principal.mirror()?.status?.health).toEqual({ status: 'Healthy' });
  },
);

test('a status that the hub refuses is asked of a Go agent after a restart of the principal', async () => {
  const { lab, principal } = await alone();
  lab.hub.intercept = (call) => {
    if (call === 'patch') {
      throw answer(403);
    }
  };
  const report = incoming('spec-update', own('old', { status: { health: { status: 'Healthy' } } }));
  principal.receive(report);
  await lab.run(1_000);
  expect(principal.acknowledged).toContainEqual(expect.stringContaining('spec-update'));
  principal.stop.abort();
  lab.hub.intercept = () => undefined;
  const restarted = new StagePrincipal(lab);
  restarted.connect();
  await lab.run(1_000);
  const asked = () => restarted.sent.filter(({ type }) => type === 'request-update');
  expect(asked()).toMatchObject([{ payload: { name: 'shop', uid: 'old', checksum: null } }]);
  restarted.receive(report);
  await lab.run(1_000);
  expect(restarted.mirror()?.status?.health).toEqual({ status: 'Healthy' });
  expect(restarted.mirrors.syncFor('a').reportOf(hubRef)).toMatchObject({ checksum: expect.any(String) });
});

test('an Application that the principal cannot read is told of', async () => {
  const { lab, principal } = joined();
  principal.sync.unreadable('a', { target: 'application', ...local, name: 'odd', reason: 'spec: expected object' });
  await lab.run();
  expect(principal.failures).toMatchObject([
    { name: 'odd', message: 'what the agent sent cannot be read: spec: expected object' },
  ]);
});

test('the end of the former operation does not come back while the request for a new one is on its way', async () => {
  const { lab, principal, agent, disconnect } = joined();
  void disconnect;
  const former = { phase: 'Succeeded', operation, startedAt: 't1' };
  agent.cluster.objects.create(ownApplication({}, { status: { operationState: former } }));
  await lab.run(5_000);
  const seen: unknown[] = [];
  lab.hub.objects.watch(({ now }) => seen.push(now?.status?.operationState?.phase));
  agent.cluster.objects.patch(local, { status: { health: { status: 'Healthy' } } });
  lab.hub.objects.patch(hubRef, { operation: { sync: { revision: 'r2' } }, status: { operationState: null } });
  await lab.run(5_000);
  expect(agent.application()?.operation).toEqual({ sync: { revision: 'r2' } });
  expect(principal.mirror()?.status?.health).toEqual({ status: 'Healthy' });
  expect(seen).not.toContain('Succeeded');
});
