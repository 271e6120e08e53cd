import { expect, test } from 'vitest';
import { hubApplication, Lab } from '../testing/lab.ts';

const ref = { namespace: 'a', name: 'shop' };

function warnings(lab: Lab, at = ref): string[] {
  const conditions = lab.hub.objects.get(at)?.status?.conditions ?? [];
  return conditions.filter(({ type }) => type === 'AgentWarning').map(({ message }) => message);
}

test('an Application that no agent deploys has the reason as a condition, once it has lasted', async () => {
  const lab = new Lab();
  let reason: string | undefined = 'there is no agent named a';
  lab.hub.objects.create(hubApplication({}));
  const { applications } = lab.principal({ notice: () => reason });
  await lab.run(20_000);
  expect(warnings(lab), 'the agent may come in a moment').toEqual([]);
  await lab.run(40_000);
  expect(warnings(lab)).toEqual(['there is no agent named a']);
  expect(lab.log).toContainEqual({
    level: 'warn',
    fields: { agent: 'a', application: 'a/shop' },
    message: 'there is no agent named a',
  });
  const { writes } = lab.hub;
  await lab.run(3_600_000);
  expect(lab.hub.writes, 'it is written once').toBe(writes);

  reason = 'AppProject strict does not allow destination a, so a gets nothing new of this Application';
  applications.permissionsChanged({ agent: 'a' });
  await lab.run(1_000);
  expect(warnings(lab)).toEqual([reason]);
  reason = undefined;
  applications.permissionsChanged({ projects: (name) => name === 'default' });
  await lab.run(1_000);
  expect(warnings(lab)).toEqual([]);
});

test('each has lasted for as long when it is told of, whoever came before it', async () => {
  const lab = new Lab();
  lab.principal({ notice: () => 'there is no agent named a' });
  const later = { namespace: 'a', name: 'later' };
  lab.hub.objects.create(hubApplication({}));
  await lab.run(10_000);
  lab.hub.objects.create(hubApplication(later));
  await lab.run(29_900);
  expect(warnings(lab)).toHaveLength(1);
  expect(warnings(lab, later)).toEqual([]);
  await lab.run(1_000);
  expect(warnings(lab, later)).toHaveLength(1);
});

test('what passes by itself is not written', async () => {
  const lab = new Lab();
  let reason: string | undefined = 'there is no agent named a';
  lab.hub.objects.create(hubApplication({}));
  const { applications } = lab.principal({ notice: () => reason });
  const { writes } = lab.hub;
  await lab.run(10_000);
  reason = undefined;
  applications.permissionsChanged({ agent: 'a' });
  await lab.run(120_000);
  expect(lab.hub.writes).toBe(writes);
});

test('a reason that an earlier principal wrote, and that is no longer true, goes', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication({}));
  const first = lab.principal({ notice: () => 'there is no agent named a' });
  await lab.run(60_000);
  expect(warnings(lab)).toHaveLength(1);
  first.stop.abort();
  lab.principal();
  await lab.run(1_000);
  expect(warnings(lab)).toEqual([]);
});

test('an Application that belongs to no agent has a reason, too, until somebody deploys it', async () => {
  const lab = new Lab();
  lab.hub.objects.create(hubApplication({}));
  lab.principal({
    agentOf: () => undefined,
    notice: ({ status }, agent) => (agent === undefined && status?.sync === undefined ? 'nobody has it' : undefined),
  });
  await lab.run(20_000);
  expect(warnings(lab), 'an application controller may come in a moment').toEqual([]);
  await lab.run(20_000);
  expect(warnings(lab)).toEqual(['nobody has it']);
  lab.hub.objects.patch(ref, { status: { sync: { status: 'OutOfSync' } } });
  await lab.run(1_000);
  expect(warnings(lab)).toEqual([]);
});
