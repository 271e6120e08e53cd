import { expect, test } from 'vitest';
import { type Application, type ApplicationMessage, annotations, type Message } from '../index.ts';
import { hubApplication, Lab, type LabPrincipal, sentMessages } from '../testing/lab.ts';

const resources = 'resources-finalizer.argocd.argoproj.io';
const ref = { namespace: 'a', name: 'shop' };
const local = { namespace: 'argocd', name: 'shop' };
const gone = (app: Application): Partial<Application['metadata']> => ({ uid: app.metadata.uid as string });

/** Argo CD has removed what the Application deployed. */
function finish(cluster: { patch(ref: object, patch: object): unknown }, at: object): void {
  cluster.patch(at, { metadata: { finalizers: null } });
}

function notices(lab: Lab): string[] {
  const conditions = lab.hub.objects.get(ref)?.status?.conditions ?? [];
  return conditions.filter(({ type }) => type === 'AgentWarning').map(({ message }) => message);
}

function leaving(lab: Lab): void {
  lab.hub.objects.create(hubApplication({ finalizers: [resources] }));
}

test('a deletion on the hub that waits for an agent that never comes back says so, and a user can let it go', async () => {
  const lab = new Lab();
  leaving(lab);
  const principal = lab.principal();
  const connection = principal.connect('a');
  await lab.run();
  principal.sync.disconnected('a', connection);
  lab.hub.objects.delete(ref, { propagation: 'Background' });
  await lab.run(20_000);
  expect(notices(lab), 'a short absence is nothing to tell of').toEqual([]);
  await lab.run(20_000);
  expect(notices(lab)).toEqual([
    'waiting for agent a, which has not been connected since 2026-01-02T03:04:05.000Z; annotate ' +
      'argocd-agent.argoproj-labs.io/release: "true" to let this Application go',
  ]);
  const writes = lab.hub.writes;
  await lab.run(3_600_000);
  expect(lab.hub.writes, 'it is said once').toBe(writes);

  lab.hub.objects.patch(ref, { metadata: { annotations: { [annotations.release]: 'true' } } });
  await lab.run();
  expect(lab.hub.objects.get(ref)).toBeUndefined();
});

test('a released Application does not ask for its workload from then on, and does again when it is not', async () => {
  const lab = new Lab();
  const other = 'example.com/finalizer';
  lab.hub.objects.create(hubApplication({ finalizers: [resources, other] }));
  const agent = lab.agent();
  lab.join(lab.principal(), agent);
  await lab.run(5_000);
  expect(agent.copy()?.metadata.finalizers).toEqual([resources, other]);
  lab.hub.objects.patch(ref, { metadata: { annotations: { [annotations.release]: 'true' } } });
  await lab.run(5_000);
  expect(agent.copy()?.metadata.finalizers).toEqual([other]);
  expect(lab.hub.objects.get(ref)?.metadata.finalizers, 'the hub keeps its own').toEqual([resources, other]);
  lab.hub.objects.patch(ref, { metadata: { annotations: { [annotations.release]: null } } });
  await lab.run(5_000);
  expect(agent.copy()?.metadata.finalizers).toEqual([resources, other]);
});

test('the notice goes when the agent is back, and what was released is removed from it then', async () => {
  const lab = new Lab();
  leaving(lab);
  const principal = lab.principal();
  const agent = lab.agent();
  const disconnect = lab.join(principal, agent);
  await lab.run(5_000);
  disconnect();
  lab.hub.objects.delete(ref, { propagation: 'Background' });
  await lab.run(60_000);
  expect(notices(lab)).toHaveLength(1);
  const partAgain = lab.join(principal, agent);
  await lab.run(5_000);
  expect(notices(lab)).toEqual([]);
  expect(agent.copy()?.metadata.deletionTimestamp).toBeDefined();
  finish(agent.cluster.objects, local);
  await lab.run(5_000);
  expect(lab.hub.objects.get(ref)).toBeUndefined();

  leaving(lab);
  await lab.run(5_000);
  partAgain();
  lab.hub.objects.delete(ref, { propagation: 'Background' });
  lab.hub.objects.patch(ref, { metadata: { annotations: { [annotations.release]: 'true' } } });
  await lab.run(5_000);
  expect(lab.hub.objects.get(ref), 'released').toBeUndefined();
  expect(agent.copy()).toBeDefined();
  lab.join(principal, agent);
  await lab.run(5_000);
  expect(agent.copy(), 'it went without its workload').toBeUndefined();
});

test('what an earlier principal said, and is no longer true, goes when another one starts', async () => {
  const lab = new Lab();
  const conditions = [
    { type: 'AgentWarning', message: 'waiting for agent a' },
    { type: 'ComparisonError', message: 'm' },
  ];
  lab.hub.objects.create(hubApplication({}, { status: { conditions } }));
  lab.principal().connect('a');
  await lab.run(5_000);
  expect(lab.hub.objects.get(ref)?.status?.conditions).toEqual([{ type: 'ComparisonError', message: 'm' }]);
});

test('a notice that cannot be written now is written later', async () => {
  const lab = new Lab();
  leaving(lab);
  lab.hub.objects.delete(ref, { propagation: 'Background' });
  let failures = 5;
  lab.hub.intercept = (call) => {
    if (call === 'patch' && failures-- > 0) {
      throw new Error('connection reset');
    }
  };
  lab.principal({ lastSeen: () => new Date(0) });
  await lab.run(120_000);
  expect(notices(lab)).toHaveLength(1);
});

test('a deletion waits for an agent that left the fleet, or is known from before, but not for one that never was', async () => {
  const lab = new Lab();
  for (const namespace of ['a', 'b', 'c']) {
    lab.hub.objects.create(hubApplication({ namespace, finalizers: [resources] }));
  }
  const seen = new Date('2025-12-24T18:00:00Z');
  const principal = lab.principal({ lastSeen: (agent) => (agent === 'b' ? seen : undefined) });
  principal.connect('a');
  await lab.run();
  const mirrors = { annotations: { [annotations.mirrorOf]: 'a' }, finalizers: [resources] };
  lab.hub.objects.create(hubApplication({ name: 'mirror', ...mirrors }));
  lab.hub.objects.delete({ namespace: 'a', name: 'mirror' }, { propagation: 'Background' });
  principal.sync.forgetAgent('a');
  for (const namespace of ['a', 'b', 'c']) {
    lab.hub.objects.delete({ namespace, name: 'shop' }, { propagation: 'Background' });
  }
  await lab.run(60_000);
  const sent = (namespace: string) =>
    lab.hub.objects.get({ namespace, name: 'shop' })?.status?.conditions?.[0]?.message;
  expect(sent('a')).toMatch(/^waiting for agent a, which has been outside the fleet since 2026/);
  expect(sent('b')).toMatch(/^waiting for agent b, which has not been connected since 2025-12-24T18/);
  expect(sent('c'), 'it is no Application of an agent').toBeUndefined();
  const mirror = lab.hub.objects.get({ namespace: 'a', name: 'mirror' });
  expect(mirror?.status, 'nor is this one, of a managed agent').toBeUndefined();
});

/** An Application that goes from agent `one`, where Argo CD takes its time to remove what it deployed, to agent `two`. */
async function moved(lab: Lab) {
  const principal = lab.principal({ agentOf: ({ spec }) => spec.destination?.name, namespaceOf: (_, at) => at });
  const everywhere = {
    mapping: () => ({ toLocal: (at: string) => at, toHub: (at: string) => at }),
    isAllowed: () => true,
  };
  const one = lab.agent(everywhere);
  const two = lab.agent(everywhere);
  const disconnect = lab.join(principal, one, 'one');
  lab.join(principal, two, 'two');
  lab.hub.objects.create(
    hubApplication({ finalizers: [resources] }, { spec: { destination: { name: 'one', namespace: 'shop' } } }),
  );
  await lab.run(5_000);
  one.cluster.objects.patch(ref, { status: { health: { status: 'Healthy' } } });
  await lab.run(5_000);
  expect(lab.hub.objects.get(ref)?.status?.health?.status).toBe('Healthy');
  lab.hub.objects.patch(ref, { spec: { destination: { name: 'two' } } });
  await lab.run(5_000);
  expect(one.copy('shop', 'a')?.metadata.deletionTimestamp).toBeDefined();
  expect(two.copy('shop', 'a')?.metadata.deletionTimestamp).toBeUndefined();
  expect(notices(lab)).toEqual(['agent one is removing what was deployed there since 2026-01-02T03:04:05.000Z']);
  return { principal, one, two, disconnect, everywhere };
}

test('defect 50: what the old cluster is still removing is told on the Application that went to another one', async () => {
  const lab = new Lab();
  const { one, two } = await moved(lab);
  let writes = 0;
  lab.hub.objects.watch(() => writes++);
  one.cluster.objects.patch(ref, { status: { health: { status: 'Missing' } } });
  two.cluster.objects.patch(ref, { status: { health: { status: 'Progressing' } } });
  await lab.run(5_000);
  expect(lab.hub.objects.get(ref)?.status?.health, "the old cluster's word counts no more").toEqual({
    status: 'Progressing',
  });
  expect(notices(lab)).toHaveLength(1);
  expect(writes, "a report of the new cluster does not take the principal's word away").toBe(1);
  finish(one.cluster.objects, ref);
  await lab.run(5_000);
  expect(notices(lab)).toEqual([]);
  expect(lab.log.map(({ message }) => message)).toContain('the agent has removed what the Application deployed there');
});

test('a removal on the old cluster is told of to its end, though somebody takes the marks off the copy meanwhile', async () => {
  const lab = new Lab();
  const { one } = await moved(lab);
  one.cluster.objects.patch(ref, { metadata: { annotations: { [annotations.sourceUid]: null } } });
  await lab.run(1_000);
  expect(notices(lab)).toHaveLength(1);
  finish(one.cluster.objects, ref);
  await lab.run(5_000);
  expect(notices(lab)).toEqual([]);
});

test('a removal is told of to its end, though its watch was broken and somebody made an Application of their own there', async () => {
  const lab = new Lab();
  const principal = lab.principal({ agentOf: ({ spec }) => spec.destination?.name, namespaceOf: (_, at) => at });
  const one = lab.agent({
    mapping: () => ({ toLocal: (at: string) => at, toHub: (at: string) => at }),
    isAllowed: () => true,
  });
  lab.join(principal, one, 'one');
  await lab.run(1_000);
  const relist = one.cluster.breakWatch();
  lab.hub.objects.create(hubApplication({ finalizers: [resources] }, { spec: { destination: { name: 'one' } } }));
  await lab.run(5_000);
  lab.hub.objects.patch(ref, { spec: { destination: { name: 'two' } } });
  await lab.run(5_000);
  finish(one.cluster.objects, ref);
  one.cluster.objects.create({ metadata: ref, spec: { source: { path: 'own' } } });
  expect(notices(lab)).toHaveLength(1);
  relist();
  await lab.run(5_000);
  expect(notices(lab)).toEqual([]);
});

test('what an old cluster is still removing is told no longer when another principal serves its agent', async () => {
  const lab = new Lab();
  const { principal } = await moved(lab);
  principal.sync.releaseAgent('one');
  await lab.run(5_000);
  expect(notices(lab)).toEqual([]);
});

test.each(['while the connection is broken', 'while the agent is down', 'after the agent was down', 'for good'])(
  'a removal on the old cluster that ends %s is told of to its end',
  async (when) => {
    const lab = new Lab();
    const { principal, one, disconnect, everywhere } = await moved(lab);
    disconnect();
    let agent = one;
    if (when === 'for good') {
      principal.sync.forgetAgent('one');
      await lab.run(5_000);
      expect(notices(lab)).toEqual([]);
      return;
    }
    if (when !== 'while the connection is broken') {
      one.stop.abort();
      if (when === 'while the agent is down') {
        finish(one.cluster.objects, ref);
      }
      agent = lab.agent(everywhere, one.cluster);
    } else {
      finish(one.cluster.objects, ref);
    }
    lab.join(principal, agent, 'one');
    await lab.run(20_000);
    if (when === 'after the agent was down') {
      expect(notices(lab)).toHaveLength(1);
      finish(one.cluster.objects, ref);
      await lab.run(20_000);
    }
    expect(notices(lab)).toEqual([]);
  },
);

test('defect 3: a deletion of an earlier incarnation, delivered late, does not touch the new one', async () => {
  const lab = new Lab();
  const agent = lab.agent();
  agent.connect();
  const address = { target: 'application', principalUid: 'p' } as const;
  const object = hubApplication({ uid: 'new', resourceVersion: '9' });
  agent.sync.receive({ ...address, type: 'create', resourceId: 'shop_new', eventId: 'shop_new_9', object });
  await lab.run();
  const uid = agent.copy()?.metadata.uid;
  expect(uid).toBeDefined();
  const old = hubApplication({ uid: 'old', resourceVersion: '4' });
  agent.sync.receive({ ...address, type: 'delete', resourceId: 'shop_old', eventId: 'shop_old_4', object: old });
  await lab.run(60_000);
  expect(agent.copy()?.metadata.uid, 'neither deleted nor made anew').toBe(uid);
  expect(agent.copy()?.metadata.deletionTimestamp).toBeUndefined();
  expect(agent.acknowledged).toHaveLength(2);
});

test.each([
  ['with finalizers on the hub', [resources], true],
  ['without', [], false],
])('deleted on both sides at once, %s: gone on both', async (_, finalizers, isHeld) => {
  const lab = new Lab();
  const principal = lab.principal();
  const agent = lab.agent();
  const disconnect = lab.join(principal, agent);
  lab.hub.objects.create(hubApplication({ finalizers: [...finalizers] }));
  await lab.run(5_000);
  disconnect();
  lab.hub.objects.delete(ref, { propagation: 'Background' });
  agent.cluster.objects.delete(local, { propagation: 'Background' });
  await lab.run(5_000);
  lab.join(principal, agent);
  await lab.run(5_000);
  expect(agent.copy() !== undefined).toBe(isHeld);
  if (isHeld) {
    finish(agent.cluster.objects, local);
  }
  await lab.run(5_000);
  expect(agent.copy()).toBeUndefined();
  expect(lab.hub.objects.get(ref)).toBeUndefined();
});

test.each([
  ['the old copy is gone at once', [], 'recreate'],
  ['defect 17: the old copy takes its time', [resources], 'recreate'],
  ['the old copy becomes the new one', [resources], 'upsert'],
] as const)('deleted and made again under the same name while the agent is away: %s', async (_, finalizers, policy) => {
  const lab = new Lab();
  const principal = lab.principal();
  const agent = lab.agent({ mismatchPolicy: policy });
  const disconnect = lab.join(principal, agent);
  const first = lab.hub.objects.create(hubApplication({ finalizers: [...finalizers] }));
  await lab.run(5_000);
  disconnect();
  finish(lab.hub.objects, ref);
  lab.hub.objects.delete(ref, { propagation: 'Background' });
  const second = lab.hub.objects.create(hubApplication());
  expect(gone(first)).not.toEqual(gone(second));
  await lab.run(5_000);
  lab.join(principal, agent);
  await lab.run(5_000);
  if (agent.copy()?.metadata.deletionTimestamp !== undefined) {
    finish(agent.cluster.objects, local);
  }
  await lab.run(60_000);
  expect(agent.copy()?.metadata.deletionTimestamp).toBeUndefined();
  expect(agent.copy()?.metadata.annotations?.[annotations.sourceUid]).toBe(second.metadata.uid);
  expect(lab.hub.objects.get(ref)?.metadata.uid).toBe(second.metadata.uid);
});

test('a deletion that Argo CD does not get on with is brought to its notice, ever more rarely, until it is through', async () => {
  const lab = new Lab();
  const agent = lab.agent();
  agent.cluster.objects.create(
    hubApplication({ namespace: 'argocd', finalizers: [resources], annotations: { [annotations.sourceUid]: 'u' } }),
  );
  agent.cluster.objects.delete(local, { propagation: 'Background' });
  agent.stop.abort();
  const nudges: number[] = [];
  const restarted = lab.agent(
    { runtime: { ...lab.common('a').runtime, today: () => new Date(lab.time.now()) } },
    agent.cluster,
  );
  agent.cluster.objects.watch(() => nudges.push(lab.time.now()));
  await lab.run(3_600_000);
  const gaps = nudges.map((at, i) => at - (nudges[i - 1] ?? 0));
  expect(gaps.slice(0, 5)).toEqual([25_000, 50_000, 100_000, 200_000, 375_000]);
  expect(nudges.length).toBeLessThan(15);
  finish(restarted.cluster.objects, local);
  await lab.run(10_000);
  expect(restarted.applications.stats()).toMatchObject({ queued: 0, retrying: 0 });
});

test('defect 25: nothing is remembered of an agent that says it has what it should not have, once that is deleted', async () => {
  const lab = new Lab();
  const principal: LabPrincipal = lab.principal();
  principal.connect('a');
  await lab.run(5_000);
  for (let i = 0; i < 1_000; i++) {
    principal.sync.receive('a', {
      target: 'resourceResync',
      type: 'request-update',
      resourceId: `r${i}`,
      eventId: `e${i}`,
      payload: { kind: 'Application', name: `made-up-${i}`, namespace: 'argocd', uid: `u${i}`, checksum: null },
    });
  }
  for (let turn = 0; turn < 1_000 && principal.sync.stats('a').pending > 0; turn++) {
    await lab.run();
  }
  expect(sentMessages(principal, 'delete')).toHaveLength(1_000);
  expect(principal.sync.stats('a')).toEqual({ pending: 0, inFlight: 0, queued: 0, retrying: 0 });
});

test('what an agent said to have is known to be there, also when it was selected only after that, and then deleted', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication());
  // A label selector leaves it out.
  lab.hub.isHidden = () => true;
  const principal = lab.principal();
  const send = (message: Message) => principal.sent.push(message) > 0;
  principal.sync.connected('a', 'managed', { send, acknowledge: () => undefined });
  const uid = lab.hub.objects.get(ref)?.metadata.uid ?? '';
  const incoming = (type: 'request-update' | 'request-synced-resource-list', payload: object) =>
    principal.sync.receive('a', {
      target: 'resourceResync',
      type,
      resourceId: type,
      eventId: type,
      payload,
    } as Message);
  incoming('request-update', {
    kind: 'Application',
    name: 'shop',
    namespace: 'argocd',
    uid,
    checksum: null,
    digest: 'x',
  });
  lab.hub.isHidden = () => false;
  lab.hub.objects.patch(ref, { metadata: { labels: { team: 'a' } } });
  await lab.run(10);
  incoming('request-synced-resource-list', { checksum: 'another', complete: true });
  lab.hub.objects.delete(ref, { propagation: 'Background' });
  const question = principal.sent.find(({ type }) => type === 'request-resource-resync');
  if (question !== undefined) {
    principal.sync.acknowledged('a', question);
  }
  await lab.run(3_000);
  const [last] = sentMessages(principal, 'spec-update');
  expect(last?.object.metadata.uid, 'its last state, before it is deleted').toBe(uid);
  principal.sync.acknowledged('a', last as ApplicationMessage);
  await lab.run(1_000);
  expect(sentMessages(principal, 'delete')).toHaveLength(1);
});

test('an agent that names things without end, and deletes none, is remembered with a bounded part of them', async () => {
  const lab = new Lab();
  const principal = lab.principal();
  const send = (message: Message) => principal.sent.push(message) > 0;
  const connection = { send, acknowledge: () => undefined };
  principal.sync.connected('a', 'managed', connection);
  const name = (i: number, uid: string) =>
    principal.sync.receive('a', {
      target: 'resourceResync',
      type: 'request-update',
      resourceId: `r${i}`,
      eventId: `e${i}-${uid}`,
      payload: { kind: 'Application', name: `made-up-${i}`, namespace: 'argocd', uid, checksum: null },
    });
  for (let i = 0; i < 12_000; i++) {
    name(i, '');
    name(i, 'u');
  }
  expect(principal.sync.stats('a').pending).toBeLessThanOrEqual(10_001);
  expect(lab.log.filter(({ message }) => message.includes('too many'))).toHaveLength(1);
  lab.hub.objects.create(hubApplication());
  await lab.run(600_000);
  expect(sentMessages(principal, 'create'), 'what it should have is told all the same').not.toEqual([]);
});

test('what an agent made of the word of an earlier principal is deleted, though this one has not sent it yet', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication({ name: 'first' }));
  const { metadata } = lab.hub.objects.create(hubApplication());
  const principal = lab.principal({ tuning: { maxInFlight: 1 } });
  const send = (message: Message) => principal.sent.push(message) > 0;
  principal.sync.connected('a', 'managed', { send, acknowledge: () => undefined });
  for (const introduction of principal.sent.splice(0)) {
    principal.sync.acknowledged('a', introduction);
  }
  await lab.run(3_000);
  expect(sentMessages(principal, 'create').map(({ object }) => object.metadata.name)).toEqual(['first']);
  const copy = hubApplication({ uid: 'copy', annotations: { [annotations.sourceUid]: metadata.uid ?? '' } });
  principal.sync.receive('a', {
    ...{ target: 'application', type: 'status-update', resourceId: 'shop_copy', eventId: 'shop_copy_1' },
    object: copy,
  });
  await lab.run();
  lab.hub.objects.delete({ namespace: 'a', name: 'shop' }, { propagation: 'Background' });
  await lab.run();
  const acknowledgeAll = async () => {
    for (const message of principal.sent.splice(0)) {
      principal.sync.acknowledged('a', message);
    }
    await lab.run();
  };
  await acknowledgeAll();
  expect(principal.sent, 'whatever agent it is, its copy loses its finalizers first').toMatchObject([
    { type: 'spec-update', object: { metadata: { name: 'shop', uid: metadata.uid, finalizers: [] } } },
  ]);
  await acknowledgeAll();
  expect(sentMessages(principal, 'delete').map(({ object }) => object.metadata)).toMatchObject([
    { name: 'shop', uid: metadata.uid },
  ]);
});

test('what an agent reports to have removed is not sent to it once more', async () => {
  const lab = new Lab();
  leaving(lab);
  const principal = lab.principal();
  const agent = lab.agent();
  lab.join(principal, agent);
  await lab.run(5_000);
  lab.hub.objects.delete(ref, { propagation: 'Background' });
  await lab.run(5_000);
  principal.sent.length = 0;
  finish(agent.cluster.objects, local);
  await lab.run(5_000);
  expect(lab.hub.objects.get(ref)).toBeUndefined();
  expect(sentMessages(principal, 'spec-update')).toEqual([]);
});

test('a copy goes as it was planned for: a finalizer that came in between does not take the workload', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication());
  const agent = lab.agent();
  lab.join(lab.principal(), agent);
  await lab.run(1_000);
  const copy = { namespace: 'argocd', name: 'shop' };
  let isFirst = true;
  agent.cluster.intercept = (call) => {
    if (call === 'delete' && isFirst) {
      isFirst = false;
      // As when the cluster is restored to a time when the hub asked for the workload.
      agent.cluster.objects.patch(copy, { metadata: { finalizers: ['resources-finalizer.argocd.argoproj.io'] } });
    }
  };
  const asked: (readonly string[])[] = [];
  agent.cluster.subscribe(({ now: { metadata } = { metadata: { name: '' } } }) => {
    if (metadata.deletionTimestamp !== undefined && metadata.finalizers?.length) {
      asked.push(metadata.finalizers);
    }
  });
  lab.hub.objects.delete({ namespace: 'a', name: 'shop' }, {});
  await lab.run(5_000);
  expect(isFirst).toBe(false);
  expect(agent.copy()).toBeUndefined();
  expect(asked, 'Argo CD is asked to remove the workload').toEqual([]);
});

test('a copy that somebody deletes on the cluster, and that does not go, is shown on the hub until it has gone', async () => {
  const lab = new Lab();
  const ref = { namespace: 'a', name: 'shop' };
  const copy = { namespace: 'argocd', name: 'shop' };
  lab.hub.objects.create(hubApplication({ finalizers: ['resources-finalizer.argocd.argoproj.io'] }));
  const agent = lab.agent();
  lab.join(lab.principal(), agent);
  await lab.run(1_000);
  const { uid } = agent.copy()?.metadata ?? {};
  agent.cluster.objects.delete(copy, {});
  const conditions = () => lab.hub.objects.get(ref)?.status?.conditions ?? [];
  await lab.run(15_000);
  expect(conditions(), 'a deletion takes its time').toEqual([]);
  await lab.run(90_000);
  expect(conditions()).toMatchObject([{ message: expect.stringContaining('has not gone for about a minute') }]);
  agent.cluster.objects.patch(copy, { metadata: { finalizers: null } });
  await lab.run(10_000);
  expect(agent.copy()?.metadata.uid).not.toBe(uid);
  expect(conditions()).toEqual([]);
});
