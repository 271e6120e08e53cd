import { describe, expect, test } from 'vitest';
import { type Application, type ApplicationMessage, annotations, type Message, skipSyncLabel } from '../index.ts';
import { isSkipped } from '../routing.ts';
import { Lab, LabCluster, told } from '../testing/lab.ts';
import { join, joined, ownApplication, StageAgent, StagePrincipal } from './testing/stage.ts';

// What must hold where argocd-agent's code is known not to hold it.

const local = { namespace: 'argocd', name: 'shop' };
const hubRef = { namespace: 'a', name: 'shop' };
const resources = 'resources-finalizer.argocd.argoproj.io';

let events = 0;
/** A message of a Go agent. */
function says(type: ApplicationMessage['type'], object: Application): Message {
  const { name, uid } = object.metadata;
  const resourceId = `${name}_${uid}`;
  return { target: 'application', type, resourceId, eventId: `${resourceId}_${++events}`, object };
}

function own(uid: string, rest: Partial<Application> = {}): Application {
  return ownApplication({ uid, resourceVersion: '7' }, rest);
}

/** A principal alone, with the mirror of an Application whose UID is `old`. */
async function alone(options: ConstructorParameters<typeof StagePrincipal>[1] = {}) {
  const lab = new Lab();
  const principal = new StagePrincipal(lab, options);
  principal.connect();
  principal.hear(says('create', own('old')));
  await lab.run();
  return { lab, principal };
}

describe('a re-created Application', () => {
  test('takes over the name though the deletion of the one before comes later', async () => {
    const { lab, principal } = await alone();
    const before = principal.mirror()?.metadata.uid;
    principal.hear(says('create', own('new', { spec: { project: 'default', source: { path: 'new' } } })));
    await lab.run();
    principal.hear(says('delete', own('old')));
    await lab.run();
    expect(principal.mirror()).toMatchObject({
      metadata: { annotations: { [annotations.sourceUid]: 'new' } },
      spec: { source: { path: 'new' } },
    });
    expect(principal.mirror()?.metadata.uid, 'it is another mirror').not.toBe(before);
    lab.hub.objects.patch(hubRef, { spec: { source: { path: 'edited' } } });
    await lab.run();
    expect(principal.mirror()?.spec.source, 'not what the old one was').toEqual({ path: 'new' });
    principal.hear(says('delete', own('new')));
    await lab.run();
    expect(principal.mirror()).toBeUndefined();
  });

  test('does not inherit what was asked of the one before', async () => {
    const { lab, principal } = await alone();
    principal.parts.disconnected('a', principal.connect());
    lab.hub.objects.patch(hubRef, { operation: { sync: {} } });
    await lab.run();
    principal.connect();
    principal.said.length = 0;
    principal.hear(says('create', own('new')));
    await lab.run();
    expect(principal.mirror()?.operation).toBeUndefined();
  });

  test('is told to a Go principal after the deletion of the one before, and once more', async () => {
    const lab = new Lab();
    const agent = new StageAgent(lab);
    agent.connect();
    agent.cluster.objects.create(ownApplication());
    await lab.run(5_000);
    const before = agent.application()?.metadata.uid;
    agent.said.length = 0;
    agent.cluster.objects.delete(local, { propagation: 'Background' });
    agent.cluster.objects.create(ownApplication());
    await lab.run(20_000);
    const after = agent.application()?.metadata.uid;
    const brief = agent.said.map((one) => (one.target === 'application' ? `${one.type} ${one.resourceId}` : ''));
    // That one takes a creation for done while it still deletes.
    expect(brief).toEqual([`delete shop_${before}`, `create shop_${after}`, `create shop_${after}`]);
  });
});

describe('a mirror', () => {
  test('that is missing is made by an update too', async () => {
    const lab = new Lab();
    const principal = new StagePrincipal(lab);
    principal.connect();
    principal.hear(says('spec-update', own('u')));
    await lab.run();
    expect(principal.mirror()?.metadata.annotations?.[annotations.sourceUid]).toBe('u');
  });

  test('is made again after a user deleted it, whatever its finalizers', async () => {
    const { lab, principal } = await alone();
    for (const finalizers of [null, [resources], [resources, 'example.com/hold']]) {
      const { uid } = lab.hub.objects.patch(hubRef, { metadata: { finalizers } }).metadata;
      lab.hub.objects.delete(hubRef, { propagation: 'Foreground' });
      await lab.run(1_000);
      expect(principal.mirror()?.metadata.deletionTimestamp).toBeUndefined();
      expect(principal.mirror()?.metadata.uid).not.toBe(uid);
      expect(principal.mirror()?.spec.project).toBe('a-default');
    }
  });

  test('of an Application that is gone goes, whatever its finalizers', async () => {
    const { lab, principal } = await alone();
    lab.hub.objects.patch(hubRef, { metadata: { finalizers: [resources, 'example.com/hold'] } });
    principal.hear(says('delete', own('old')));
    await lab.run();
    expect(principal.mirror()).toBeUndefined();
  });

  test("gets back at once what tells that it is nobody else's", async () => {
    const { lab, principal } = await alone();
    lab.hub.objects.patch(hubRef, { metadata: { annotations: { [annotations.lastUpdated]: null } } });
    await lab.run();
    expect(principal.mirror()?.metadata.annotations).toHaveProperty([annotations.lastUpdated]);
    const { writes } = lab.hub;
    await lab.run(60_000);
    expect(lab.hub.writes).toBe(writes);
  });

  test('is protected after a restart, before its agent is there', async () => {
    const { lab, principal } = await alone();
    principal.stop.abort();
    const again = new StagePrincipal(lab);
    lab.hub.objects.patch(hubRef, { spec: { source: { path: 'edited' } } });
    await lab.run();
    expect(again.mirror()?.spec.source).toEqual({ path: 'p0' });
    lab.hub.objects.delete(hubRef, { propagation: 'Background' });
    await lab.run();
    expect(again.mirror()?.spec.source).toEqual({ path: 'p0' });
  });

  test('that a user changed or deleted while the principal was away is right when its agent is back', async () => {
    const { lab, principal, agent, part } = joined();
    agent.cluster.objects.create(ownApplication());
    agent.cluster.objects.create(ownApplication({ name: 'web' }));
    agent.cluster.objects.create(ownApplication({ name: 'jobs' }));
    await lab.run(5_000);
    part();
    principal.stop.abort();
    lab.hub.objects.patch(hubRef, { spec: { source: { path: 'edited' } } });
    lab.hub.objects.delete({ namespace: 'a', name: 'web' }, { propagation: 'Background' });
    agent.said.length = 0;
    const again = new StagePrincipal(lab);
    join(lab, again, agent);
    await lab.run(10_000);
    expect(again.mirror()?.spec.source).toEqual({ path: 'p0' });
    expect(again.mirror('web')?.spec.source).toEqual({ path: 'p0' });
    const names = agent.said.flatMap((one) =>
      one.target === 'application' && 'object' in one ? [one.object.metadata.name] : [],
    );
    expect(names.sort(), 'what was not touched costs nothing').toEqual(['shop', 'web']);
  });

  test.each(['sees it', 'does not see it'])(
    'that is left out by its label on the hub is left alone: the cache %s',
    async (seen) => {
      const { lab, principal } = await alone();
      lab.hub.isHidden = (object) => seen !== 'sees it' && isSkipped(object);
      lab.hub.objects.patch(hubRef, {
        metadata: { labels: { [skipSyncLabel]: 'true' } },
        spec: { source: { path: 'x' } },
      });
      principal.hear(says('spec-update', own('old', { status: { sync: { status: 'Synced' } } })));
      await lab.run(60_000);
      expect(principal.mirror()?.spec.source).toEqual({ path: 'x' });
      expect(principal.acknowledged).toHaveLength(2);
      lab.hub.objects.patch(hubRef, { metadata: { labels: null } });
      await lab.run(60_000);
      expect(principal.mirror()?.spec.source).toEqual({ path: 'p0' });
    },
  );

  test('does not take the label that leaves it out from its agent', async () => {
    const { lab, principal } = await alone();
    const { metadata, ...rest } = own('old');
    const labels = { [skipSyncLabel]: 'true', team: 'x' };
    principal.hear(says('spec-update', { ...rest, metadata: { ...metadata, labels } }));
    await lab.run();
    expect(principal.mirror()?.metadata.labels).toEqual({ team: 'x' });
  });

  test('does not become what it was when a copy of an earlier message comes late', async () => {
    const { lab, principal } = await alone();
    const first = says('spec-update', own('old', { status: { sync: { status: 'OutOfSync' } } }));
    // The second time it is an answer: a Go agent says what it has, under the id that it has.
    for (const message of [
      first,
      first,
      says('spec-update', own('old', { status: { sync: { status: 'Synced' } } })),
      first,
    ]) {
      principal.hear(message);
      await lab.run();
    }
    expect(principal.mirror()?.status).toEqual({ sync: { status: 'Synced' } });
    expect(principal.acknowledged).toHaveLength(5);
  });

  test('is not written to when its agent says what it shows already', async () => {
    const { lab, principal } = await alone();
    const { writes } = lab.hub;
    principal.hear(says('spec-update', own('old')));
    await lab.run();
    expect(lab.hub.writes).toBe(writes);
  });

  test('is not written to again and again when the API server makes something else of it', async () => {
    const { lab, principal } = await alone();
    const patch = lab.hub.patch.bind(lab.hub);
    lab.hub.patch = async (ref, change) => {
      await patch(ref, change);
      return lab.hub.objects.patch(ref, { spec: { source: { path: 'of-the-hub' } } });
    };
    principal.hear(says('spec-update', own('old', { spec: { ...own('old').spec, source: { path: 'p1' } } })));
    await lab.run(60_000);
    expect(lab.hub.writes).toBe(2);
    expect(principal.acknowledged).toHaveLength(2);
  });
});

describe('what belongs to others', () => {
  test("an Application on the hub that is nobody's mirror is not touched, which is said until it gives way", async () => {
    const lab = new Lab();
    lab.hub.objects.create({ metadata: hubRef, spec: { source: { path: 'own' } } });
    const principal = new StagePrincipal(lab);
    principal.connect();
    principal.hear(says('create', own('u')));
    principal.hear(says('spec-update', own('u', { status: { sync: { status: 'Synced' } } })));
    principal.hear(says('delete', { ...own('v') }));
    await lab.run(60_000);
    expect(principal.mirror()?.spec).toEqual({ source: { path: 'own' } });
    expect(principal.troubles).toMatchObject([
      { agent: 'a', name: 'shop', message: expect.stringMatching(/somebody's own/) },
    ]);
    expect(principal.parts.stats('a').retrying).toBe(1);
    lab.hub.objects.delete(hubRef, { propagation: 'Background' });
    await lab.run();
    expect(principal.mirror()?.status).toEqual({ sync: { status: 'Synced' } });
    expect(principal.parts.stats('a').retrying).toBe(0);
    expect(principal.mirrors.troubles('a')).toEqual([]);
  });

  test('its owner can let the agent have it', async () => {
    const lab = new Lab();
    lab.hub.objects.create({ metadata: hubRef, spec: { source: { path: 'own' } } });
    const principal = new StagePrincipal(lab);
    principal.connect();
    principal.hear(says('create', own('u')));
    await lab.run();
    lab.hub.objects.patch(hubRef, { metadata: { annotations: { [annotations.adoptionPolicy]: 'always' } } });
    await lab.run();
    expect(principal.mirror()).toMatchObject({
      metadata: { annotations: { [annotations.sourceUid]: 'u' } },
      spec: { source: { path: 'p0' } },
    });
  });

  test('an agent reaches nothing outside its namespace, whatever it calls it', async () => {
    const lab = new Lab();
    lab.hub.objects.create({ metadata: { namespace: 'b', name: 'shop' }, spec: { source: { path: 'own' } } });
    const principal = new StagePrincipal(lab);
    principal.connect();
    const elsewhere = { ...own('u'), metadata: { ...own('u').metadata, namespace: 'b' } };
    principal.hear(says('create', elsewhere));
    principal.hear(says('delete', elsewhere));
    for (const name of ['../b/shop', 'b/shop', 'Shop', '-', '']) {
      principal.hear(says('create', { ...elsewhere, metadata: { ...elsewhere.metadata, name } }));
    }
    await lab.run();
    expect(lab.hub.objects.list().map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)).toEqual(['b/shop']);
    expect(lab.hub.objects.get({ namespace: 'b', name: 'shop' })?.spec).toEqual({ source: { path: 'own' } });
    expect(principal.acknowledged, 'nothing of it is sent again').toHaveLength(7);
  });

  test.each(['status-update', 'set-operation', 'terminate-operation'] as const)(
    'an autonomous agent may not send %s',
    async (type) => {
      const { lab, principal } = await alone();
      principal.hear(says(type, own('old', { status: { health: { status: 'Degraded' } }, operation: { sync: {} } })));
      await lab.run();
      expect(principal.mirror()?.status).toBeUndefined();
      expect(principal.mirror()?.operation).toBeUndefined();
      expect(principal.acknowledged).toHaveLength(2);
    },
  );

  test.each(['create', 'delete', 'status-update'] as const)('a principal may not send %s', async (type) => {
    const lab = new Lab();
    const agent = new StageAgent(lab);
    agent.cluster.objects.create(ownApplication());
    agent.connect();
    await lab.run();
    const { uid } = agent.application()?.metadata ?? {};
    agent.hear(says(type, own(uid ?? '', { spec: { source: { path: 'hub' } } })));
    agent.hear(says(type, { ...own('new'), metadata: { ...own('new').metadata, name: 'web' } }));
    await lab.run();
    expect(agent.cluster.objects.list()).toHaveLength(1);
    expect(agent.application()?.spec.source).toEqual({ path: 'p0' });
    expect(agent.cluster.writes).toBe(0);
    expect(agent.acknowledged).toHaveLength(2);
  });

  test("an Application with the mark of a managed past is the cluster's own", async () => {
    const { lab, principal, agent } = joined();
    agent.cluster.objects.create(ownApplication({ annotations: { [annotations.sourceUid]: 'of-old' } }));
    await lab.run(5_000);
    const { uid } = agent.application()?.metadata ?? {};
    expect(principal.mirror()?.metadata.annotations?.[annotations.sourceUid]).toBe(uid);
    agent.cluster.objects.delete(local, { propagation: 'Background' });
    await lab.run();
    expect(agent.application(), 'nobody makes it again').toBeUndefined();
    expect(principal.mirror()).toBeUndefined();
  });
});

describe('what cannot be done yet', () => {
  test('without a namespace the event is kept, the trouble is said, and it is done when the namespace is there', async () => {
    const lab = new Lab();
    lab.hub.objects.cluster.missing.add('a');
    const principal = new StagePrincipal(lab);
    principal.connect();
    principal.hear(says('create', own('u')));
    await lab.run(10_000);
    expect(principal.acknowledged).toEqual([]);
    expect(principal.troubles).toMatchObject([
      {
        agent: 'a',
        name: 'shop',
        message: /no namespace a/ instanceof RegExp ? expect.stringMatching(/no namespace a/) : '',
      },
    ]);
    lab.hub.objects.cluster.missing.delete('a');
    await lab.run(60_000);
    expect(principal.mirror()).toBeDefined();
    expect(principal.acknowledged).toHaveLength(1);
    expect(principal.mirrors.troubles('a')).toEqual([]);
  });

  test('a namespace is made where that is wanted; why not is said', async () => {
    const lab = new Lab();
    lab.hub.objects.cluster.missing.add('a');
    let mayBe = false;
    const ensureNamespace = async (namespace: string) => {
      if (!mayBe) throw new Error('its name does not match the pattern');
      lab.hub.objects.cluster.missing.delete(namespace);
    };
    const principal = new StagePrincipal(lab, { ensureNamespace });
    principal.connect();
    principal.hear(says('create', own('u')));
    await lab.run(10_000);
    expect(principal.troubles).toMatchObject([{ message: expect.stringMatching(/does not match the pattern/) }]);
    mayBe = true;
    await lab.run(60_000);
    expect(principal.mirror()).toBeDefined();
  });

  test('without a cluster the event is kept; a cluster of another name changes the mirrors', async () => {
    const lab = new Lab();
    let cluster: string | undefined;
    const principal = new StagePrincipal(lab, { clusterOf: () => cluster });
    principal.connect();
    principal.hear(says('create', own('u')));
    await lab.run(10_000);
    expect(principal.acknowledged).toEqual([]);
    expect(principal.troubles).toMatchObject([{ message: expect.stringMatching(/no cluster for agent a/) }]);
    cluster = 'one';
    principal.mirrors.clusterChanged('a');
    await lab.run(60_000);
    expect(principal.mirror()?.spec.destination).toEqual({ name: 'one', namespace: 'shop' });
    cluster = 'two';
    principal.mirrors.clusterChanged('a');
    await lab.run();
    expect(principal.mirror()?.spec.destination).toEqual({ name: 'two', namespace: 'shop' });
  });

  test('a project whose name would be too long is said to be, and not tried for ever', async () => {
    const { lab, principal } = await alone();
    principal.hear(says('spec-update', own('old', { spec: { project: 'p'.repeat(252), source: { path: 'p1' } } })));
    await lab.run(600_000);
    expect(principal.troubles).toMatchObject([
      { message: expect.stringMatching(/254 characters are more than the 253/) },
    ]);
    expect(principal.mirror()?.spec.source, 'what was there stays').toEqual({ path: 'p0' });
    principal.hear(says('spec-update', own('old', { spec: { project: 'team', source: { path: 'p1' } } })));
    await lab.run();
    expect(principal.mirror()?.spec).toMatchObject({ project: 'a-team', source: { path: 'p1' } });
    expect(principal.mirrors.troubles('a')).toEqual([]);
  });

  test('what the API server rejects is tried again ever more rarely, and the next word of the agent at once', async () => {
    const { lab, principal } = await alone();
    let calls = 0;
    lab.hub.intercept = (call) => {
      calls += call === 'patch' ? 1 : 0;
      if (call === 'patch')
        throw Object.assign(new Error('spec.source is required'), { status: 422, reason: 'Invalid' });
    };
    principal.hear(says('spec-update', own('old', { spec: { project: 'default' } })));
    await lab.run(3_600_000);
    expect(calls).toBeLessThan(30);
    expect(principal.troubles).toMatchObject([{ message: 'spec.source is required' }]);
    lab.hub.intercept = () => undefined;
    principal.hear(says('spec-update', own('old', { spec: { project: 'default', source: { path: 'p1' } } })));
    await lab.run();
    expect(principal.mirror()?.spec.source).toEqual({ path: 'p1' });
  });

  test('what was never shown, and is gone when its agent comes back without memory of it, is not shown later', async () => {
    const lab = new Lab();
    lab.hub.intercept = (call) => {
      if (call === 'create') throw Object.assign(new Error('no'), { status: 422, reason: 'Invalid' });
    };
    const principal = new StagePrincipal(lab);
    const agent = new StageAgent(lab);
    agent.cluster.objects.create(ownApplication());
    const part = join(lab, principal, agent);
    await lab.run(3_000);
    expect(principal.mirrors.troubles('a')).toHaveLength(1);
    part();
    agent.stop.abort();
    agent.cluster.objects.delete(local, { propagation: 'Background' });
    join(lab, principal, new StageAgent(lab, agent.cluster));
    await lab.run(3_000);
    expect(principal.mirrors.troubles('a')).toEqual([]);
    lab.hub.intercept = () => undefined;
    await lab.run(600_000);
    expect(principal.mirror()).toBeUndefined();
  });

  test('an outage of the hub loses nothing', async () => {
    const { lab, principal } = await alone();
    lab.hub.intercept = () => {
      throw new Error('connection refused');
    };
    principal.hear(says('spec-update', own('old', { spec: { project: 'default', source: { path: 'p1' } } })));
    await lab.run(5_000);
    expect(principal.acknowledged).toHaveLength(1);
    lab.hub.intercept = () => undefined;
    await lab.run(60_000);
    expect(principal.acknowledged).toHaveLength(2);
    expect(principal.mirror()?.spec.source).toEqual({ path: 'p1' });
  });
});

describe('requests', () => {
  test.each([annotations.refresh, annotations.hydrate])(
    '%s reaches an Application without annotations, and is gone from the mirror when it is done',
    async (request) => {
      const { lab, principal, agent } = joined();
      agent.cluster.objects.create(ownApplication());
      await lab.run(5_000);
      lab.hub.objects.patch(hubRef, { metadata: { annotations: { [request]: 'hard' } } });
      await lab.run();
      expect(agent.application()?.metadata.annotations).toEqual({ [request]: 'hard' });
      expect(principal.mirror()?.metadata.annotations?.[request]).toBe('hard');
      agent.cluster.objects.patch(local, { metadata: { annotations: { [request]: null } } });
      await lab.run();
      expect(principal.mirror()?.metadata.annotations?.[request]).toBeUndefined();
    },
  );

  test("a refresh that was made on the agent's cluster does not come back to it from the mirror", async () => {
    const { lab, principal, agent } = joined();
    agent.cluster.objects.create(ownApplication({ annotations: { [annotations.refresh]: 'normal' } }));
    await lab.run(5_000);
    expect(principal.mirror()?.metadata.annotations?.[annotations.refresh]).toBeUndefined();
    expect(told(principal, 'spec-update')).toEqual([]);
  });

  test('equal resource versions on both clusters hide nothing', async () => {
    const { lab, principal } = await alone();
    const { resourceVersion = '' } = principal.mirror()?.metadata ?? {};
    principal.hear(
      says('spec-update', {
        ...own('old'),
        metadata: { ...own('old').metadata, resourceVersion },
        spec: { source: { path: 'p1' } },
      }),
    );
    await lab.run();
    expect(principal.mirror()?.spec.source).toEqual({ path: 'p1' });
  });

  test('an operation asked for while the agent is away is done when it is back, and its phases are shown', async () => {
    const { lab, principal, agent, part } = joined();
    agent.cluster.objects.create(ownApplication());
    await lab.run(5_000);
    part();
    lab.hub.objects.patch(hubRef, { operation: { sync: { revision: 'one' } } });
    await lab.run(600_000);
    join(lab, principal, agent);
    await lab.run();
    expect(agent.application()?.operation).toEqual({ sync: { revision: 'one' } });
    expect(told(principal, 'set-operation')).toHaveLength(1);
    agent.cluster.objects.patch(local, {
      status: { operationState: { phase: 'Running', operation: { sync: { revision: 'one' } }, startedAt: 't' } },
    });
    await lab.run();
    expect(principal.mirror()).toMatchObject({
      operation: { sync: { revision: 'one' } },
      status: { operationState: { phase: 'Running' } },
    });
    agent.cluster.objects.patch(local, { operation: null, status: { operationState: { phase: 'Succeeded' } } });
    await lab.run();
    expect(principal.mirror()?.operation).toBeUndefined();
    expect(principal.mirror()?.status?.operationState?.phase).toBe('Succeeded');
    expect(told(principal, 'set-operation')).toHaveLength(1);
  });

  test('a second operation waits for the first, which can be ended meanwhile', async () => {
    const { lab, principal, agent } = joined();
    agent.cluster.objects.create(ownApplication());
    await lab.run(5_000);
    const run = { phase: 'Running', operation: { sync: { revision: 'one' } }, startedAt: 't' };
    // It began where the hub does not know of it yet.
    agent.cluster.lagMs = 1_000;
    agent.cluster.objects.patch(local, { operation: { sync: { revision: 'one' } }, status: { operationState: run } });
    lab.hub.objects.patch(hubRef, { operation: { sync: { revision: 'two' } } });
    await lab.run(5_000);
    agent.cluster.lagMs = 0;
    expect(agent.application()?.operation).toEqual({ sync: { revision: 'one' } });
    expect(principal.mirror()?.operation, 'it is not forgotten').toEqual({ sync: { revision: 'two' } });
    lab.hub.objects.patch(hubRef, { status: { operationState: { phase: 'Terminating' } } });
    await lab.run();
    expect(agent.application()?.status?.operationState?.phase).toBe('Terminating');
    agent.cluster.objects.patch(local, { operation: null, status: { operationState: { phase: 'Failed' } } });
    await lab.run(60_000);
    expect(agent.application()?.operation).toEqual({ sync: { revision: 'two' } });
  });

  test('an operation that is set while the hub sees another run is sent after that', async () => {
    const { lab, principal, agent } = joined();
    agent.cluster.objects.create(ownApplication());
    const run = { phase: 'Running', operation: { sync: { revision: 'one' } }, startedAt: 't' };
    agent.cluster.objects.patch(local, { operation: { sync: { revision: 'one' } }, status: { operationState: run } });
    await lab.run(5_000);
    lab.hub.objects.patch(hubRef, { operation: { sync: { revision: 'two' } } });
    await lab.run(60_000);
    expect(told(principal, 'set-operation')).toEqual([]);
    // Also a principal that has just started knows.
    principal.stop.abort();
    const again = new StagePrincipal(lab);
    join(lab, again, agent);
    await lab.run(60_000);
    expect(told(again, 'set-operation')).toEqual([]);
    expect(again.mirror()?.operation).toEqual({ sync: { revision: 'two' } });
    agent.cluster.objects.patch(local, { operation: null, status: { operationState: { phase: 'Succeeded' } } });
    await lab.run();
    expect(agent.application()?.operation).toEqual({ sync: { revision: 'two' } });
    expect(told(again, 'set-operation')).toHaveLength(1);
  });

  test('an operation that is over does not hold up the next, whatever a Go agent made of its phase', async () => {
    const lab = new Lab();
    const principal = new StagePrincipal(lab);
    principal.connect();
    const over = { phase: 'Terminating', operation: { sync: { revision: 'one' } }, startedAt: 's', finishedAt: 'f' };
    principal.hear(says('create', own('u', { status: { operationState: over } })));
    await lab.run();
    lab.hub.objects.patch(hubRef, { operation: { sync: { revision: 'two' } } });
    await lab.run();
    expect(told(principal, 'set-operation')).toHaveLength(1);
  });

  test('what is asked of one incarnation is not done to another', async () => {
    const lab = new Lab();
    const agent = new StageAgent(lab);
    agent.cluster.objects.create(
      ownApplication({}, { status: { operationState: { phase: 'Running' } }, operation: {} }),
    );
    agent.connect();
    await lab.run();
    const mirror = {
      metadata: {
        ...hubRef,
        uid: 'hub',
        annotations: { [annotations.sourceUid]: 'other', [annotations.refresh]: 'x' },
      },
      spec: {},
      operation: { sync: {} },
    };
    for (const type of ['spec-update', 'set-operation', 'terminate-operation'] as const) {
      agent.hear(says(type, mirror));
    }
    await lab.run();
    expect(agent.cluster.writes).toBe(0);
    expect(agent.acknowledged).toHaveLength(3);
  });

  test('a request that comes to nothing is answered: the mirror shows what is', async () => {
    const { lab, principal, agent } = joined();
    const finished = { phase: 'Succeeded', operation: { sync: {} }, startedAt: 't' };
    agent.cluster.objects.create(ownApplication({}, { status: { operationState: finished } }));
    await lab.run(5_000);
    lab.hub.objects.patch(hubRef, { status: { operationState: { phase: 'Terminating' } } });
    await lab.run();
    expect(principal.mirror()?.status?.operationState?.phase).toBe('Succeeded');
    expect(agent.application()?.status?.operationState?.phase).toBe('Succeeded');
  });

  test('of a Go agent too, which says nothing by itself', async () => {
    const { lab, principal } = await alone();
    lab.hub.objects.patch(hubRef, { metadata: { annotations: { [annotations.refresh]: 'normal' } } });
    await lab.run();
    const asked = principal.said.filter(({ type }) => type === 'request-update');
    // Without a checksum it answers in any case.
    expect(asked).toMatchObject([{ payload: { kind: 'Application', name: 'shop', uid: 'old', checksum: null } }]);
  });
});

describe('an Application that its label leaves out', () => {
  test('has no mirror until it is taken up again', async () => {
    const { lab, principal, agent } = joined();
    agent.cluster.objects.create(ownApplication());
    await lab.run(5_000);
    agent.cluster.objects.patch(local, { metadata: { labels: { [skipSyncLabel]: 'true' } } });
    await lab.run();
    expect(principal.mirror()).toBeUndefined();
    agent.cluster.objects.patch(local, { metadata: { labels: null } });
    await lab.run(10_000);
    expect(principal.mirror()).toBeDefined();
  });

  test("in another namespace than the agent's does not exist", async () => {
    const lab = new Lab();
    const agent = new StageAgent(lab, new LabCluster('agent', lab.time));
    agent.cluster.objects.create(ownApplication({ namespace: 'other' }));
    agent.connect();
    await lab.run(5_000);
    expect(told(agent, 'create')).toEqual([]);
  });
});
