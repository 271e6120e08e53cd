import { describe, expect, test } from 'vitest';
import {
  joined as joinedAutonomous,
  join as joinStage,
  ownApplication,
  StagePrincipal,
} from './autonomous/testing/stage.ts';
import { hubApplication, Lab, sentMessages } from './testing/lab.ts';

// `argocd.argoproj.io/skip-reconcile` keeps the hub's application controller away from an Application of the fleet, and only that one.

const skipReconcile = 'argocd.argoproj.io/skip-reconcile';
const skips = { [skipReconcile]: 'true' };
const ref = { namespace: 'a', name: 'shop' };

describe('an Application of the hub that its application controller skips', () => {
  test("is not skipped by its cluster's, whenever the annotation is set", async () => {
    const lab = new Lab();
    const [principal, agent] = [lab.principal(), lab.agent()];
    lab.join(principal, agent);
    lab.hub.objects.create(hubApplication({ annotations: { ...skips, note: '1' } }));
    await lab.run(5_000);
    expect(agent.copy()?.metadata.annotations).toMatchObject({ note: '1' });
    expect(agent.copy()?.metadata.annotations).not.toHaveProperty([skipReconcile]);
    lab.hub.objects.patch(ref, { metadata: { annotations: { [skipReconcile]: null } } });
    await lab.run(5_000);
    lab.hub.objects.patch(ref, { metadata: { annotations: { ...skips, note: '2' } } });
    await lab.run(5_000);
    expect(agent.copy()?.metadata.annotations).toMatchObject({ note: '2' });
    expect(agent.copy()?.metadata.annotations).not.toHaveProperty([skipReconcile]);
    expect(lab.hub.objects.get(ref)?.metadata.annotations, 'it stays on the hub').toEqual({ ...skips, note: '2' });
  });

  test('is sent without the annotation, because agents of argocd-agent copy all', async () => {
    const lab = new Lab();
    lab.hub.objects.create(hubApplication({ annotations: skips }, { operation: { sync: {} } }));
    const principal = lab.principal();
    principal.connect('a');
    await lab.run(5_000);
    const sent = [...sentMessages(principal, 'create'), ...sentMessages(principal, 'set-operation')];
    expect(sent.map(({ object }) => object.metadata.annotations)).toEqual([{}, {}]);
  });

  test('is not skipped on its cluster either if a principal of argocd-agent sends the annotation', async () => {
    const lab = new Lab();
    const agent = lab.agent();
    agent.connect();
    const object = hubApplication({ uid: 'u', resourceVersion: '1', annotations: skips });
    agent.sync.receive({ target: 'application', type: 'create', resourceId: 'shop_u', eventId: 'e', object });
    await lab.run(5_000);
    expect(agent.cluster.objects.list()).toHaveLength(1);
    expect(agent.cluster.objects.list()[0]?.metadata.annotations).not.toHaveProperty([skipReconcile]);
  });
});

test("an autonomous agent's mirror is skipped by the hub; its cluster's Application is not", async () => {
  const { lab, principal, agent, disconnect } = joinedAutonomous();
  agent.cluster.objects.create(ownApplication());
  await lab.run(5_000);
  expect(principal.mirror()?.metadata.annotations).toMatchObject(skips);
  expect(agent.application()?.metadata.annotations ?? {}).not.toHaveProperty([skipReconcile]);
  // A new principal finds a mirror that argocd-agent's has made.
  disconnect();
  principal.stop.abort();
  lab.hub.objects.patch(ref, { metadata: { annotations: { [skipReconcile]: null } } });
  joinStage(lab, new StagePrincipal(lab), agent);
  await lab.run(5_000);
  expect(principal.mirror()?.metadata.annotations, 'after the next connection').toMatchObject(skips);
});
