import { expect, test } from 'vitest';
import type { ApplicationMessage, Message } from '../../index.ts';
import { Lab } from '../../testing/lab.ts';
import { ownApplication, StagePrincipal } from '../testing/stage.ts';

const hubRef = { namespace: 'a', name: 'shop' };

let events = 0;
function incoming(type: ApplicationMessage['type'], path = 'p0'): Message {
  const object = ownApplication(
    { uid: 'u', resourceVersion: '7' },
    { spec: { project: 'default', source: { path }, destination: { namespace: 'shop' } } },
  );
  return { target: 'application', type, resourceId: 'shop_u', eventId: `shop_u_${++events}`, object };
}

async function alone() {
  const lab = new Lab();
  const principal = new StagePrincipal(lab);
  const connection = principal.connect();
  principal.receive(incoming('create'));
  await lab.run();
  return { lab, principal, connection };
}

test('a fight over a mirror is fought ever more slowly, and over with the mirror', async () => {
  const { lab, principal } = await alone();
  const stop = lab.hub.objects.watch(({ now }) => {
    if ((now?.spec.source as { path?: string } | undefined)?.path === 'p0') {
      lab.time.after(5, () => void lab.hub.objects.patch(hubRef, { spec: { source: { path: 'theirs' } } }));
    }
  });
  const { writes } = lab.hub;
  lab.hub.objects.patch(hubRef, { spec: { source: { path: 'theirs' } } });
  await lab.run(60_000);
  expect(lab.hub.writes - writes).toBeGreaterThan(10);
  expect(lab.hub.writes - writes).toBeLessThan(40);
  expect(principal.sync.stats('a').retrying, 'it shows').toBe(1);
  stop();
  principal.receive(incoming('delete'));
  await lab.run();
  expect(principal.mirror()).toBeUndefined();
  expect(principal.sync.stats('a').retrying).toBe(0);
});

test('an agent whose word is done only on a later connection is asked whether it still holds', async () => {
  const { lab, principal, connection } = await alone();
  lab.hub.intercept = (call) => {
    if (call === 'patch') {
      throw new Error('connection reset');
    }
  };
  principal.receive(incoming('spec-update', 'p1'));
  await lab.run(100);
  principal.sync.disconnected('a', connection);
  principal.connect();
  await lab.run(100);
  principal.sent.splice(0);
  lab.hub.intercept = () => undefined;
  await lab.run(60_000);
  expect(principal.mirror()?.spec.source).toEqual({ path: 'p1' });
  expect(principal.sent.map(({ type }) => type)).toEqual(['request-update']);
  expect(principal.acknowledged, 'who said it may be gone').toHaveLength(1);
});

test('a mirror that was deleted before the cache ever showed it is missed', async () => {
  const lab = new Lab();
  lab.hub.isHidden = () => true;
  const principal = new StagePrincipal(lab);
  principal.connect();
  principal.receive(incoming('create'));
  await lab.run();
  const { uid } = principal.mirror()?.metadata ?? {};
  lab.hub.objects.patch(hubRef, { metadata: { finalizers: [] } });
  lab.hub.objects.delete(hubRef, { propagation: 'Background' });
  await lab.run(60_000);
  expect(principal.mirror()?.metadata.uid).not.toBe(uid);
  expect(principal.mirror()).toBeDefined();
});

test('who changes or deletes a mirror for nothing is told, and nobody else is', async () => {
  const lab = new Lab();
  const told: [uid: string | undefined, was: string][] = [];
  let cluster = 'a';
  const principal = new StagePrincipal(lab, {
    clusterOf: () => cluster,
    onPutBack: (mirror, was) => told.push([mirror.metadata.uid, was]),
  });
  principal.connect();
  principal.receive(incoming('create'));
  await lab.run();
  principal.receive(incoming('spec-update', 'p1'));
  cluster = 'b';
  principal.mirrors.clusterChanged('a');
  lab.hub.objects.patch(hubRef, { metadata: { annotations: { 'argocd.argoproj.io/refresh': 'normal' } } });
  await lab.run();
  expect(told).toEqual([]);
  lab.hub.objects.patch(hubRef, { spec: { source: { path: 'theirs' } } });
  await lab.run();
  expect(told.splice(0)).toEqual([[principal.mirror()?.metadata.uid, 'changed']]);
  lab.hub.objects.delete(hubRef, {});
  await lab.run();
  // About the new mirror: people look at that one.
  expect(told.splice(0)).toEqual([[principal.mirror()?.metadata.uid, 'deleted']]);
  principal.receive(incoming('delete'));
  await lab.run();
  expect(principal.mirror()).toBeUndefined();
  expect(told).toEqual([]);
});

test('what the hub refused for a while, and takes then, was changed by nobody', async () => {
  const lab = new Lab();
  const told: string[] = [];
  const principal = new StagePrincipal(lab, { onPutBack: (_, was) => told.push(was) });
  principal.connect();
  principal.receive(incoming('create'));
  await lab.run();
  lab.hub.intercept = (call) => {
    if (call === 'patch') {
      throw Object.assign(new Error('not now'), { status: 422, reason: 'Invalid' });
    }
  };
  principal.receive(incoming('spec-update', 'p1'));
  await lab.run(1_000);
  expect(principal.failures).toHaveLength(1);
  lab.hub.intercept = () => undefined;
  await lab.run(1_000_000);
  expect(principal.mirror()?.spec.source).toEqual({ path: 'p1' });
  expect(told).toEqual([]);
});

test('that a mirror could not be released stands in the way of nothing when it is gone', async () => {
  const lab = new Lab();
  const principal = new StagePrincipal(lab);
  principal.connect();
  const marked = { annotations: { 'argocd.argoproj.io/source-uid': 'forged' }, finalizers: ['example.com/hold'] };
  lab.hub.objects.create(ownApplication({ ...hubRef, ...marked }));
  lab.hub.intercept = (call) => {
    if (call === 'patch') {
      throw Object.assign(new Error('not now'), { status: 403, reason: 'Forbidden' });
    }
  };
  lab.hub.objects.delete(hubRef, { propagation: 'Background' });
  await lab.run(1_000);
  expect(principal.mirrors.failures('a'), 'it is shown').toHaveLength(1);
  expect(principal.sync.stats('a').retrying).toBeGreaterThan(0);
  lab.hub.objects.patch(hubRef, { metadata: { finalizers: null } });
  await lab.run(60_000);
  expect(principal.mirror()).toBeUndefined();
  expect(principal.mirrors.failures('a')).toEqual([]);
  expect(principal.sync.stats('a').retrying).toBe(0);
});
