import { describe, expect, test } from 'vitest';
import { annotations } from '../index.ts';
import { Lab } from '../testing/lab.ts';
import { alone, incoming, own } from './testing/alone.ts';
import { join, joined, ownApplication, StageAgent, StagePrincipal } from './testing/stage.ts';

// What must hold where argocd-agent's code is known not to hold it.

const local = { namespace: 'argocd', name: 'shop' };
const hubRef = { namespace: 'a', name: 'shop' };

describe('what belongs to others', () => {
  test("an Application on the hub that is nobody's mirror is not touched, which is said until it gives way", async () => {
    const lab = new Lab();
    lab.hub.objects.create({ metadata: hubRef, spec: { source: { path: 'own' } } });
    const principal = new StagePrincipal(lab);
    principal.connect();
    principal.receive(incoming('create', own('u')));
    principal.receive(incoming('spec-update', own('u', { status: { sync: { status: 'Synced' } } })));
    principal.receive(incoming('delete', { ...own('v') }));
    await lab.run(60_000);
    expect(principal.mirror()?.spec).toEqual({ source: { path: 'own' } });
    expect(principal.failures).toMatchObject([
      { agent: 'a', name: 'shop', message: expect.stringMatching(/somebody's own/) },
    ]);
    expect(principal.sync.stats('a').retrying).toBe(1);
    lab.hub.objects.delete(hubRef, { propagation: 'Background' });
    await lab.run();
    expect(principal.mirror()?.status).toEqual({ sync: { status: 'Synced' } });
    expect(principal.sync.stats('a').retrying).toBe(0);
    expect(principal.mirrors.failures('a')).toEqual([]);
  });

  test('its owner can let the agent have it', async () => {
    const lab = new Lab();
    lab.hub.objects.create({ metadata: hubRef, spec: { source: { path: 'own' } } });
    const principal = new StagePrincipal(lab);
    principal.connect();
    principal.receive(incoming('create', own('u')));
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
    principal.receive(incoming('create', elsewhere));
    principal.receive(incoming('delete', elsewhere));
    for (const name of ['../b/shop', 'b/shop', 'Shop', '-', '']) {
      principal.receive(incoming('create', { ...elsewhere, metadata: { ...elsewhere.metadata, name } }));
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
      principal.receive(
        incoming(type, own('old', { status: { health: { status: 'Degraded' } }, operation: { sync: {} } })),
      );
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
    agent.receive(incoming(type, own(uid ?? '', { spec: { source: { path: 'hub' } } })));
    agent.receive(incoming(type, { ...own('new'), metadata: { ...own('new').metadata, name: 'web' } }));
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
  test('defect 22: without a namespace the event is kept, the trouble is said, and it is done when the namespace is there', async () => {
    const lab = new Lab();
    lab.hub.objects.cluster.missing.add('a');
    const principal = new StagePrincipal(lab);
    principal.connect();
    principal.receive(incoming('create', own('u')));
    await lab.run(10_000);
    expect(principal.acknowledged).toEqual([]);
    expect(principal.failures).toMatchObject([
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
    expect(principal.mirrors.failures('a')).toEqual([]);
  });

  test('a namespace is made where that is wanted; why not is said', async () => {
    const lab = new Lab();
    lab.hub.objects.cluster.missing.add('a');
    let mayBe = false;
    const ensureNamespace = async (namespace: string) => {
      if (!mayBe) {
        throw new Error('its name does not match the pattern');
      }
      lab.hub.objects.cluster.missing.delete(namespace);
    };
    const principal = new StagePrincipal(lab, { ensureNamespace });
    principal.connect();
    principal.receive(incoming('create', own('u')));
    await lab.run(10_000);
    expect(principal.failures).toMatchObject([{ message: expect.stringMatching(/does not match the pattern/) }]);
    mayBe = true;
    await lab.run(60_000);
    expect(principal.mirror()).toBeDefined();
  });

  test('defect 22: without a cluster the event is kept; a cluster of another name changes the mirrors', async () => {
    const lab = new Lab();
    let cluster: string | undefined;
    const principal = new StagePrincipal(lab, { clusterOf: () => cluster });
    principal.connect();
    principal.receive(incoming('create', own('u')));
    await lab.run(10_000);
    expect(principal.acknowledged).toEqual([]);
    expect(principal.failures).toMatchObject([{ message: expect.stringMatching(/no cluster for agent a/) }]);
    cluster = 'one';
    principal.mirrors.clusterChanged('a');
    await lab.run(60_000);
    expect(principal.mirror()?.spec.destination).toEqual({ name: 'one', namespace: 'shop' });
    cluster = 'two';
    principal.mirrors.clusterChanged('a');
    await lab.run();
    expect(principal.mirror()?.spec.destination).toEqual({ name: 'two', namespace: 'shop' });
  });

  test('a cluster that is renamed while its mirror is being written gets its last name', async () => {
    const lab = new Lab();
    let cluster = 'one';
    const principal = new StagePrincipal(lab, { clusterOf: () => cluster });
    principal.connect();
    lab.hub.intercept = (call) => {
      if (call === 'create') {
        cluster = 'two';
        principal.mirrors.clusterChanged('a');
      }
    };
    principal.receive(incoming('create', own('u')));
    await lab.run(10_000);
    expect(principal.mirror()?.spec.destination).toEqual({ name: 'two', namespace: 'shop' });
    lab.hub.intercept = (call) => {
      if (call === 'patch' && cluster === 'three') {
        cluster = 'four';
        principal.mirrors.clusterChanged('a');
      }
    };
    cluster = 'three';
    principal.mirrors.clusterChanged('a');
    await lab.run(10_000);
    expect(principal.mirror()?.spec.destination).toEqual({ name: 'four', namespace: 'shop' });
  });

  test('a project whose name would be too long is said to be, and not tried for ever', async () => {
    const { lab, principal } = await alone();
    principal.receive(
      incoming('spec-update', own('old', { spec: { project: 'p'.repeat(252), source: { path: 'p1' } } })),
    );
    await lab.run(600_000);
    expect(principal.failures).toMatchObject([
      { message: expect.stringMatching(/254 characters are more than the 253/) },
    ]);
    expect(principal.mirror()?.spec.source, 'what was there stays').toEqual({ path: 'p0' });
    principal.receive(incoming('spec-update', own('old', { spec: { project: 'team', source: { path: 'p1' } } })));
    await lab.run();
    expect(principal.mirror()?.spec).toMatchObject({ project: 'a-team', source: { path: 'p1' } });
    expect(principal.mirrors.failures('a')).toEqual([]);
  });

  test('defect 21: what the API server rejects is tried again ever more rarely, and the next word of the agent at once', async () => {
    const { lab, principal } = await alone();
    let calls = 0;
    lab.hub.intercept = (call) => {
      calls += call === 'patch' ? 1 : 0;
      if (call === 'patch') {
        throw Object.assign(new Error('spec.source is required'), { status: 422, reason: 'Invalid' });
      }
    };
    principal.receive(incoming('spec-update', own('old', { spec: { project: 'default' } })));
    await lab.run(3_600_000);
    expect(calls).toBeLessThan(30);
    expect(principal.failures).toMatchObject([{ message: 'spec.source is required' }]);
    lab.hub.intercept = () => undefined;
    principal.receive(incoming('spec-update', own('old', { spec: { project: 'default', source: { path: 'p1' } } })));
    await lab.run();
    expect(principal.mirror()?.spec.source).toEqual({ path: 'p1' });
  });

  test('what was never shown, and is gone when its agent comes back without memory of it, is not shown later', async () => {
    const lab = new Lab();
    lab.hub.intercept = (call) => {
      if (call === 'create') {
        throw Object.assign(new Error('no'), { status: 422, reason: 'Invalid' });
      }
    };
    const principal = new StagePrincipal(lab);
    const agent = new StageAgent(lab);
    agent.cluster.objects.create(ownApplication());
    const disconnect = join(lab, principal, agent);
    await lab.run(3_000);
    expect(principal.mirrors.failures('a')).toHaveLength(1);
    disconnect();
    agent.stop.abort();
    agent.cluster.objects.delete(local, { propagation: 'Background' });
    join(lab, principal, new StageAgent(lab, agent.cluster));
    await lab.run(3_000);
    expect(principal.mirrors.failures('a')).toEqual([]);
    lab.hub.intercept = () => undefined;
    await lab.run(600_000);
    expect(principal.mirror()).toBeUndefined();
  });

  test('a mirror that went to another cluster while nobody looked comes back, also if the cache shows it late', async () => {
    const { lab, principal, agent, disconnect } = joined();
    agent.cluster.objects.create(ownApplication());
    await lab.run(3_000);
    const right = principal.mirror()?.spec;
    disconnect();
    principal.stop.abort();
    lab.hub.isHidden = () => true;
    const next = new StagePrincipal(lab);
    lab.hub.isHidden = () => false;
    lab.hub.objects.patch(hubRef, { spec: { destination: { name: 'other' } } });
    await lab.run(3_000);
    join(lab, next, agent);
    await lab.run(3_000);
    expect(next.mirror()?.spec).toEqual(right);
  });

  test('an outage of the hub loses nothing', async () => {
    const { lab, principal } = await alone();
    lab.hub.intercept = () => {
      throw new Error('connection refused');
    };
    principal.receive(incoming('spec-update', own('old', { spec: { project: 'default', source: { path: 'p1' } } })));
    await lab.run(5_000);
    expect(principal.acknowledged).toHaveLength(1);
    lab.hub.intercept = () => undefined;
    await lab.run(60_000);
    expect(principal.acknowledged).toHaveLength(2);
    expect(principal.mirror()?.spec.source).toEqual({ path: 'p1' });
  });
});
