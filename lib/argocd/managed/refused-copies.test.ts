import { expect, test } from 'vitest';
import { skipSyncLabel } from '../index.ts';
import { hubApplication, Lab } from '../testing/lab.ts';

const onHub = { namespace: 'a', name: 'shop' };

const answer = (status: number, message: string) => Object.assign(new Error(message), { status });

const lasting: [number, string][] = [
  [500, 'failed calling webhook "x": connection refused'],
  [500, 'etcdserver: request is too large'],
  [409, 'a webhook denies it as a conflict'],
  [429, 'too many requests'],
  [503, 'unavailable'],
];

/** A hub with one Application, and an agent whose API server answers such calls with this while it is set. */
async function fleet() {
  const lab = new Lab();
  const principal = lab.principal();
  const agent = lab.agent();
  const connect = () => lab.join(principal, agent);
  const disconnect = connect();
  const state: { denies: Error | undefined; calls: readonly string[] } = { denies: undefined, calls: [] };
  agent.cluster.intercept = (call) => {
    if (state.denies !== undefined && state.calls.includes(call)) {
      throw state.denies;
    }
  };
  const shown = () => lab.hub.objects.get(onHub);
  return { lab, agent, state, shown, conditions: () => shown()?.status?.conditions ?? [], connect, disconnect };
}

test.each(lasting)(
  'a copy that cannot be made for more than a minute (%i %s) is shown on the hub',
  async (status, message) => {
    const { lab, agent, state, shown, conditions } = await fleet();
    state.denies = answer(status, message);
    state.calls = ['create', 'patch'];
    lab.hub.objects.create(hubApplication());
    await lab.run(60_000);
    expect(conditions()).toMatchObject([{ type: 'AgentError', message: expect.stringContaining(message) }]);
    expect(shown()?.status?.health?.status).toBe('Degraded');
    await lab.run(3_600_000);
    expect(agent.copy()).toBeUndefined();
    state.denies = undefined;
    await lab.run(600_000);
    expect(agent.copy()).toBeDefined();
    expect(conditions()).toEqual([]);
  },
);

test('a copy that can still not be made is shown to the principal that sends the Application anew', async () => {
  const { lab, agent, state, conditions, disconnect } = await fleet();
  state.denies = answer(400, 'no');
  state.calls = ['create'];
  lab.hub.objects.create(hubApplication());
  await lab.run(1_000);
  expect(conditions()).toMatchObject([{ type: 'AgentError' }]);
  // It is no agent's, or another one's, while a principal starts that knows nothing of before.
  const labelled = (value: string | null) =>
    lab.hub.objects.patch(onHub, { metadata: { labels: { [skipSyncLabel]: value } } });
  disconnect();
  labelled('true');
  lab.hub.objects.patch(onHub, { status: { conditions: null } });
  lab.join(lab.principal(), agent);
  await lab.run(10_000);
  labelled(null);
  await lab.run(1_000);
  expect(conditions()).toMatchObject([{ type: 'AgentError' }]);
});

test('a copy that can not be deleted stays and follows when its Application is back', async () => {
  const { lab, agent, state, conditions } = await fleet();
  lab.hub.objects.create(hubApplication());
  await lab.run(1_000);
  state.denies = answer(400, 'no');
  state.calls = ['delete'];
  lab.hub.objects.patch(onHub, { metadata: { labels: { [skipSyncLabel]: 'true' } } });
  await lab.run(60_000);
  expect(agent.copy()).toBeDefined();
  lab.hub.objects.patch(onHub, { metadata: { labels: { [skipSyncLabel]: null } }, spec: { source: { path: 'p1' } } });
  await lab.run(60_000);
  expect(agent.copy()?.spec.source).toEqual({ path: 'p1' });
  expect(conditions()).toEqual([]);
});

test.each(lasting)('so is a copy that cannot be changed (%i %s)', async (status, message) => {
  const { lab, agent, state, conditions } = await fleet();
  lab.hub.objects.create(hubApplication());
  await lab.run(1_000);
  state.denies = answer(status, message);
  state.calls = ['patch'];
  lab.hub.objects.patch(onHub, { spec: { source: { path: 'p1' } } });
  await lab.run(60_000);
  expect(conditions()).toMatchObject([{ type: 'AgentError', message: expect.stringContaining(message) }]);
  state.denies = undefined;
  await lab.run(600_000);
  expect(agent.copy()?.spec.source).toEqual({ path: 'p1' });
  expect(conditions()).toEqual([]);
});

test.each([...lasting, [422, 'denied by policy'] as const])(
  'so is a copy that cannot be deleted (%i %s)',
  async (status, message) => {
    const { lab, agent, state, shown, conditions } = await fleet();
    lab.hub.objects.create(hubApplication({ finalizers: ['resources-finalizer.argocd.argoproj.io'] }));
    await lab.run(1_000);
    state.denies = answer(status, message);
    state.calls = ['patch', 'delete'];
    lab.hub.objects.delete(onHub, { propagation: 'Background' });
    await lab.run(60_000);
    expect(conditions()).toMatchObject([{ type: 'AgentError', message: expect.stringContaining(message) }]);
    state.denies = undefined;
    await lab.run(600_000);
    agent.cluster.objects.patch({ namespace: 'argocd', name: 'shop' }, { metadata: { finalizers: null } });
    await lab.run(600_000);
    expect(shown()).toBeUndefined();
  },
);

test.each(['missing', 'of the one before'])(
  'an Application that takes the place of a refused one shows the refusal, too (the copy is %s)',
  async (copy) => {
    const { lab, agent, state, conditions, disconnect, connect } = await fleet();
    state.calls = ['create', 'patch'];
    state.denies = copy === 'missing' ? answer(422, 'denied by policy') : undefined;
    lab.hub.objects.create(hubApplication());
    await lab.run(1_000);
    state.denies = answer(422, 'denied by policy');
    lab.hub.objects.patch(onHub, { spec: { source: { path: 'p1' } } });
    await lab.run(1_000);
    expect(conditions()).toMatchObject([{ type: 'AgentError' }]);
    disconnect();
    lab.hub.objects.delete(onHub, { propagation: 'Background' });
    lab.hub.objects.create(hubApplication());
    await lab.run(1_000);
    connect();
    await lab.run(60_000);
    expect(conditions()).toMatchObject([{ type: 'AgentError', message: expect.stringContaining('denied by policy') }]);
    state.denies = undefined;
    await lab.run(600_000);
    expect(agent.copy()).toBeDefined();
    expect(conditions()).toEqual([]);
  },
);

test('an Application shows that the one before it cannot be deleted', async () => {
  const { lab, agent, state, conditions } = await fleet();
  lab.hub.objects.create(hubApplication());
  await lab.run(1_000);
  state.denies = answer(405, 'not allowed');
  state.calls = ['patch', 'delete'];
  lab.hub.objects.delete(onHub, { propagation: 'Background' });
  await lab.run(10_000);
  lab.hub.objects.create(hubApplication());
  await lab.run(300_000);
  expect(conditions()).toMatchObject([{ type: 'AgentError', message: expect.stringContaining('not allowed') }]);
  state.denies = undefined;
  await lab.run(600_000);
  expect(agent.copy()?.metadata.annotations).toMatchObject({
    'argocd.argoproj.io/source-uid': lab.hub.objects.get(onHub)?.metadata.uid,
  });
  expect(conditions()).toEqual([]);
});

test.each(['its cluster refuses it', "somebody's own Application stands in its place"])(
  'that a copy cannot be made is shown after a restart of the principal, whatever the hub refused before: %s',
  async (reason) => {
    const lab = new Lab();
    const agent = lab.agent({ adoptionPolicy: 'never' });
    const own = reason.includes('own');
    if (own) {
      agent.cluster.objects.create(hubApplication({ namespace: 'argocd' }));
    }
    agent.cluster.intercept = () => {
      if (!own) {
        throw answer(422, 'denied by policy');
      }
    };
    lab.hub.intercept = (call) => {
      if (call === 'patch') {
        throw answer(413, 'too large');
      }
    };
    lab.hub.objects.create(hubApplication());
    const principal = lab.principal();
    lab.join(principal, agent);
    await lab.run(5_000);
    lab.hub.intercept = () => undefined;
    principal.stop.abort();
    lab.join(lab.principal(), agent);
    await lab.run(60_000);
    expect(lab.hub.objects.get(onHub)?.status?.conditions).toMatchObject([{ type: 'AgentError' }]);
  },
);

test('what passes within seconds is not shown', async () => {
  const { lab, agent, state, conditions } = await fleet();
  state.denies = answer(500, 'leader changed');
  state.calls = ['create'];
  lab.hub.objects.create(hubApplication());
  await lab.run(10_000);
  state.denies = undefined;
  await lab.run(20_000);
  expect(agent.copy()).toBeDefined();
  expect(conditions()).toEqual([]);
});

test('what can never pass says what to do', async () => {
  const { lab, state, conditions } = await fleet();
  state.denies = answer(500, 'etcdserver: request is too large');
  state.calls = ['create'];
  lab.hub.objects.create(hubApplication());
  await lab.run(1_000);
  expect(conditions()).toMatchObject([{ message: expect.stringMatching(/has to be made smaller$/) }]);
});
