import { expect, test } from 'vitest';
import type { ObjectRef } from '../../sync/index.ts';
import { type Application, annotations, type Message } from '../index.ts';
import { hubApplication, Lab, type LabAgent, LabCluster, sentMessages } from '../testing/lab.ts';

const hubRef: ObjectRef = { namespace: 'a', name: 'shop' };
const ref: ObjectRef = { namespace: 'argocd', name: 'shop' };
const first = { sync: { revision: '1' } };
const second = { sync: { revision: '2' } };
const resources = 'resources-finalizer.argocd.argoproj.io';

/** What Argo CD makes of an operation when it begins, and when it ends: then it removes whatever is set. */
function begins({ cluster }: LabAgent, startedAt: string) {
  const { operation } = cluster.objects.get(ref) ?? {};
  cluster.objects.patch(ref, {
    status: { operationState: { phase: 'Running', operation, startedAt, finishedAt: null } },
  });
}
function ends({ cluster }: LabAgent) {
  cluster.objects.patch(ref, { operation: null, status: { operationState: { phase: 'Succeeded', finishedAt: 'e' } } });
}

/** The first operation runs on the copy, and the hub shows it; then its user asks for the second. */
async function askedTwice() {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication());
  const principal = lab.principal();
  const agent = lab.agent();
  const leave = lab.join(principal, agent);
  await lab.run(3_000);
  const ask = (operation: object | null) => lab.hub.objects.patch(hubRef, { operation });
  ask(first);
  await lab.run();
  begins(agent, 't1');
  await lab.run(100);
  expect(lab.hub.objects.get(hubRef)?.status?.operationState).toMatchObject({ phase: 'Running' });
  ask(second);
  await lab.run(100);
  expect(agent.copy()?.operation, 'Argo CD would forget the second with the end of the first').toEqual(first);
  expect(lab.hub.objects.get(hubRef)?.operation, 'still asked for').toEqual(second);
  return { lab, principal, agent, ask, leave };
}

test('a second operation waits for the end of the first, is done once, and is asked for until then', async () => {
  const { lab, principal, agent } = await askedTwice();
  await lab.run(900_000);
  expect(agent.applications.stats().queued, 'however long the first takes').toBe(1);
  ends(agent);
  await lab.run(100);
  expect(agent.copy()?.operation).toEqual(second);
  expect(agent.copy()?.status?.operationState, 'Argo CD would resume with the results of the first').toBeUndefined();
  expect(lab.hub.objects.get(hubRef)?.operation).toEqual(second);
  begins(agent, 't2');
  ends(agent);
  await lab.run(300_000);
  expect(agent.copy()?.operation).toBeUndefined();
  expect(lab.hub.objects.get(hubRef)?.operation).toBeUndefined();
  expect([agent.sync.stats(), principal.sync.stats('a')]).toEqual(
    [0, 0].map((none) => ({ pending: none, inFlight: none, queued: none, retrying: none })),
  );
});

test.each([false, true])(
  'an operation that is asked for again as argocd-server does it, which removes the state before, is done again (refreshed meanwhile: %s)',
  async (isRefreshed) => {
    const lab = new Lab();
    lab.hub.objects.create(hubApplication({ creationTimestamp: '2026-01-02T00:00:00Z' }));
    const agent = lab.agent();
    lab.join(lab.principal(), agent);
    await lab.run(3_000);
    for (const startedAt of ['2026-01-02T00:00:01Z', '2026-01-02T00:00:02Z', '2026-01-02T00:00:03Z']) {
      lab.hub.objects.patch(hubRef, { operation: first, status: { operationState: null } });
      await lab.run(1_000);
      expect(agent.copy()?.operation).toEqual(first);
      begins(agent, startedAt);
      await lab.run(1_000);
      ends(agent);
      await lab.run(1_000);
      expect(lab.hub.objects.get(hubRef)?.operation).toBeUndefined();
      expect(lab.hub.objects.get(hubRef)?.status?.operationState).toMatchObject({ phase: 'Succeeded', startedAt });
      if (isRefreshed) {
        agent.cluster.objects.patch(ref, { status: { reconciledAt: startedAt } });
        await lab.run(1_000);
      }
    }
  },
);

test.each(['the agent', 'the principal'])(
  'a second operation that waits is done although %s starts anew',
  async (who) => {
    const { lab, principal, agent, leave } = await askedTwice();
    leave();
    const isAgent = who === 'the agent';
    (isAgent ? agent : principal).stop.abort();
    const next = isAgent ? lab.agent({}, agent.cluster) : agent;
    lab.join(isAgent ? principal : lab.principal(), next);
    await lab.run(10_000);
    expect(next.copy()?.operation).toEqual(first);
    ends(next);
    await lab.run(10_000);
    expect(next.copy()?.operation).toEqual(second);
    begins(next, '2026-01-02T00:00:00Z');
    ends(next);
    await lab.run(300_000);
    expect(next.copy()?.operation).toBeUndefined();
    expect(lab.hub.objects.get(hubRef)?.operation).toBeUndefined();
  },
);

test('an operation that is taken back before it began is not done', async () => {
  const { lab, principal, agent, ask } = await askedTwice();
  ask(null);
  await lab.run(10_000);
  expect(agent.copy()?.operation, 'what has begun goes on').toEqual(first);
  ends(agent);
  await lab.run(10_000);
  expect(agent.copy()?.operation).toBeUndefined();
  expect(principal.sync.stats('a')).toMatchObject({ pending: 0, inFlight: 0 });
});

test('what is asked for last is done, and what else changes does not wait for it', async () => {
  const { lab, agent, ask } = await askedTwice();
  ask({ sync: { revision: '3' } });
  lab.hub.objects.patch(hubRef, { spec: { source: { path: 'p1' } } });
  await lab.run(3_000);
  expect(agent.copy()?.spec.source).toEqual({ path: 'p1' });
  ends(agent);
  await lab.run(3_000);
  expect(agent.copy()?.operation).toEqual({ sync: { revision: '3' } });
});

test('the first can be ended while the second waits; what was seen to run is ended, and nothing else', async () => {
  const { lab, principal, agent } = await askedTwice();
  const terminate = () => lab.hub.objects.patch(hubRef, { status: { operationState: { phase: 'Terminating' } } });
  terminate();
  await lab.run(100);
  expect(agent.copy()?.status?.operationState?.phase).toBe('Terminating');
  ends(agent);
  await lab.run(100);
  expect(agent.copy()?.operation).toEqual(second);

  begins(agent, 't2');
  const wish = sentMessages(principal, 'terminate-operation').at(-1);
  if (wish !== undefined) {
    agent.sync.receive({ ...wish, eventId: 'late' });
  }
  await lab.run(100);
  expect(agent.copy()?.status?.operationState?.phase, 'the wish was about the first').toBe('Running');
});

test('an operation that Argo CD goes on with, as its controller may, is ended again, and no other one', async () => {
  const { lab, agent } = await askedTwice();
  const phase = () => agent.copy()?.status?.operationState?.phase;
  lab.hub.objects.patch(hubRef, { status: { operationState: { phase: 'Terminating' } } });
  await lab.run(100);
  for (let round = 0; round < 3; round++) {
    expect(phase()).toBe('Terminating');
    agent.cluster.objects.patch(ref, { status: { operationState: { phase: 'Running' } } });
    await lab.run(100);
  }
  expect(phase()).toBe('Terminating');
  ends(agent);
  await lab.run(100);
  begins(agent, 't2');
  await lab.run(3_000);
  expect(phase()).toBe('Running');
});

test('an operation waits while its copy is being deleted here, and is done to the next one', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication({ finalizers: [resources] }));
  const principal = lab.principal();
  const agent = lab.agent();
  const leave = lab.join(principal, agent);
  await lab.run(3_000);
  agent.cluster.objects.delete(ref, { propagation: 'Background' });
  await lab.run(100);
  lab.hub.objects.patch(hubRef, { operation: first });
  await lab.run(100);
  leave();
  agent.stop.abort();
  const next = lab.agent({}, agent.cluster);
  lab.join(principal, next);
  await lab.run(10_000);
  expect(lab.hub.objects.get(hubRef)?.operation).toEqual(first);
  agent.cluster.objects.patch(ref, { metadata: { finalizers: [] } });
  await lab.run(10_000);
  expect(next.copy()?.operation).toEqual(first);
});

test('an operation waits for a copy of which an agent that started anew has not heard yet', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication());
  const principal = lab.principal();
  const cluster = new LabCluster('agent', lab.time);
  cluster.intercept = (call) => {
    if (call === 'create') {
      throw Object.assign(new Error('no'), { status: 403 });
    }
  };
  const agent = lab.agent({}, cluster);
  const leave = lab.join(principal, agent);
  await lab.run(3_000);
  expect(agent.acknowledged.filter((one) => one.startsWith('create'))).toHaveLength(1);
  leave();
  agent.stop.abort();
  cluster.intercept = () => undefined;
  lab.hub.objects.patch(hubRef, { operation: first });
  const next = lab.agent({}, cluster);
  lab.join(principal, next);
  await lab.run(10_000);
  expect(next.copy()?.operation).toEqual(first);
});

const hub = (operation?: object, more: Partial<Application> = {}): Application => ({
  ...hubApplication({ uid: 'u', resourceVersion: '5' }, more),
  ...(operation === undefined ? {} : { operation: { ...operation } }),
});

/** A message of argocd-agent's principal, which waits for the acknowledgement with all else. */
function incoming(type: 'create' | 'set-operation', object: Application): Message {
  return { target: 'application', type, principalUid: 'p', resourceId: 'shop_u', eventId: 'shop_u_5', object };
}

/** An agent on whose copy the first operation runs, and which has got the second. */
async function withPrincipalOfArgocdAgent() {
  const lab = new Lab();
  const agent = lab.agent();
  agent.connect();
  agent.sync.receive(incoming('create', hub(first)));
  await lab.run();
  expect(agent.copy()?.operation, 'it sends one along with a creation').toEqual(first);
  begins(agent, 't1');
  agent.sync.receive(incoming('set-operation', hub(second)));
  await lab.run();
  expect(agent.acknowledged).toEqual(['create shop_u shop_u_5', 'set-operation shop_u shop_u_5']);
  expect(agent.copy()?.operation).toEqual(first);
  return { lab, agent };
}

const note = (agent: LabAgent) => agent.copy()?.metadata.annotations?.[annotations.waitingOperation];

test('an operation of a principal that waits for the acknowledgement with all else is acknowledged at once', async () => {
  const { lab, agent } = await withPrincipalOfArgocdAgent();
  ends(agent);
  await lab.run();
  expect(agent.copy()?.operation).toEqual(second);
  expect(agent.acknowledged, 'once').toHaveLength(2);
});

test('what was acknowledged at once is done although the agent starts anew, and once', async () => {
  const { lab, agent } = await withPrincipalOfArgocdAgent();
  agent.stop.abort();
  const next = lab.agent({}, agent.cluster);
  next.connect();
  // An update of the hub leaves alone what the agent noted.
  next.sync.receive({
    ...incoming('create', hub(undefined, { spec: { source: { path: 'p1' } } })),
    eventId: 'shop_u_6',
  });
  await lab.run(5_000);
  expect(next.copy()?.spec.source).toEqual({ path: 'p1' });
  expect(next.copy()?.operation).toEqual(first);
  expect(note(next)).toBeDefined();
  expect(next.applications.stats().queued).toBe(1);
  const { writes } = next.cluster;
  ends(next);
  await lab.run();
  expect(next.copy()?.operation).toEqual(second);
  expect(note(next)).toBeUndefined();
  expect(next.cluster.writes, 'in one').toBe(writes + 1);
  next.stop.abort();
  begins(next, 't2');
  ends(next);
  const last = lab.agent({}, agent.cluster);
  last.connect();
  await lab.run(5_000);
  expect(last.copy()?.operation).toBeUndefined();
  expect(last.applications.stats().queued).toBe(0);
});

test.each([
  ['that it ends while no agent runs', 'nothing'],
  ['that nobody can read', 'note'],
  ['of another source', 'source'],
])('what is noted of an operation on a copy: %s', async (_, spoilt) => {
  const { lab, agent } = await withPrincipalOfArgocdAgent();
  agent.stop.abort();
  if (spoilt === 'note') {
    agent.cluster.objects.patch(ref, { metadata: { annotations: { [annotations.waitingOperation]: '{"object":1' } } });
  } else if (spoilt === 'source') {
    agent.cluster.objects.patch(ref, { metadata: { annotations: { [annotations.sourceUid]: 'v' } } });
  }
  ends(agent);
  const next = lab.agent({}, agent.cluster);
  next.connect();
  await lab.run(5_000);
  expect(next.copy()?.operation).toEqual(spoilt === 'nothing' ? second : undefined);
});

test('an operation that is too long for a note is done all the same', async () => {
  const { lab, agent } = await withPrincipalOfArgocdAgent();
  const long = { sync: { manifests: ['x'.repeat(100_000)] } };
  const message = incoming('set-operation', { ...hub(long), metadata: { ...hub().metadata, resourceVersion: '6' } });
  agent.sync.receive({ ...message, eventId: 'shop_u_6' });
  await lab.run();
  expect(note(agent), 'what was asked for before is out of date').toBeUndefined();
  ends(agent);
  await lab.run();
  expect(agent.copy()?.operation).toEqual(long);
});

test.each([
  ['before it has heard of the end', false],
  ['since it has heard of the end', true],
])('the same operation, asked for by the principal %s', async (_, isKnown) => {
  const lab = new Lab();
  const agent = lab.agent();
  let isAcknowledging = true;
  const connection = {
    send: (message: Message) => {
      agent.sent.push(message);
      if (isAcknowledging) {
        agent.sync.acknowledged(message);
      }
      return true;
    },
    acknowledge: () => undefined,
  };
  agent.sync.connected(connection, { agent: 'a', principalNamespace: 'argocd' });
  const metadata = { ...hub().metadata, creationTimestamp: '2026-01-01T00:00:00Z' };
  const ask = (type: 'create' | 'set-operation', eventId: string, operation?: object) =>
    agent.sync.receive({ ...incoming(type, { ...hub(operation), metadata }), eventId });
  ask('create', 'e1');
  ask('set-operation', 'e2', first);
  await lab.run();
  begins(agent, '2026-01-01T00:00:01Z');
  await lab.run();
  isAcknowledging = false;
  ends(agent);
  await lab.run();
  const report = sentMessages(agent, 'status-update').at(-1);
  expect(report?.object.status?.operationState?.phase).toBe('Succeeded');
  const acknowledge = () => agent.sync.acknowledged({ resourceId: '', eventId: '', ...report });
  if (isKnown) {
    acknowledge();
  }
  // It has to wait for its turn.
  ask('create', 'e3');
  ask('set-operation', 'e4', first);
  if (!isKnown) {
    acknowledge();
  }
  await lab.run();
  expect(agent.copy()?.operation).toEqual(isKnown ? first : undefined);
});

test('the end of the former operation does not come back while the request for a new one is on its way', async () => {
  const lab = new Lab();
  const principal = lab.principal();
  const agent = lab.agent();
  lab.join(principal, agent);
  lab.hub.objects.create(hubApplication());
  await lab.run(1_000);
  agent.cluster.objects.patch(ref, {
    status: { operationState: { phase: 'Succeeded', operation: first, startedAt: 't1' } },
  });
  await lab.run(1_000);
  expect(lab.hub.objects.get(hubRef)?.status?.operationState?.phase).toBe('Succeeded');
  const seen: unknown[] = [];
  lab.hub.objects.watch(({ now }) => seen.push(now?.status?.operationState?.phase));
  agent.cluster.objects.patch(ref, { status: { health: { status: 'Healthy' } } });
  // As argocd-server asks.
  lab.hub.objects.patch(hubRef, { operation: first, status: { operationState: null } });
  await lab.run(5_000);
  expect(agent.copy()?.operation).toEqual(first);
  expect(lab.hub.objects.get(hubRef)?.status?.health?.status).toBe('Healthy');
  expect(seen).not.toContain('Succeeded');
  agent.cluster.objects.patch(ref, {
    operation: null,
    status: { operationState: { phase: 'Succeeded', operation: first, startedAt: 't2' } },
  });
  await lab.run(5_000);
  expect(lab.hub.objects.get(hubRef)?.status?.operationState).toMatchObject({ phase: 'Succeeded', startedAt: 't2' });
});

test('an operation on an Application that took the place of one that is leaving is carried out', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication({ finalizers: [resources] }));
  const agent = lab.agent();
  lab.join(lab.principal(), agent);
  await lab.run(1_000);
  // The agent has the last state of the former one late.
  agent.cluster.intercept = (call) => {
    if (call === 'patch') {
      throw Object.assign(new Error('504'), { status: 504 });
    }
  };
  lab.hub.objects.patch(hubRef, { metadata: { finalizers: null } });
  await lab.run(100);
  lab.hub.objects.delete(hubRef, {});
  const { uid } = lab.hub.objects.create(hubApplication()).metadata;
  await lab.run(100);
  lab.hub.objects.patch(hubRef, { operation: first });
  await lab.run(100);
  agent.cluster.intercept = () => undefined;
  await lab.run(60_000);
  expect(agent.copy()?.metadata.annotations?.[annotations.sourceUid]).toBe(uid);
  expect(agent.copy()?.operation).toEqual(first);
});
