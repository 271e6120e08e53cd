import { expect, test } from 'vitest';
import { type Application, type ApplicationMessage, annotations } from '../../index.ts';
import { Lab } from '../../testing/lab.ts';
import { ownApplication, StagePrincipal } from '../testing/stage.ts';

const hubRef = { namespace: 'a', name: 'shop' };
const finalizers = ['evil.example/hold', 'resources-finalizer.argocd.argoproj.io'];
const source = ownApplication({ uid: 'u', finalizers });
const created: ApplicationMessage = {
  target: 'application',
  type: 'create',
  resourceId: 'shop',
  eventId: 'e1',
  object: source,
};

/** A principal of a fleet, with a mirror of agent `a`. */
async function start(isResponsible?: () => boolean) {
  const lab = new Lab();
  const fleet = new Set(['a']);
  const options = { hasLeft: (agent: string) => !fleet.has(agent), isResponsible };
  const principal = new StagePrincipal(lab, options);
  principal.connect();
  principal.receive(created);
  await lab.run(1_000);
  const leave = () => {
    fleet.delete('a');
    principal.sync.forgetAgent('a');
  };
  const remove = () => lab.hub.objects.delete(hubRef, { propagation: 'Background' });
  return { lab, principal, options, leave, remove };
}

test('a mirror that is deleted after its agent has left is gone', async () => {
  const { lab, principal, leave, remove } = await start();
  leave();
  await lab.run();
  expect(principal.mirror()?.metadata.finalizers).toEqual(finalizers);
  remove();
  await lab.run(1_000);
  expect(principal.mirror()).toBeUndefined();
});

test('so is one that was being deleted when its agent left', async () => {
  const { lab, principal, leave, remove } = await start();
  remove();
  leave();
  await lab.run(1_000);
  expect(principal.mirror()).toBeUndefined();
});

test('so is one that was deleted while no principal ran', async () => {
  const { lab, principal, options, leave, remove } = await start();
  principal.stop.abort();
  leave();
  remove();
  await lab.run(60_000);
  expect(principal.mirror()?.metadata.finalizers).toEqual(finalizers);
  new StagePrincipal(lab, { ...options, agent: 'b' });
  await lab.run(1_000);
  expect(principal.mirror()).toBeUndefined();
});

test('the responsible principal does it, once it is', async () => {
  const state = { isResponsible: false };
  const { lab, principal, leave, remove } = await start(() => state.isResponsible);
  leave();
  remove();
  await lab.run(60_000);
  expect(principal.mirror()?.metadata.finalizers).toEqual(finalizers);
  state.isResponsible = true;
  await lab.run(60_000);
  expect(principal.mirror()).toBeUndefined();
});

test('what the API server refuses is tried again', async () => {
  const { lab, principal, leave, remove } = await start();
  leave();
  let failures = 0;
  lab.hub.intercept = (call) => {
    if (call === 'patch' && failures < 3) {
      failures++;
      throw new Error('not now');
    }
  };
  remove();
  await lab.run(60_000);
  expect(failures).toBe(3);
  expect(principal.mirror()).toBeUndefined();
});

test.each<[string, Application['metadata']]>([
  [
    'a copy of a managed agent',
    { ...hubRef, annotations: { [annotations.sourceUid]: 'u', [annotations.lastUpdated]: 'x' } },
  ],
  ["a user's own Application", hubRef],
])('%s keeps its finalizers', async (_, metadata) => {
  const lab = new Lab();
  new StagePrincipal(lab, { agent: 'b', hasLeft: () => true });
  lab.hub.objects.create({ ...source, metadata: { ...metadata, finalizers } });
  lab.hub.objects.delete(hubRef, { propagation: 'Background' });
  await lab.run(60_000);
  expect(lab.hub.objects.get(hubRef)?.metadata.finalizers).toEqual(finalizers);
});
