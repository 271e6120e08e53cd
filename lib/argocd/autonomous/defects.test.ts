import { describe, expect, test } from 'vitest';
import { annotations, skipSyncLabel } from '../index.ts';
import { isSkipped } from '../routing.ts';
import { Lab, LabCluster, sentMessages } from '../testing/lab.ts';
import { alone, incoming, own } from './testing/alone.ts';
import { join, joined, ownApplication, StageAgent, StagePrincipal } from './testing/stage.ts';

// What must hold where argocd-agent's code is known not to hold it.

const local = { namespace: 'argocd', name: 'shop' };
const hubRef = { namespace: 'a', name: 'shop' };
const resources = 'resources-finalizer.argocd.argoproj.io';

describe('a re-created Application', () => {
  test('defect 4: takes over the name though the deletion of the one before comes later', async () => {
    const { lab, principal } = await alone();
    const before = principal.mirror()?.metadata.uid;
    principal.receive(incoming('create', own('new', { spec: { project: 'default', source: { path: 'new' } } })));
    await lab.run();
    principal.receive(incoming('delete', own('old')));
    await lab.run();
    expect(principal.mirror()).toMatchObject({
      metadata: { annotations: { [annotations.sourceUid]: 'new' } },
      spec: { source: { path: 'new' } },
    });
    expect(principal.mirror()?.metadata.uid, 'it is another mirror').not.toBe(before);
    lab.hub.objects.patch(hubRef, { spec: { source: { path: 'edited' } } });
    await lab.run();
    expect(principal.mirror()?.spec.source, 'not what the old one was').toEqual({ path: 'new' });
    principal.receive(incoming('delete', own('new')));
    await lab.run();
    expect(principal.mirror()).toBeUndefined();
  });

  test('does not inherit what was asked of the one before', async () => {
    const { lab, principal } = await alone();
    principal.sync.disconnected('a', principal.connect());
    lab.hub.objects.patch(hubRef, { operation: { sync: {} } });
    await lab.run();
    principal.connect();
    principal.sent.length = 0;
    principal.receive(incoming('create', own('new')));
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
    agent.sent.length = 0;
    agent.cluster.objects.delete(local, { propagation: 'Background' });
    agent.cluster.objects.create(ownApplication());
    await lab.run(20_000);
    const after = agent.application()?.metadata.uid;
    const brief = agent.sent.map((one) => (one.target === 'application' ? `${one.type} ${one.resourceId}` : ''));
    // That one takes a creation for done while it still deletes.
    expect(brief).toEqual([`delete shop_${before}`, `create shop_${after}`, `create shop_${after}`]);
  });
});

describe('a mirror', () => {
  test('defect 5: that is missing is made by an update too', async () => {
    const lab = new Lab();
    const principal = new StagePrincipal(lab);
    principal.connect();
    principal.receive(incoming('spec-update', own('u')));
    await lab.run();
    expect(principal.mirror()?.metadata.annotations?.[annotations.sourceUid]).toBe('u');
  });

  test('defect 6: is made again after a user deleted it, whatever its finalizers', async () => {
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

  test('of an Application that is gone goes, though a user adds a finalizer while it goes', async () => {
    const { lab, principal } = await alone();
    lab.hub.objects.patch(hubRef, { metadata: { finalizers: [resources] } });
    await lab.run();
    let isHeld = false;
    lab.hub.objects.watch(({ now }) => {
      if (!isHeld && now !== undefined && (now.metadata.finalizers ?? []).length === 0) {
        isHeld = true;
        lab.hub.objects.patch(hubRef, { metadata: { finalizers: ['example.com/hold'] } });
      }
    });
    principal.receive(incoming('delete', own('old')));
    await lab.run(60_000);
    expect(isHeld).toBe(true);
    expect(principal.mirror()).toBeUndefined();
  });

  test('of an Application that is gone goes, whatever its finalizers', async () => {
    const { lab, principal } = await alone();
    lab.hub.objects.patch(hubRef, { metadata: { finalizers: [resources, 'example.com/hold'] } });
    principal.receive(incoming('delete', own('old')));
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

  test('defect 7: is protected after a restart, before its agent is there', async () => {
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
    const { lab, principal, agent, disconnect } = joined();
    agent.cluster.objects.create(ownApplication());
    agent.cluster.objects.create(ownApplication({ name: 'web' }));
    agent.cluster.objects.create(ownApplication({ name: 'jobs' }));
    await lab.run(5_000);
    disconnect();
    principal.stop.abort();
    lab.hub.objects.patch(hubRef, { spec: { source: { path: 'edited' } } });
    lab.hub.objects.delete({ namespace: 'a', name: 'web' }, { propagation: 'Background' });
    agent.sent.length = 0;
    const again = new StagePrincipal(lab);
    join(lab, again, agent);
    await lab.run(10_000);
    expect(again.mirror()?.spec.source).toEqual({ path: 'p0' });
    expect(again.mirror('web')?.spec.source).toEqual({ path: 'p0' });
    const names = agent.sent.flatMap((one) =>
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
      principal.receive(incoming('spec-update', own('old', { status: { sync: { status: 'Synced' } } })));
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
    principal.receive(incoming('spec-update', { ...rest, metadata: { ...metadata, labels } }));
    await lab.run();
    expect(principal.mirror()?.metadata.labels).toEqual({ team: 'x' });
  });

  test('does not become what it was when a copy of an earlier message comes late', async () => {
    const { lab, principal } = await alone();
    const first = incoming('spec-update', own('old', { status: { sync: { status: 'OutOfSync' } } }));
    // The second time it is an answer: a Go agent says what it has, under the id that it has.
    for (const message of [
      first,
      first,
      incoming('spec-update', own('old', { status: { sync: { status: 'Synced' } } })),
      first,
    ]) {
      principal.receive(message);
      await lab.run();
    }
    expect(principal.mirror()?.status).toEqual({ sync: { status: 'Synced' } });
    expect(principal.acknowledged).toHaveLength(5);
  });

  test('does not become what it was when the copy comes while a newer message still waits', async () => {
    const { lab, principal } = await alone();
    const first = incoming('create', own('old', { status: { sync: { status: 'OutOfSync' } } }));
    principal.receive(first);
    await lab.run();
    principal.receive(incoming('spec-update', own('old', { status: { sync: { status: 'Synced' } } })));
    principal.receive(first);
    await lab.run();
    expect(principal.mirror()?.status).toEqual({ sync: { status: 'Synced' } });
  });

  test('with a forged mark is deleted as often as somebody makes it, though a Go agent answers under the same id', async () => {
    const { lab, principal } = await alone();
    const forged = {
      metadata: { ...hubRef, name: 'web', annotations: { [annotations.sourceUid]: 'forged' } },
      spec: {},
    };
    const gone = (uid: string) => incoming('delete', { metadata: { name: 'web', uid }, spec: {} });
    const answer = { ...gone('forged'), eventId: 'web_forged_' };
    for (const message of [answer, gone('another'), answer]) {
      lab.hub.objects.create(forged);
      await lab.run();
      principal.receive(message);
      await lab.run();
      if (message === answer) {
        expect(principal.mirror('web')).toBeUndefined();
      } else {
        lab.hub.objects.delete({ ...hubRef, name: 'web' }, { propagation: 'Background' });
      }
    }
  });

  test('is not written to when its agent says what it shows already', async () => {
    const { lab, principal } = await alone();
    const { writes } = lab.hub;
    principal.receive(incoming('spec-update', own('old')));
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
    principal.receive(incoming('spec-update', own('old', { spec: { ...own('old').spec, source: { path: 'p1' } } })));
    await lab.run(60_000);
    expect(lab.hub.writes).toBe(2);
    expect(principal.acknowledged).toHaveLength(2);
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
    expect(sentMessages(agent, 'create')).toEqual([]);
  });
});
