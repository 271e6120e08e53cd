import { describe, expect, test } from 'vitest';
import { annotations } from '../index.ts';
import { Lab, sentMessages } from '../testing/lab.ts';
import { alone, incoming, own } from './testing/alone.ts';
import { join, joined, ownApplication, StageAgent, StagePrincipal } from './testing/stage.ts';

// What must hold where argocd-agent's code is known not to hold it.

const local = { namespace: 'argocd', name: 'shop' };
const hubRef = { namespace: 'a', name: 'shop' };

describe('requests', () => {
  test.each([annotations.refresh, annotations.hydrate])(
    'defect 20: %s reaches an Application without annotations, and is gone from the mirror when it is done',
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
    expect(sentMessages(principal, 'spec-update')).toEqual([]);
  });

  test('defect 19: equal resource versions on both clusters hide nothing', async () => {
    const { lab, principal } = await alone();
    const { resourceVersion = '' } = principal.mirror()?.metadata ?? {};
    principal.receive(
      incoming('spec-update', {
        ...own('old'),
        metadata: { ...own('old').metadata, resourceVersion },
        spec: { source: { path: 'p1' } },
      }),
    );
    await lab.run();
    expect(principal.mirror()?.spec.source).toEqual({ path: 'p1' });
  });

  test('an operation asked for while the agent is away is done when it is back, and its phases are shown', async () => {
    const { lab, principal, agent, disconnect } = joined();
    agent.cluster.objects.create(ownApplication());
    await lab.run(5_000);
    disconnect();
    lab.hub.objects.patch(hubRef, { operation: { sync: { revision: 'one' } } });
    await lab.run(600_000);
    join(lab, principal, agent);
    await lab.run();
    expect(agent.application()?.operation).toEqual({ sync: { revision: 'one' } });
    expect(sentMessages(principal, 'set-operation')).toHaveLength(1);
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
    expect(sentMessages(principal, 'set-operation')).toHaveLength(1);
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
    expect(
      agent.application()?.status?.operationState,
      'Argo CD would resume with the results of the first',
    ).toBeUndefined();
  });

  test('a refresh after Argo CD has answered the one before is not taken for that one, however late the news of it', async () => {
    const { lab, principal, agent } = joined();
    agent.cluster.objects.create(ownApplication());
    await lab.run(5_000);
    const refresh = () => agent.application()?.metadata.annotations?.[annotations.refresh];
    lab.hub.objects.patch(hubRef, { metadata: { annotations: { [annotations.refresh]: 'normal' } } });
    await lab.run();
    expect(refresh()).toBe('normal');
    agent.cluster.lagMs = 1_000;
    agent.cluster.objects.patch(local, { metadata: { annotations: { [annotations.refresh]: null } } });
    const [wish] = sentMessages(principal, 'spec-update');
    if (wish !== undefined) {
      agent.sync.receive({ ...wish, eventId: 'again' });
    }
    await lab.run(100);
    expect(refresh()).toBe('normal');
  });

  test('an operation that Argo CD goes on with, as its controller may, is ended again, and no other one', async () => {
    const { lab, agent } = joined();
    const operation = { sync: { revision: 'one' } };
    agent.cluster.objects.create(ownApplication());
    await lab.run(5_000);
    const run = { phase: 'Running', operation, startedAt: 't' };
    agent.cluster.objects.patch(local, { operation, status: { operationState: run } });
    await lab.run(5_000);
    lab.hub.objects.patch(hubRef, { status: { operationState: { phase: 'Terminating' } } });
    await lab.run();
    const phase = () => agent.application()?.status?.operationState?.phase;
    for (let round = 0; round < 3; round++) {
      expect(phase()).toBe('Terminating');
      agent.cluster.objects.patch(local, { status: { operationState: { phase: 'Running' } } });
      await lab.run();
    }
    expect(phase()).toBe('Terminating');
    agent.cluster.objects.patch(local, { operation: null, status: { operationState: { phase: 'Failed' } } });
    await lab.run();
    agent.cluster.objects.patch(local, { operation, status: { operationState: { ...run, startedAt: 'u' } } });
    await lab.run(5_000);
    expect(phase()).toBe('Running');
  });

  test('an operation that is set while the hub sees another run is sent after that', async () => {
    const { lab, principal, agent } = joined();
    agent.cluster.objects.create(ownApplication());
    const run = { phase: 'Running', operation: { sync: { revision: 'one' } }, startedAt: 't' };
    agent.cluster.objects.patch(local, { operation: { sync: { revision: 'one' } }, status: { operationState: run } });
    await lab.run(5_000);
    lab.hub.objects.patch(hubRef, { operation: { sync: { revision: 'two' } } });
    await lab.run(60_000);
    expect(sentMessages(principal, 'set-operation')).toEqual([]);
    // Also a principal that has just started knows.
    principal.stop.abort();
    const again = new StagePrincipal(lab);
    join(lab, again, agent);
    await lab.run(60_000);
    expect(sentMessages(again, 'set-operation')).toEqual([]);
    expect(again.mirror()?.operation).toEqual({ sync: { revision: 'two' } });
    agent.cluster.objects.patch(local, { operation: null, status: { operationState: { phase: 'Succeeded' } } });
    await lab.run();
    expect(agent.application()?.operation).toEqual({ sync: { revision: 'two' } });
    expect(sentMessages(again, 'set-operation')).toHaveLength(1);
  });

  test('an operation that is over does not hold up the next, whatever a Go agent made of its phase', async () => {
    const lab = new Lab();
    const principal = new StagePrincipal(lab);
    principal.connect();
    const over = { phase: 'Terminating', operation: { sync: { revision: 'one' } }, startedAt: 's', finishedAt: 'f' };
    principal.receive(incoming('create', own('u', { status: { operationState: over } })));
    await lab.run();
    lab.hub.objects.patch(hubRef, { operation: { sync: { revision: 'two' } } });
    await lab.run();
    expect(sentMessages(principal, 'set-operation')).toHaveLength(1);
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
      agent.receive(incoming(type, mirror));
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
    const asked = principal.sent.filter(({ type }) => type === 'request-update');
    // Without a checksum it answers in any case.
    expect(asked).toMatchObject([{ payload: { kind: 'Application', name: 'shop', uid: 'old', checksum: null } }]);
  });
});
