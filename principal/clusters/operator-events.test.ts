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
