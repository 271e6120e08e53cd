import { expect, test } from 'vitest';
import { hubApplication, Lab } from '../testing/lab.ts';

const onHub = { namespace: 'a', name: 'shop' };
const onCluster = { namespace: 'argocd', name: 'shop' };

async function fleet() {
  const lab = new Lab();
  const principal = lab.principal();
  const agent = lab.agent();
  lab.join(principal, agent);
  lab.hub.objects.create(hubApplication());
  await lab.run(1_000);
  return { lab, principal, agent, status: () => lab.hub.objects.get(onHub)?.status };
}

test('a report that the principal cannot read is shown on the Application, until it can', async () => {
  const { lab, principal, agent, status } = await fleet();
  principal.sync.unreadable('a', { target: 'application', ...onCluster, reason: 'status.health: expected object' });
  await lab.run(1_000);
  expect(status()).toMatchObject({
    conditions: [
      {
        type: 'AgentWarning',
        message: 'what agent a reports cannot be written here: status.health: expected object',
      },
    ],
  });
  const { writes } = lab.hub;
  for (let index = 0; index < 100; index++) {
    principal.sync.unreadable('a', { target: 'application', ...onCluster, reason: `nonsense ${index}` });
  }
  await lab.run(1_000);
  expect(lab.hub.writes, 'whatever a peer sends').toBe(writes);
  agent.cluster.objects.patch(onCluster, { status: { health: { status: 'Healthy' } } });
  await lab.run(1_000);
  expect(status()).toEqual({ health: { status: 'Healthy' } });
});

test('no agent can have an error shown on the Application of another one', async () => {
  const { lab, principal, status } = await fleet();
  lab.join(principal, lab.agent(), 'b');
  principal.sync.unreadable('b', { target: 'application', ...onHub, reason: 'x' });
  await lab.run(1_000);
  expect(status()).toBeUndefined();
});

test('a state that the agent cannot read is shown on the hub, whatever the copy does, until one can be read', async () => {
  const { lab, agent, status } = await fleet();
  agent.sync.unreadable({ target: 'application', ...onHub, reason: 'spec.project: expected string' });
  await lab.run(1_000);
  agent.cluster.objects.patch(onCluster, { status: { sync: { status: 'Synced' } } });
  await lab.run(1_000);
  expect(status()).toMatchObject({
    sync: { status: 'Synced' },
    health: { status: 'Degraded' },
    conditions: [
      { type: 'AgentError', message: /cannot read what the principal sent: spec\.project: expected string$/ },
    ],
  });
  lab.hub.objects.patch(onHub, { spec: { source: { path: 'p1' } } });
  await lab.run(1_000);
  expect(status()).toEqual({ sync: { status: 'Synced' } });
});

test('so is one of which there is no copy', async () => {
  const { lab, principal, agent } = await fleet();
  void principal;
  agent.cluster.intercept = (call) => {
    if (call === 'create') {
      throw Object.assign(new Error('no'), { status: 403 });
    }
  };
  lab.hub.objects.create(hubApplication({ name: 'other' }));
  agent.sync.unreadable({ target: 'application', namespace: 'a', name: 'other', reason: 'too deep' });
  await lab.run(100);
  const { conditions } = lab.hub.objects.get({ namespace: 'a', name: 'other' })?.status ?? {};
  expect(conditions).toMatchObject([{ type: 'AgentError' }]);
});
