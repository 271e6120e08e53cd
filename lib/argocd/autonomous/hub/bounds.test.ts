import { expect, test } from 'vitest';
import type { Application, Message } from '../../index.ts';
import { Lab } from '../../testing/lab.ts';
import { ownApplication, StagePrincipal } from '../testing/stage.ts';

let events = 0;
function incoming(name: string, rest: Partial<Application> = {}): Message {
  const object = ownApplication({ name, uid: name, resourceVersion: '1' }, rest);
  const resourceId = `${name}_${name}`;
  return { target: 'application', type: 'create', resourceId, eventId: `${resourceId}_${++events}`, object };
}

/** A principal whose API server refuses everything that it is to create. */
async function refusing() {
  const lab = new Lab();
  const principal = new StagePrincipal(lab);
  principal.connect();
  lab.hub.intercept = (call) => {
    if (call === 'create') {
      throw Object.assign(new Error('never'), { status: 422, reason: 'Invalid' });
    }
  };
  return { lab, principal };
}

test('what is refused costs bounded memory, however much an agent makes up', async () => {
  const { lab, principal } = await refusing();
  for (let index = 0; index < 1_200; index++) {
    principal.receive(incoming(`made-up-${index}`));
    if (index % 50 === 0) {
      await lab.run(1);
    }
  }
  await lab.run(100);
  expect(principal.acknowledged).toHaveLength(1_200);
  lab.hub.intercept = () => undefined;
  await lab.run(1_000_000);
  expect(lab.hub.objects.list(), 'what was kept is made when it may be').toHaveLength(1_000);
});

test('what is refused and large is not kept, and comes back with the next word of the agent', async () => {
  const { lab, principal } = await refusing();
  const large = { spec: { project: 'default', source: { path: 'x'.repeat(600_000) } } };
  principal.receive(incoming('shop', large));
  await lab.run(1_000);
  lab.hub.intercept = () => undefined;
  await lab.run(1_000_000);
  expect(lab.hub.objects.list()).toEqual([]);
  principal.receive(incoming('shop', large));
  await lab.run(1_000);
  expect(lab.hub.objects.list()).toHaveLength(1);
});
