import { expect, test } from 'vitest';
import type { MappedAgents } from './mapped-agents.ts';
import { OperatorEvents } from './operator-events.ts';

test('an agent causes a limited number of Events for each reason, and costs others none', () => {
  const recorded: string[] = [];
  const clock = { now: 0 };
  const clustersOf: MappedAgents['clustersOf'] = (agent) => [
    { secret: { metadata: { namespace: 'argocd', name: `cluster-${agent}` } }, name: agent, server: '' } as never,
  ];
  const events = new OperatorEvents({
    agents: { clustersOf },
    events: { warning: (_object, reason, message) => recorded.push(`${reason}: ${message}`) },
    now: () => clock.now,
  });
  const fail = (agent: string, count: number) => {
    for (let index = 0; index < count; index++) {
      events.cannotMirror({ agent, name: `name-${index}`, message: 'no' });
    }
    return recorded.splice(0).length;
  };
  expect(fail('evil', 1_000)).toBe(20);
  expect(fail('good', 1)).toBe(1);
  events.overQuota('evil', 'too much');
  expect(recorded.splice(0)).toEqual(['AgentQuotaExceeded: A write of agent evil is refused: too much']);
  clock.now += 120_000;
  expect(fail('evil', 1_000)).toBe(2);
});

test('a mirror that is put back again and again has one Event in ten minutes', () => {
  const recorded: string[] = [];
  const clock = { now: 0 };
  const events = new OperatorEvents({
    agents: { clustersOf: () => [] },
    events: {
      warning: ({ kind, metadata: { namespace, name, uid } }, reason, message) =>
        recorded.push(`${kind} ${namespace}/${name} ${uid} ${reason}: ${message}`),
    },
    now: () => clock.now,
  });
  const putBack = (name: string, was: 'changed' | 'deleted', uid = 'u') =>
    events.putBack({ metadata: { namespace: 'edge', name, uid }, spec: {} } as never, was);
  for (let index = 0; index < 100; index++) {
    putBack('own', 'changed');
  }
  expect(recorded.splice(0)).toEqual([
    'Application edge/own u MirrorPutBack: It was changed here, and is as before: this Application belongs to the cluster of agent edge. Change or delete it there, where it comes from',
  ]);
  putBack('own', 'deleted', 'v');
  expect(recorded.splice(0)).toEqual([
    expect.stringContaining('edge/own v MirrorPutBack: It was deleted here, and is back'),
  ]);
  clock.now += 601_000;
  putBack('own', 'changed');
  expect(recorded.splice(0)).toHaveLength(1);
  for (let index = 0; index < 100; index++) {
    putBack(`own-${index}`, 'changed');
  }
  expect(recorded.splice(0).length).toBeLessThanOrEqual(20);
  clock.now += 61_000;
  putBack('own-99', 'changed');
  expect(recorded, 'it was refused for its agent’s rate').toHaveLength(1);
});
