import { expect, test } from 'vitest';
import type { ObjectRef } from '../../sync/index.ts';
import { type Application, annotations, applicationRouter, type Message } from '../index.ts';
import { hubApplication, Lab, type LabAgent, type LabPrincipal, sentMessages } from '../testing/lab.ts';

// Defects of argocd-agent (docs/defects.md) that concern managed Applications. Those of deletion are in deletion.test.ts.

const ref: ObjectRef = { namespace: 'a', name: 'shop' };
const local: ObjectRef = { namespace: 'argocd', name: 'shop' };
const byDestination = {
  agentOf: ({ spec }: Application) => spec.destination?.name,
  namespaceOf: (_: string, namespace: string) => namespace,
};

class Refusal extends Error {
  readonly status: number;
  constructor(status: number) {
    super(`status ${status}`);
    this.status = status;
  }
}

let events = 0;
/** What a principal says of an Application. */
function incoming(type: 'create' | 'spec-update' | 'delete' | 'set-operation', object: Application): Message {
  const { name, uid, resourceVersion } = object.metadata;
  const resourceId = `${name}_${uid}`;
  const eventId = `${resourceId}_${resourceVersion}_${++events}`;
  return { target: 'application', type, principalUid: 'p', resourceId, eventId, object };
}

/** What an agent says of its copy. */
function reports(object: Application): Message {
  return {
    target: 'application',
    type: 'status-update',
    resourceId: 'shop_local',
    eventId: `shop_local_${++events}`,
    object,
  };
}

function copyOf(hub: Application, rest: Partial<Application> = {}): Application {
  const { uid = '', name, namespace = '' } = hub.metadata;
  return { metadata: { name, namespace, annotations: { [annotations.sourceUid]: uid } }, spec: hub.spec, ...rest };
}

async function joined(lab: Lab, hub = hubApplication()): Promise<{ principal: LabPrincipal; agent: LabAgent }> {
  const principal = lab.principal();
  const agent = lab.agent();
  lab.join(principal, agent);
  lab.hub.objects.create(hub);
  await lab.run(5_000);
  principal.sent.length = 0;
  return { principal, agent };
}

test('defect 1: an agent cannot write the status of another agent, nor end its deletion, nor mark it as broken', async () => {
  const lab = new Lab();
  const hub = lab.hub.objects.create(hubApplication({ finalizers: ['f'] }, { spec: { destination: { name: 'b' } } }));
  lab.hub.objects.delete(ref, { propagation: 'Background' });
  const before = lab.hub.objects.get(ref);
  const principal = lab.principal(byDestination);
  principal.connect('a');
  principal.connect('b');
  await lab.run(5_000);
  principal.sync.receive('a', reports(copyOf(hub, { status: { health: { status: 'Healthy' } } })));
  principal.sync.receive('a', incoming('delete', copyOf(hub)));
  principal.sync.receive('a', {
    target: 'application',
    type: 'error',
    resourceId: 'r',
    eventId: 'e',
    error: { resourceName: 'shop', resourceNamespace: 'a', message: 'gotcha' },
  });
  await lab.run(5_000);
  expect(lab.hub.objects.get(ref)).toEqual(before);
  expect(principal.acknowledged, 'refused, not to be repeated').toHaveLength(3);
  principal.sync.receive('b', incoming('delete', copyOf(hub)));
  await lab.run(5_000);
  expect(lab.hub.objects.get(ref), 'its own agent may').toBeUndefined();
});

test('defect 2: an agent gets nothing that the namespaces and labels of the hub keep from it, whatever it asks', async () => {
  const lab = new Lab();
  const kept = [
    lab.hub.objects.create(hubApplication({ namespace: 'private' })),
    lab.hub.objects.create(
      hubApplication({ name: 'own', labels: { 'argocd-agent.argoproj-labs.io/ignore-sync': 'true' } }),
    ),
  ];
  lab.hub.objects.create(hubApplication());
  const agentOf = applicationRouter({ namespace: 'argocd', allowedNamespaces: ['a'], mapping: 'destination' });
  const principal = lab.principal({ ...byDestination, agentOf });
  principal.connect('a');
  for (const { metadata } of kept) {
    const { name, namespace = '', uid = '' } = metadata;
    const payload = { kind: 'Application', name, namespace, uid, checksum: null } as const;
    principal.sync.receive('a', {
      target: 'resourceResync',
      type: 'request-update',
      resourceId: 'r',
      eventId: `${++events}`,
      payload,
    });
  }
  await lab.run(10_000);
  expect(sentMessages(principal, 'create').map(({ object }) => object.metadata.name)).toEqual(['shop']);
  expect(sentMessages(principal, 'delete').map(({ object }) => object.spec)).toEqual([{}, {}]);
});

test('defect 18: a copy whose making failed is made later, and takes every update', async () => {
  const lab = new Lab();
  const { agent } = await joined(lab);
  let failures = 5;
  agent.cluster.intercept = (call) => {
    if (call === 'create' && failures-- > 0) {
      throw new Refusal(500);
    }
  };
  agent.cluster.objects.delete(local, { propagation: 'Background' });
  await lab.run(50);
  expect(agent.copy()).toBeUndefined();
  lab.hub.objects.patch(ref, { spec: { source: { path: 'p1' } } });
  await lab.run(60_000);
  expect(agent.copy()?.spec.source).toEqual({ path: 'p1' });
});

test('defect 19: versions of two clusters are not compared: an update counts whatever its number', async () => {
  const lab = new Lab();
  const agent = lab.agent();
  agent.connect();
  agent.sync.receive(incoming('create', hubApplication({ uid: 'u', resourceVersion: '7' })));
  await lab.run();
  const resourceVersion = agent.copy()?.metadata.resourceVersion ?? '';
  const update = hubApplication({ uid: 'u', resourceVersion }, { spec: { source: { path: 'p1' } } });
  agent.sync.receive(incoming('spec-update', update));
  await lab.run();
  expect(agent.copy()?.spec.source).toEqual({ path: 'p1' });
});

test('defect 21: what an API server will never take is told once, tried ever more rarely, and holds up nothing', async () => {
  const lab = new Lab();
  const attempts: number[] = [];
  const { agent } = await joined(lab);
  agent.cluster.intercept = (call, { name }) => {
    if (name === 'shop' && call === 'patch') {
      attempts.push(lab.time.now());
      throw new Refusal(422);
    }
  };
  lab.hub.objects.patch(ref, { spec: { source: { path: 'invalid' } } });
  lab.hub.objects.create(hubApplication({ name: 'other' }));
  await lab.run(3_600_000);
  expect(attempts.length).toBeGreaterThan(3);
  expect(attempts.length).toBeLessThan(25);
  expect(agent.copy('other')).toBeDefined();
  expect(lab.hub.objects.get(ref)?.status).toMatchObject({
    health: { status: 'Degraded' },
    conditions: [{ type: 'AgentError', message: 'status 422' }],
  });
  agent.cluster.intercept = () => undefined;
  await lab.run(600_000);
  expect(agent.copy()?.spec.source, 'and done when it is possible').toEqual({ path: 'invalid' });
  expect(lab.hub.objects.get(ref)?.status?.conditions ?? []).toEqual([]);
});

test('defect 23: status is told when an agent starts, and when it adopts', async () => {
  const lab = new Lab();
  const { agent } = await joined(lab);
  agent.stop.abort();
  agent.cluster.objects.patch(local, { status: { health: { status: 'Healthy' } } });
  agent.cluster.objects.create(
    hubApplication({ namespace: 'argocd', name: 'own' }, { status: { health: { status: 'Missing' } } }),
  );
  lab.hub.objects.create(hubApplication({ name: 'own' }));
  const principal = lab.principal();
  lab.join(principal, lab.agent({}, agent.cluster));
  await lab.run(10_000);
  expect(lab.hub.objects.get(ref)?.status?.health?.status).toBe('Healthy');
  expect(lab.hub.objects.get({ ...ref, name: 'own' })?.status?.health?.status).toBe('Missing');
});

test('defect 24: an Application that is being deleted on the hub is brought in step first, and deleted only then', async () => {
  const lab = new Lab();
  const { agent } = await joined(lab, hubApplication({ finalizers: ['resources-finalizer.argocd.argoproj.io'] }));
  const calls: string[] = [];
  let failures = 3;
  agent.cluster.intercept = (call) => {
    calls.push(call);
    if (call === 'patch' && failures-- > 0) {
      throw new Refusal(500);
    }
  };
  lab.hub.objects.patch(ref, { spec: { destination: { namespace: 'elsewhere' } } });
  lab.hub.objects.delete(ref, { propagation: 'Background' });
  await lab.run(60_000);
  expect(calls.slice(0, 5)).toEqual(['patch', 'patch', 'patch', 'patch', 'delete']);
  agent.cluster.objects.patch(local, { metadata: { finalizers: null } });
  await lab.run(60_000);
  expect(agent.copy(), 'and not made again').toBeUndefined();
  expect(lab.hub.objects.get(ref)).toBeUndefined();
});

test('defect 25: nothing is remembered of an Application that is gone: its successor in name is not taken for it', async () => {
  const lab = new Lab();
  const { agent } = await joined(lab);
  const uid = lab.hub.objects.get(ref)?.metadata.uid ?? '';
  lab.hub.objects.delete(ref, { propagation: 'Background' });
  await lab.run(5_000);
  expect(agent.copy()).toBeUndefined();
  const writes = agent.cluster.writes;
  agent.cluster.objects.create(hubApplication({ namespace: 'argocd' }, { spec: { source: { path: 'own' } } }));
  await lab.run(60_000);
  expect(agent.cluster.writes).toBe(writes);
  expect(agent.copy()?.metadata.annotations?.[annotations.sourceUid]).not.toBe(uid);
});

test('defect 26: an error of an agent shows as health and condition; the rest stays, also of a remapped namespace', async () => {
  const lab = new Lab();
  const hub = { namespace: 'gitops', name: 'shop' };
  lab.hub.objects.create(
    hubApplication(hub, {
      spec: { destination: { name: 'a' } },
      status: { sync: { status: 'Synced' } },
      operation: { sync: {} },
    }),
  );
  lab.hub.objects.patch(hub, { metadata: { annotations: { [annotations.refresh]: 'normal' } } });
  const principal = lab.principal({ ...byDestination, namespaceOf: (_, at) => (at === 'argocd' ? 'gitops' : at) });
  principal.connect('a');
  await lab.run(5_000);
  principal.sync.receive('a', {
    target: 'application',
    type: 'error',
    resourceId: 'r',
    eventId: 'e',
    // As argocd-agent's agent calls it: by its own namespace, without any mark.
    error: { resourceName: 'shop', resourceNamespace: 'argocd', message: 'may not be adopted' },
  });
  await lab.run(5_000);
  expect(lab.hub.objects.get(hub)).toMatchObject({
    metadata: { annotations: { [annotations.refresh]: 'normal' } },
    operation: { sync: {} },
    status: {
      sync: { status: 'Synced' },
      health: { status: 'Degraded' },
      conditions: [{ type: 'AgentError', message: 'agent a: may not be adopted' }],
    },
  });
});

test('defect 28: any number of Applications made while an agent is away reaches it', async () => {
  const lab = new Lab();
  const principal = lab.principal();
  const agent = lab.agent();
  const disconnect = lab.join(principal, agent);
  await lab.run(5_000);
  disconnect();
  for (let i = 0; i < 1_500; i++) {
    lab.hub.objects.create(hubApplication({ name: `app-${i}` }));
  }
  await lab.run(5_000);
  lab.join(principal, agent);
  await lab.run(30_000);
  expect(agent.cluster.objects.list()).toHaveLength(1_500);
});

test('defect 32: what the managed cluster notes on its copy outlives the updates of the hub', async () => {
  const lab = new Lab();
  const { agent } = await joined(lab);
  const own = { [annotations.notified]: 'sent', [annotations.hydrate]: 'normal', [annotations.refresh]: 'hard' };
  agent.cluster.objects.patch(local, { metadata: { annotations: own } });
  lab.hub.objects.patch(ref, { metadata: { annotations: { note: '1' } }, spec: { source: { path: 'p1' } } });
  await lab.run(5_000);
  expect(agent.copy()?.metadata.annotations).toMatchObject({ ...own, note: '1' });
  expect(lab.hub.objects.get(ref)?.metadata.annotations, 'and is no request of the hub').toEqual({ note: '1' });
});

test.each([
  { [annotations.refresh]: 'normal' },
  { [annotations.refresh]: 'hard', [annotations.refreshTimestamp]: '2026-01-01T00:00:00Z' },
  { [annotations.hydrate]: 'normal', [annotations.hydrateTimestamp]: '2026-01-01T00:00:00Z' },
])('defect 33: the request %o reaches Argo CD once, and is gone on the hub when it is done', async (request) => {
  const lab = new Lab();
  const { agent } = await joined(lab);
  const done = Object.fromEntries(Object.keys(request).map((key) => [key, null]));
  let asked = 0;
  agent.cluster.objects.watch(({ old, now }) => {
    const [key = ''] = Object.keys(request);
    if (now?.metadata.annotations?.[key] !== undefined && old?.metadata.annotations?.[key] === undefined) {
      asked++;
    }
  });
  lab.hub.objects.patch(ref, { metadata: { annotations: request } });
  await lab.run(5_000);
  expect(agent.copy()?.metadata.annotations).toMatchObject(request);
  lab.hub.objects.patch(ref, { spec: { source: { path: 'p1' } } });
  await lab.run(5_000);
  agent.cluster.objects.patch(local, { metadata: { annotations: done } });
  await lab.run(5_000);
  lab.hub.objects.patch(ref, { spec: { source: { path: 'p2' } } });
  await lab.run(5_000);
  expect(asked).toBe(1);
  expect(Object.keys(lab.hub.objects.get(ref)?.metadata.annotations ?? {})).toEqual([]);
  expect(Object.keys(agent.copy()?.metadata.annotations ?? {}).filter((key) => key in request)).toEqual([]);
});

test('defect 34: a state told again carries no operation; the operation is a message of its own, once', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication({}, { operation: { sync: { revision: 'r1' } } }));
  const principal = lab.principal();
  principal.connect('a');
  await lab.run(5_000);
  expect(sentMessages(principal, 'create').map(({ object }) => object.operation)).toEqual([undefined]);
  expect(sentMessages(principal, 'set-operation').map(({ object }) => object.operation)).toEqual([
    { sync: { revision: 'r1' } },
  ]);
  const uid = lab.hub.objects.get(ref)?.metadata.uid ?? '';
  principal.sync.receive('a', {
    target: 'resourceResync',
    type: 'request-update',
    resourceId: 'r',
    eventId: 'e',
    payload: { kind: 'Application', name: 'shop', namespace: 'argocd', uid, checksum: 'other' },
  });
  await lab.run(5_000);
  const again = [...sentMessages(principal, 'create').slice(1), ...sentMessages(principal, 'spec-update')];
  expect(again.map(({ object }) => object.operation)).toEqual([undefined]);
  expect(sentMessages(principal, 'set-operation')).toHaveLength(1);
});

test("defect 35: kubectl's note of the hub's object is not on the copy, neither at first nor after an update", async () => {
  const lab = new Lab();
  const { agent } = await joined(lab, hubApplication({ annotations: { [annotations.lastApplied]: '{}' } }));
  expect(agent.copy()?.metadata.annotations).not.toHaveProperty([annotations.lastApplied]);
  lab.hub.objects.patch(ref, { metadata: { annotations: { [annotations.lastApplied]: '{"a":1}', note: '1' } } });
  await lab.run(5_000);
  expect(agent.copy()?.metadata.annotations).toMatchObject({ note: '1' });
  expect(agent.copy()?.metadata.annotations).not.toHaveProperty([annotations.lastApplied]);
});

test('defect 36: objects of the caches are never written to', async () => {
  // The laboratory's caches give frozen objects: whoever writes to one throws, and nothing comes into step.
  const lab = new Lab();
  const { agent } = await joined(lab, hubApplication({ labels: { a: '1' }, finalizers: ['f'] }));
  expect(Object.isFrozen((await lab.hub.read(ref))?.spec.destination)).toBe(true);
  agent.cluster.objects.patch(local, { spec: { project: 'other' }, metadata: { labels: { a: null } } });
  agent.cluster.objects.patch(local, { status: { health: { status: 'Healthy' } }, operation: { sync: {} } });
  await lab.run(5_000);
  expect(agent.copy()).toMatchObject({ spec: { project: 'default' }, metadata: { labels: { a: '1' } } });
  expect(lab.hub.objects.get(ref)?.status?.health?.status).toBe('Healthy');
  expect(lab.log.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
});

test('defect 42: a deletion that found nothing does not let a later one pass', async () => {
  const lab = new Lab();
  const agent = lab.agent();
  agent.connect();
  agent.sync.receive(incoming('delete', hubApplication({ uid: 'u' })));
  await lab.run();
  agent.sync.receive(incoming('create', hubApplication({ uid: 'u' })));
  await lab.run();
  agent.cluster.objects.delete(local, { propagation: 'Background' });
  await lab.run(5_000);
  expect(agent.copy()?.metadata.annotations?.[annotations.sourceUid]).toBe('u');
});

test("defect 51: own writes that come back late, several at once, pass for nobody else's", async () => {
  const lab = new Lab();
  const { principal, agent } = await joined(lab);
  lab.hub.lagMs = 500;
  agent.cluster.lagMs = 500;
  for (const path of ['p1', 'p2', 'p3']) {
    lab.hub.objects.patch(ref, { spec: { source: { path } } });
    await lab.run(10);
  }
  await lab.run(20_000);
  expect(agent.copy()?.spec.source).toEqual({ path: 'p3' });
  const writes = agent.cluster.writes;
  const sent = sentMessages(principal, 'spec-update').length;
  expect(sent).toBeLessThanOrEqual(3);
  for (const status of ['Progressing', 'Degraded', 'Healthy']) {
    agent.cluster.objects.patch(local, { status: { health: { status } } });
    await lab.run(10);
  }
  await lab.run(20_000);
  expect(lab.hub.objects.get(ref)?.status?.health?.status).toBe('Healthy');
  expect(agent.cluster.writes, 'the agent put nothing back').toBe(writes);
  expect(sentMessages(principal, 'spec-update'), 'the principal told nothing again').toHaveLength(sent);
});
