import { expect, test } from 'vitest';
import type { ObjectRef } from '../../sync/index.ts';
import { type Application, annotations, type Message, skipSyncLabel } from '../index.ts';
import { isSkipped } from '../routing.ts';
import { hubApplication, Lab, type LabAgent, LabCluster, sentMessages } from '../testing/lab.ts';

const ref: ObjectRef = { namespace: 'a', name: 'shop' };
const local: ObjectRef = { namespace: 'argocd', name: 'shop' };
const resources = 'resources-finalizer.argocd.argoproj.io';
const source = annotations.sourceUid;

let events = 0;
function incoming(type: 'create' | 'spec-update' | 'set-operation', object: Application): Message {
  const resourceId = `shop_${object.metadata.uid}`;
  return {
    target: 'application',
    type,
    principalUid: 'p',
    resourceId,
    eventId: `${resourceId}_${++events}`,
    object,
  };
}

/** What somebody made on the managed cluster without the hub. */
const found = (more: Partial<Application['metadata']> = {}) =>
  hubApplication({ namespace: 'argocd', ...more }, { spec: { source: { path: 'own' } } });

async function agentThatFinds(
  lab: Lab,
  object: Application | undefined,
  options: ConstructorParameters<typeof LabAgent>[2] = {},
) {
  const cluster = new LabCluster('agent', lab.time);
  if (object !== undefined) {
    cluster.objects.create(object);
  }
  const agent = lab.agent(options, cluster);
  agent.connect();
  await lab.run();
  return agent;
}

const errors = (agent: LabAgent) =>
  agent.sent.flatMap((message) => (message.type === 'error' ? [message.error.message] : []));

test('adoption refused: the hub hears it, and the Application is taken over when its owner lets it', async () => {
  const lab = new Lab();
  const agent = await agentThatFinds(lab, found(), { adoptionPolicy: 'never' });
  agent.sync.receive(incoming('create', hubApplication({ uid: 'u' })));
  await lab.run(60_000);
  expect(agent.copy()?.spec.source).toEqual({ path: 'own' });
  expect(errors(agent)).toEqual(['an Application named argocd/shop exists and may not be adopted']);
  expect(agent.acknowledged, 'nothing is gained by repeating it').toHaveLength(1);
  agent.cluster.objects.patch(local, { metadata: { labels: { changed: 'yes' } } });
  await lab.run(60_000);
  expect(errors(agent), 'said once').toHaveLength(1);

  agent.cluster.objects.patch(local, { metadata: { annotations: { [annotations.adoptionPolicy]: 'always' } } });
  await lab.run();
  expect(agent.copy()).toMatchObject({
    spec: { source: { path: 'p0' } },
    metadata: { annotations: { [source]: 'u' } },
  });
  expect(sentMessages(agent, 'status-update').at(-1)?.object.status?.conditions).toBeUndefined();
});

test('adoption refused: a copy is made when the other one goes', async () => {
  const lab = new Lab();
  const agent = await agentThatFinds(lab, found(), { adoptionPolicy: 'never' });
  agent.sync.receive(incoming('create', hubApplication({ uid: 'u' })));
  await lab.run();
  agent.cluster.objects.delete(local, { propagation: 'Background' });
  await lab.run();
  expect(agent.copy()?.metadata.annotations?.[source]).toBe('u');
});

test('what is on the cluster alone is not told of, not changed and not missed', async () => {
  const lab = new Lab();
  const agent = await agentThatFinds(lab, found());
  agent.cluster.objects.patch(local, {
    spec: { source: { path: 'other' } },
    status: { health: { status: 'Healthy' } },
  });
  agent.cluster.objects.delete(local, { propagation: 'Background' });
  await lab.run(60_000);
  expect(agent.cluster.writes).toBe(0);
  expect(agent.sent.filter(({ target }) => target === 'application')).toEqual([]);
  expect(agent.sent.filter(({ type }) => type === 'request-update')).toEqual([]);
});

test.each([
  ['ignore', { sync: { status: 'Synced' }, operationState: { phase: 'Succeeded' } }, undefined],
  ['clear-status', { sync: { status: 'Synced' } }, undefined],
  ['resync', { sync: { status: 'Synced' }, operationState: { phase: 'Succeeded' } }, { sync: {} }],
] as const)(
  'a copy that somebody deleted is made again; on-application-recreate %s',
  async (policy, status, operation) => {
    const lab = new Lab();
    const agent = await agentThatFinds(lab, undefined, { onRecreate: policy });
    agent.sync.receive(incoming('create', hubApplication({ uid: 'u' })));
    await lab.run();
    agent.cluster.objects.patch(local, {
      status: { sync: { status: 'Synced' }, operationState: { phase: 'Succeeded' }, reconciledAt: 't' },
    });
    agent.cluster.objects.delete(local, { propagation: 'Background' });
    await lab.run();
    expect(agent.copy()?.status).toEqual(status);
    expect(agent.copy()?.operation).toEqual(operation);
    expect(sentMessages(agent, 'delete'), 'the hub is not asked').toEqual([]);
  },
);

test.each([
  ['recreate', undefined, false],
  ['upsert', undefined, true],
  ['recreate', 'upsert', true],
  ['upsert', 'recreate', false],
] as const)('source-uid mismatch: policy %s, on the hub object %s: kept in place: %s', async (policy, own, isKept) => {
  const lab = new Lab();
  const agent = await agentThatFinds(lab, found({ annotations: { [source]: 'old' } }), { mismatchPolicy: policy });
  const uid = agent.copy()?.metadata.uid;
  const marks = own === undefined ? {} : { annotations: { [annotations.mismatchPolicy]: own } };
  const hub = hubApplication({ uid: 'new', ...marks });
  agent.cluster.objects.patch(local, { metadata: { annotations: { [annotations.principalUid]: 'p' } } });
  agent.sync.receive(incoming('create', hub));
  await lab.run();
  expect(agent.copy()?.metadata.annotations?.[source]).toBe('new');
  expect(agent.copy()?.metadata.uid === uid).toBe(isKept);
});

test('a copy labelled out of synchronisation is left alone, said to be, and in step again without the label', async () => {
  const lab = new Lab();
  const agent = await agentThatFinds(lab, undefined);
  agent.cluster.isHidden = isSkipped;
  agent.sync.receive(incoming('create', hubApplication({ uid: 'u' })));
  await lab.run();
  agent.cluster.objects.patch(local, { metadata: { labels: { [skipSyncLabel]: 'true' } } });
  await lab.run(60_000);
  agent.cluster.objects.patch(local, { spec: { source: { path: 'mine' } } });
  agent.sync.receive(incoming('spec-update', hubApplication({ uid: 'u' }, { spec: { source: { path: 'p1' } } })));
  await lab.run(60_000);
  expect(agent.copy()).toMatchObject({
    spec: { source: { path: 'mine' } },
    metadata: { labels: { [skipSyncLabel]: 'true' } },
  });
  expect(errors(agent)).toEqual(['argocd/shop exists, but takes no part in synchronisation (by a label)']);
  const writes = agent.cluster.writes;
  await lab.run(3_600_000);
  expect(agent.cluster.writes - writes, 'asked for ever more rarely').toBeLessThan(30);

  agent.cluster.objects.patch(local, { metadata: { labels: { [skipSyncLabel]: null } } });
  await lab.run(1_000);
  expect(agent.copy()?.spec.source).toEqual({ path: 'p1' });
});

test('an Application of the cluster that is labelled out of synchronisation is not taken over', async () => {
  const lab = new Lab();
  const cluster = new LabCluster('agent', lab.time);
  cluster.isHidden = isSkipped;
  const labels = { [skipSyncLabel]: 'true' };
  cluster.objects.create(found({ labels }));
  const agent = lab.agent({}, cluster);
  agent.connect();
  agent.sync.receive(incoming('create', hubApplication({ uid: 'u' })));
  await lab.run(60_000);
  expect(agent.copy()).toMatchObject({ spec: { source: { path: 'own' } }, metadata: { labels } });
  expect(errors(agent)).toHaveLength(1);
});

test('a label takes an Application of the hub out of synchronisation: the copy goes, with a word, and comes back', async () => {
  const lab = new Lab();
  lab.hub.isHidden = isSkipped;
  lab.hub.objects.create(hubApplication({ finalizers: [resources] }));
  const agent = lab.agent();
  lab.join(lab.principal(), agent);
  await lab.run(5_000);
  expect(agent.copy()).toBeDefined();
  lab.hub.objects.patch(ref, { metadata: { labels: { [skipSyncLabel]: 'true' } } });
  await lab.run(5_000);
  expect(agent.copy()?.metadata.deletionTimestamp).toBeDefined();
  expect(lab.log.map(({ message }) => message)).toContainEqual(
    expect.stringMatching(
      /not selected there any more: its copy is deleted, what it deployed there stays, unless it still asks for its removal$/,
    ),
  );
  agent.cluster.objects.patch(local, { metadata: { finalizers: null } });
  lab.hub.objects.patch(ref, { metadata: { labels: { [skipSyncLabel]: null } } });
  await lab.run(10_000);
  expect(agent.copy()?.metadata.deletionTimestamp).toBeUndefined();
});

test('a spec that was changed here is put back, and Argo CD asked to look, which the hub does not hear as its own', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication());
  const agent = lab.agent();
  lab.join(lab.principal(), agent);
  await lab.run(5_000);
  agent.sent.length = 0;
  agent.cluster.objects.patch(local, { spec: { project: 'gone' }, status: { health: { status: 'Unknown' } } });
  await lab.run(5_000);
  expect(agent.copy()?.spec.project).toBe('default');
  expect(agent.copy()?.metadata.annotations?.[annotations.refresh]).toBe('normal');
  const marks = sentMessages(agent, 'status-update').map(
    ({ object }) => object.metadata.annotations?.[annotations.refresh],
  );
  expect(marks.length).toBeGreaterThan(0);
  expect(new Set(marks)).toEqual(new Set([undefined]));

  lab.hub.objects.patch(ref, { metadata: { annotations: { [annotations.refresh]: 'hard' } } });
  await lab.run(5_000);
  expect(agent.copy()?.metadata.annotations?.[annotations.refresh], "a user's own request counts").toBe('hard');
  agent.cluster.objects.patch(local, { metadata: { annotations: { [annotations.refresh]: null } } });
  await lab.run(5_000);
  expect(lab.hub.objects.get(ref)?.metadata.annotations ?? {}).toEqual({});
});

test('a fight over a copy is fought ever more slowly, shown on the hub while it lasts, and forgotten after it', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication());
  const agent = lab.agent();
  lab.join(lab.principal(), agent);
  await lab.run(5_000);
  const stop = agent.cluster.objects.watch(({ now }) => {
    if (now?.spec.source !== undefined && (now.spec.source as { path?: string }).path === 'p0') {
      lab.time.after(5, () => agent.cluster.objects.patch(local, { spec: { source: { path: 'theirs' } } }));
    }
  });
  agent.cluster.objects.patch(local, { spec: { source: { path: 'theirs' } } });
  const writes = agent.cluster.writes;
  await lab.run(600_000);
  expect(agent.cluster.writes - writes).toBeGreaterThan(8);
  expect(agent.cluster.writes - writes).toBeLessThan(25);
  const conditions = () => lab.hub.objects.get(ref)?.status?.conditions ?? [];
  expect(conditions()).toMatchObject([{ type: 'AgentError', message: /* */ expect.stringMatching(/again and again/) }]);
  expect(lab.hub.objects.get(ref)?.status?.health, 'which says nothing about its health').toBeUndefined();
  expect(agent.applications.stats().retrying).toBe(1);

  stop();
  await lab.run(600_000);
  expect(agent.copy()?.spec.source).toEqual({ path: 'p0' });
  expect(conditions()).toEqual([]);
  expect(agent.applications.stats().retrying).toBe(0);
  agent.cluster.objects.patch(local, { spec: { source: { path: 'theirs' } } });
  await lab.run(100);
  expect(agent.copy()?.spec.source, 'at once again').toEqual({ path: 'p0' });
});

test('an operation waits for a copy that cannot be made yet, and is done once, if not too late', async () => {
  const lab = new Lab();
  const agent = await agentThatFinds(lab, undefined);
  let isRefused = true;
  agent.cluster.intercept = (call) => {
    if (call === 'create' && isRefused) {
      throw Object.assign(new Error('no'), { status: 403 });
    }
  };
  const operation = { sync: { revision: 'r1' } };
  agent.sync.receive(incoming('create', hubApplication({ uid: 'u' })));
  agent.sync.receive(incoming('set-operation', hubApplication({ uid: 'u' }, { operation })));
  await lab.run(10_000);
  expect(agent.acknowledged, 'only the state').toHaveLength(1);
  isRefused = false;
  await lab.run(60_000);
  expect(agent.copy()?.operation).toEqual(operation);
  expect(agent.acknowledged).toHaveLength(2);
  agent.cluster.objects.patch(local, { operation: null });
  agent.cluster.objects.delete(local, { propagation: 'Background' });
  await lab.run(1_000);
  expect(agent.copy(), 'made again').toBeDefined();
  expect(agent.copy()?.operation).toBeUndefined();

  isRefused = true;
  agent.cluster.objects.delete(local, { propagation: 'Background' });
  agent.sync.receive(incoming('set-operation', hubApplication({ uid: 'u' }, { operation })));
  await lab.run(700_000);
  expect(agent.acknowledged, 'given up').toHaveLength(3);
  isRefused = false;
  await lab.run(600_000);
  expect(agent.copy()).toBeDefined();
  expect(agent.copy()?.operation, 'nobody expects it any more').toBeUndefined();
});

test('an operation that ended while the principal was away is not done again when it asks again', async () => {
  const lab = new Lab();
  const agent = await agentThatFinds(lab, undefined);
  const operation = { sync: { revision: 'r1' } };
  const hub = (version: string, more: Partial<Application> = {}) =>
    hubApplication({ uid: 'u', resourceVersion: version, creationTimestamp: '2026-01-01T00:00:00Z' }, more);
  agent.sync.receive(incoming('create', hub('1')));
  agent.sync.receive(incoming('set-operation', hub('2', { operation })));
  await lab.run();
  const operationState = { phase: 'Succeeded', operation, startedAt: '2026-01-02T00:00:00Z' };
  agent.cluster.objects.patch(local, { operation: null, status: { operationState } });
  await lab.run();
  const writes = agent.cluster.writes;
  // The principal has started anew, its object has changed since, and it has not heard of the end.
  agent.sync.receive(incoming('set-operation', hub('3', { operation })));
  await lab.run();
  expect(agent.cluster.writes).toBe(writes);
  expect(sentMessages(agent, 'status-update').at(-1)?.object.status).toEqual({ operationState });
  // The same, asked for by somebody who knows that it was done.
  agent.sync.receive(incoming('set-operation', hub('4', { operation, status: { operationState } })));
  await lab.run();
  expect(agent.copy()?.operation).toEqual(operation);
});

test.each([
  ['ended', 'Succeeded', '2026-01-03T00:00:00Z', undefined],
  ['had ended before it was asked for', 'Succeeded', '2025-12-31T00:00:00Z', { sync: {} }],
])('an operation that, as the agent tells a restarted principal, %s', async (_, phase, startedAt, left) => {
  const lab = new Lab();
  const operation = { sync: {} };
  lab.hub.objects.create(hubApplication());
  const hub = lab.hub.objects.patch(ref, { metadata: { creationTimestamp: '2026-01-01T00:00:00Z' }, operation });
  const principal = lab.principal();
  const send = (message: Message) => principal.sent.push(message) > 0;
  principal.sync.connected('a', 'managed', { send, acknowledge: () => undefined });
  principal.sync.receive('a', {
    target: 'application',
    type: 'status-update',
    resourceId: 'r',
    eventId: 'e',
    object: {
      ...hubApplication({ annotations: { [source]: hub.metadata.uid ?? '' } }),
      status: { operationState: { phase, operation, startedAt } },
    },
  });
  await lab.run();
  const [introduction] = principal.sent;
  if (introduction !== undefined) {
    principal.sync.acknowledged('a', introduction);
  }
  await lab.run(3_000);
  for (const state of sentMessages(principal, 'create')) {
    principal.sync.acknowledged('a', state);
  }
  await lab.run(1_000);
  expect(sentMessages(principal, 'create')).toHaveLength(1);
  expect(lab.hub.objects.get(ref)?.operation).toEqual(left);
  expect(sentMessages(principal, 'set-operation')).toHaveLength(left === undefined ? 0 : 1);
});
