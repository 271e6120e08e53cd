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

test('what is refused is kept in bounded memory, however much an agent makes up', async () => {
  const { lab, principal } = await refusing();
  for (let index = 0; index < 10_050; index++) {
    principal.receive(incoming(`made-up-${index}`));
    if (index % 50 === 0) {
      await lab.run(1);
    }
  }
  await lab.run(100);
  expect(principal.acknowledged, 'the others stay with the agent').toHaveLength(10_000);
  lab.hub.intercept = () => undefined;
  await lab.run(1_000_000);
  expect(lab.hub.objects.list(), 'nothing is lost').toHaveLength(10_050);
});

test('what is refused and takes too much memory is asked for again', async () => {
  const { lab, principal } = await refusing();
  const large = { spec: { project: 'default', source: { path: 'x'.repeat(1_000_000) } } };
  for (let index = 0; index < 20; index++) {
    principal.receive(incoming(`large-${index}`, large));
  }
  await lab.run(1_000);
  expect(principal.acknowledged).toHaveLength(20);
  lab.hub.intercept = () => undefined;
  await lab.run(600_000);
  const there = lab.hub.objects.list().map(({ metadata }) => metadata.name);
  const asked = principal.sent.flatMap((message) => (message.type === 'request-update' ? [message.payload.name] : []));
  expect(there.length).toBeGreaterThan(10);
  expect(new Set([...there, ...asked]).size).toBe(20);
  for (const name of asked.filter((one) => !there.includes(one))) {
    principal.receive(incoming(name, large));
  }
  await lab.run(1_000);
  expect(lab.hub.objects.list()).toHaveLength(20);
});
