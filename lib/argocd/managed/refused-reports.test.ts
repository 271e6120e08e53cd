import { expect, test } from 'vitest';
import { hubApplication, Lab, sentMessages } from '../testing/lab.ts';

const onHub = { namespace: 'a', name: 'shop' };
const onCluster = { namespace: 'argocd', name: 'shop' };

/** What an API server answers to a write that it refuses. */
const answer = (status: number, more: object = {}) =>
  Object.assign(new Error(`refused with ${status}`), { status, ...more });

/** A hub and an agent with one Application. While `denies` is set, the hub's API server answers every patch with it. */
async function fleet(metadata: object = {}) {
  const lab = new Lab();
  const told: string[] = [];
  const principal = lab.principal({
    onRefused: (agent, { name }, reason) => void told.push(`${agent} ${name}: ${reason}`),
  });
  const agent = lab.agent();
  const join = () => lab.join(principal, agent);
  const leave = join();
  lab.hub.objects.create(hubApplication(metadata));
  await lab.run(1_000);
  const state: { denies: Error | undefined } = { denies: undefined };
  lab.hub.intercept = (call) => {
    if (call === 'patch' && state.denies !== undefined) {
      throw state.denies;
    }
  };
  const report = (health: string) => agent.cluster.objects.patch(onCluster, { status: { health: { status: health } } });
  return { lab, agent, principal, told, join, leave, state, report, shown: () => lab.hub.objects.get(onHub) };
}

const refusals: [number, object][] = [
  [400, { reason: 'BadRequest' }],
  [403, { reason: 'Forbidden' }],
  [409, { reason: 'Conflict' }],
  [413, { reason: 'RequestEntityTooLarge' }],
  [422, { reason: 'Invalid' }],
  [429, { reason: 'TooManyRequests' }],
  [500, { reason: 'InternalError' }],
  [500, { message: 'etcdserver: request is too large' }],
];

test.each(refusals)('a report that is refused for ten minutes (%i %o) is written afterwards', async (status, more) => {
  const { lab, state, report, shown } = await fleet();
  state.denies = answer(status, more);
  report('Healthy');
  await lab.run(600_000);
  expect(shown()?.status?.health).toBeUndefined();
  state.denies = undefined;
  await lab.run(600_000);
  expect(shown()?.status).toEqual({ health: { status: 'Healthy' } });
});

test.each(refusals)('the end of a deletion that is refused for ten minutes (%i %o)', async (status, more) => {
  const { lab, agent, state, shown } = await fleet({ finalizers: ['resources-finalizer.argocd.argoproj.io'] });
  state.denies = answer(status, more);
  lab.hub.objects.delete(onHub, { propagation: 'Background' });
  await lab.run(1_000);
  agent.cluster.objects.patch(onCluster, { metadata: { finalizers: null } });
  await lab.run(600_000);
  expect(agent.copy()).toBeUndefined();
  state.denies = undefined;
  await lab.run(600_000);
  expect(shown()).toBeUndefined();
});

test('what is refused survives a new connection', async () => {
  const { lab, state, report, shown, leave, join } = await fleet();
  state.denies = answer(422);
  report('Healthy');
  await lab.run(60_000);
  leave();
  await lab.run(1_000);
  join();
  await lab.run(60_000);
  state.denies = undefined;
  await lab.run(600_000);
  expect(shown()?.status?.health).toEqual({ status: 'Healthy' });
});

test('what is refused survives a new principal', async () => {
  const { lab, agent, principal, state, report, shown, leave } = await fleet();
  state.denies = answer(422);
  report('Healthy');
  await lab.run(60_000);
  leave();
  principal.stop.abort();
  lab.join(lab.principal(), agent);
  await lab.run(60_000);
  state.denies = undefined;
  await lab.run(600_000);
  expect(shown()?.status?.health).toEqual({ status: 'Healthy' });
});

test('a refused report waits for no acknowledgement, and a newer one takes its place', async () => {
  const { lab, agent, state, report, shown } = await fleet();
  state.denies = answer(422);
  report('Progressing');
  await lab.run(60_000);
  expect(agent.sync.stats().pending).toBe(0);
  state.denies = undefined;
  report('Healthy');
  await lab.run(100);
  expect(shown()?.status?.health).toEqual({ status: 'Healthy' });
  const { writes } = lab.hub;
  await lab.run(3_600_000);
  expect(lab.hub.writes).toBe(writes);
  expect(sentMessages(agent, 'status-update').length).toBeLessThan(10);
});

test('the end of a deletion does not wait for a report that is refused for what it says', async () => {
  const { lab, agent, report, shown } = await fleet({ finalizers: ['resources-finalizer.argocd.argoproj.io'] });
  let writes = 0;
  lab.hub.patch = new Proxy(lab.hub.patch, {
    apply: (patch, hub, [ref, body]) => {
      writes++;
      return body.status === undefined ? Reflect.apply(patch, hub, [ref, body]) : Promise.reject(answer(422));
    },
  });
  report('Healthy');
  await lab.run(120_000);
  lab.hub.objects.delete(onHub, { propagation: 'Background' });
  await lab.run(1_000);
  agent.cluster.objects.patch(onCluster, { metadata: { finalizers: null } });
  await lab.run(1_000);
  expect(shown()).toBeUndefined();
  expect(writes).toBeLessThan(20);
});

test.each(refusals)('within a minute it is told that a report is refused (%i %o), and once', async (status, more) => {
  const { lab, principal, state, report, told } = await fleet();
  state.denies = answer(status, more);
  report('Healthy');
  await lab.run(15_000);
  expect(told).toEqual([]);
  await lab.run(45_000);
  expect(told).toHaveLength(1);
  expect(told[0]).toContain(`a shop: ${state.denies.message}`);
  await lab.run(3_600_000);
  expect(told).toHaveLength(1);
  const { queued, retrying } = principal.sync.stats('a');
  expect(queued + retrying).toBeGreaterThan(0);
});

test('the Application shows that its status is refused, as long as it is', async () => {
  const { lab, state, report, shown } = await fleet();
  lab.hub.patch = new Proxy(lab.hub.patch, {
    apply: (patch, hub, [ref, body]) =>
      state.denies !== undefined && body.status?.health !== undefined
        ? Promise.reject(state.denies)
        : Reflect.apply(patch, hub, [ref, body]),
  });
  const denied = answer(500, { message: 'etcdserver: request is too large' });
  state.denies = denied;
  lab.hub.intercept = () => undefined;
  report('Healthy');
  await lab.run(60_000);
  expect(shown()?.status?.conditions).toMatchObject([
    {
      type: 'AgentWarning',
      message:
        'what agent a reports cannot be written here: etcdserver: request is too large; it is too large for the API server and has to be made smaller',
    },
  ]);
  state.denies = undefined;
  await lab.run(600_000);
  expect(shown()?.status).toEqual({ health: { status: 'Healthy' } });
});

test('an API server that cannot be reached is no refusal of an Application', async () => {
  const { lab, state, report, told, shown } = await fleet();
  state.denies = new Error('connection refused');
  report('Healthy');
  await lab.run(600_000);
  expect(told).toEqual([]);
  state.denies = undefined;
  await lab.run(60_000);
  expect(shown()?.status).toEqual({ health: { status: 'Healthy' } });
});
