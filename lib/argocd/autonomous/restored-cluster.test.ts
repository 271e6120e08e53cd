import { expect, test } from 'vitest';
import { alone, incoming, own } from './testing/alone.ts';
import { joined, ownApplication } from './testing/stage.ts';

const local = { namespace: 'argocd', name: 'shop' };
const hubRef = { namespace: 'a', name: 'shop' };
const operation = { sync: { revision: 'r1' } };

test.each(['before Argo CD took it up', 'while it ran'])(
  'an operation that a restore of the cluster took away is set again: %s',
  async (when) => {
    const { lab, principal, agent } = joined();
    const { cluster } = agent;
    cluster.objects.create(ownApplication());
    await lab.run(5_000);
    const backup = cluster.objects.cluster.snapshot();
    lab.hub.objects.patch(hubRef, { operation });
    await lab.run(1_000);
    expect(agent.application()?.operation).toEqual(operation);
    if (when === 'while it ran') {
      cluster.objects.patch(local, { status: { operationState: { phase: 'Running', operation, startedAt: 't1' } } });
      await lab.run(1_000);
    }
    const relist = cluster.breakWatch();
    cluster.objects.cluster.restore(backup);
    relist();
    await lab.run(5_000);
    expect(agent.application()?.operation).toEqual(operation);
    cluster.objects.patch(local, {
      operation: null,
      status: { operationState: { phase: 'Succeeded', operation, startedAt: 't2' } },
    });
    await lab.run(60_000);
    expect(agent.application()?.operation).toBeUndefined();
    expect(principal.mirror()?.operation).toBeUndefined();
    expect(principal.mirror()?.status?.operationState?.phase).toBe('Succeeded');
  },
);

test('an operation that is over is not set again by a restore', async () => {
  const { lab, principal, agent } = joined();
  const { cluster } = agent;
  cluster.objects.create(ownApplication());
  await lab.run(5_000);
  const backup = cluster.objects.cluster.snapshot();
  lab.hub.objects.patch(hubRef, { operation });
  await lab.run(1_000);
  const operationState = { phase: 'Succeeded', operation, startedAt: 't1' };
  cluster.objects.patch(local, { operation: null, status: { operationState } });
  await lab.run(5_000);
  expect(principal.mirror()?.operation).toBeUndefined();
  const relist = cluster.breakWatch();
  cluster.objects.cluster.restore(backup);
  relist();
  await lab.run(60_000);
  expect(agent.application()?.operation).toBeUndefined();
});

test('an earlier state that a Go agent has again after a restore is shown, under the id that it had before', async () => {
  const { lab, principal } = await alone();
  const earlier = incoming('spec-update', own('old', { status: { sync: { status: 'Synced' } } }));
  const lost = incoming('spec-update', own('old', { status: { sync: { status: 'OutOfSync' } } }));
  const shown = () => principal.mirror()?.status?.sync?.status;
  for (const message of [earlier, lost]) {
    principal.receive(message);
    await lab.run();
  }
  const before = principal.sent.length;
  principal.receive(earlier);
  await lab.run();
  expect(shown(), 'it may be a late copy').toBe('OutOfSync');
  expect(principal.sent.slice(before)).toMatchObject([
    { type: 'request-update', payload: { name: 'shop', checksum: null, digest: '' } },
  ]);
  // The answer.
  principal.receive(earlier);
  await lab.run();
  expect(shown()).toBe('Synced');
});
