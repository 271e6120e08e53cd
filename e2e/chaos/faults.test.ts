import { expect, test } from 'vitest';
import { Random } from '../random/index.ts';
import { drawFaults, type FaultPlan, type FaultTarget, faultKinds } from './faults.ts';

const targets: FaultPlan['targets'] = {
  principal: ['principal1', 'principal2'],
  agent: ['cluster1'],
  cluster: ['hub', 'cluster1'],
  'place of copies': ['hub', 'cluster1'],
  hub: ['hub'],
  pair: ['the hubs'],
  fleet: ['the fleet'],
};
const plan = { durationMs: 600_000, everyMs: 1_000, targets };
const draw = (seed: number) => drawFaults(new Random(seed), plan);

test('a seed draws the same faults again, another one others', () => {
  expect(draw(42)).toEqual(draw(42));
  expect(draw(43)).not.toEqual(draw(42));
});

test('all kinds of what there is are drawn, within the time, and none of what there is not', () => {
  const drawn = draw(1);
  const possible = Object.entries(faultKinds).filter(([, { of }]) => targets[of as FaultTarget].length > 0);
  expect(new Set(drawn.map(({ kind }) => kind))).toEqual(new Set(possible.map(([kind]) => kind)));
  expect(Math.max(...drawn.map(({ atMs }) => atMs))).toBeLessThan(plan.durationMs);
  expect(
    drawFaults(new Random(1), {
      ...plan,
      targets: { principal: [], agent: [], cluster: [], 'place of copies': [], hub: [], pair: [], fleet: [] },
    }),
  ).toEqual([]);
});

test('what suffers a fault is spared until it is over', () => {
  const until = new Map<string, number>();
  for (const { target, atMs, forMs } of draw(7)) {
    expect(atMs).toBeGreaterThanOrEqual(until.get(target) ?? 0);
    until.set(target, atMs + forMs);
  }
});
