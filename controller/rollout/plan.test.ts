import { expect, test } from 'vitest';
import { rolloutStrategySchema } from '../spec/index.ts';
import { type Phase, phaseOf, planRollout, type RolloutCluster } from './plan.ts';

const strategy = (input: object = {}) => rolloutStrategySchema.parse(input);
const progressive = (settings: object) => strategy({ type: 'Progressive', progressive: settings });
const cluster = (name: string, phase: Phase = 'Waiting', more: Partial<RolloutCluster> = {}): RolloutCluster => {
  return { name, phase, isHealthy: true, ...more };
};
const many = (count: number, phase: Phase = 'Waiting') =>
  Array.from({ length: count }, (_, i) => cluster(`${phase[0]}${String(i).padStart(2, '0')}`, phase));
const group = (index: number, name = '') => ({ group: { index, name } });

test('a tenth of the clusters at a time, at least one, in the order of their names', () => {
  expect(planRollout(strategy(), many(5))).toMatchObject({ start: ['W00'], isStopped: false, total: 5 });
  expect(planRollout(strategy(), many(25)).start).toEqual(['W00', 'W01', 'W02']);
  expect(planRollout(progressive({ maxConcurrency: 2 }), many(5)).start).toEqual(['W00', 'W01']);
  expect(planRollout(progressive({ maxConcurrency: 0 }), many(5)).start, 'as in OCM: no limit').toHaveLength(5);
});

test.each<[string, Phase, string[]]>([
  ['under way', 'Progressing', []],
  ['well, but not for long enough', 'Soaking', []],
  ['done', 'Succeeded', ['b']],
  ['out of reach', 'Unreachable', ['b']],
])('one at a time: the next when the one before is %s', (_, phase, start) => {
  expect(planRollout(strategy(), [cluster('a', phase), cluster('b'), cluster('c')]).start).toEqual(start);
});

test('the first failure stops the rollout, unless more failures are allowed', () => {
  const clusters = [cluster('a', 'TimeOut'), ...many(9)];
  expect(planRollout(strategy(), clusters)).toMatchObject({ start: [], failed: ['a'], isStopped: true });
  expect(planRollout(progressive({ maxFailures: 1 }), clusters)).toMatchObject({ start: ['W00'], isStopped: false });
  expect(planRollout(progressive({ maxFailures: '10%' }), clusters).isStopped).toBe(false);
  const two = [cluster('b', 'TimeOut'), ...clusters];
  expect(planRollout(progressive({ maxFailures: 1 }), two).isStopped).toBe(true);
});

test('healthy clusters come first; unreachable ones wait until they return', () => {
  const ill = cluster('a', 'Waiting', { isHealthy: false });
  expect(planRollout(strategy(), [ill, cluster('b', 'Unreachable'), cluster('c')])).toMatchObject({
    start: ['c'],
    waiting: ['a'],
    unreachable: ['b'],
  });
  expect(planRollout(strategy(), [ill, cluster('c', 'Succeeded')]).start).toEqual(['a']);
});

test('type All updates all clusters at once, whatever fails', () => {
  expect(planRollout(strategy({ type: 'All' }), [cluster('x', 'TimeOut'), ...many(3)])).toMatchObject({
    start: ['W00', 'W01', 'W02'],
    isStopped: false,
  });
});

test('type ProgressivePerGroup starts a group when the previous one is done', () => {
  const perGroup = (settings: object = {}) => strategy({ type: 'ProgressivePerGroup', progressivePerGroup: settings });
  const of = (phase: Phase) => [
    cluster('c', 'Waiting', group(1)),
    cluster('a', phase, group(0)),
    cluster('b', 'Waiting', group(0)),
    cluster('d', 'Waiting', group(1)),
  ];
  expect(planRollout(perGroup(), of('Waiting')).start).toEqual(['a', 'b']);
  expect(planRollout(perGroup(), of('Progressing')).start).toEqual(['b']);
  const second = of('Progressing').map((one) => (one.name === 'b' ? { ...one, phase: 'Succeeded' as const } : one));
  expect(planRollout(perGroup(), second).start).toEqual([]);
  const done = second.map((one) => (one.name === 'a' ? { ...one, phase: 'Succeeded' as const } : one));
  expect(planRollout(perGroup(), done).start).toEqual(['c', 'd']);
  const failed = second.map((one) => (one.name === 'a' ? { ...one, phase: 'TimeOut' as const } : one));
  expect(planRollout(perGroup(), failed)).toMatchObject({ start: [], isStopped: true });
  expect(planRollout(perGroup({ maxFailures: '50%' }), failed).start).toEqual(['c', 'd']);
});

test('mandatory groups come first, by name or index, and none of their clusters may fail', () => {
  const settings = { mandatoryDecisionGroups: [{ groupName: 'canary' }, { groupIndex: 2 }], maxFailures: 5 };
  const of = (phase: Phase) => [...many(3), cluster('y', 'Waiting', group(2)), cluster('x', phase, group(1, 'canary'))];
  expect(planRollout(progressive(settings), of('Waiting')).start).toEqual(['x']);
  expect(planRollout(progressive(settings), of('TimeOut')).isStopped).toBe(true);
  expect(planRollout(progressive(settings), of('Succeeded')).start).toEqual(['y']);
});

test('as in OCM, a percentage at a time is of the clusters outside of mandatory groups', () => {
  const settings = { mandatoryDecisionGroups: [{ groupName: 'canary' }], maxConcurrency: '50%' };
  const canaries = Array.from({ length: 6 }, (_, i) => cluster(`x${i}`, 'Succeeded', group(1, 'canary')));
  expect(planRollout(progressive(settings), [...canaries, ...many(4)]).start).toEqual(['W00', 'W01']);
});

test('a completed rollout starts no cluster', () => {
  expect(planRollout(strategy(), [cluster('a', 'Succeeded'), cluster('b', 'Succeeded')])).toEqual({
    total: 2,
    start: [],
    running: [],
    failed: [],
    waiting: [],
    unreachable: [],
    isStopped: false,
  });
  expect(planRollout(strategy(), [])).toMatchObject({ total: 0, start: [], isStopped: false });
});

const minute = 60_000;
const timed = progressive({ progressDeadline: '10m', minSuccessTime: '5m' });
const started = { isReachable: true, isStarted: true, updatedAt: 0, isWell: false };

test.each([
  ['has another version', { ...started, isStarted: false, updatedAt: undefined }, 0, { phase: 'Waiting' }],
  ['was enrolled with it', { ...started, updatedAt: undefined }, 0, { phase: 'Succeeded' }],
  ['was just given it', started, minute, { phase: 'Progressing', until: 10 * minute }],
  ['is not well in time', started, 10 * minute, { phase: 'TimeOut' }],
  ['is well early', { ...started, isWell: true }, minute, { phase: 'Soaking', until: 5 * minute }],
  ['has been well', { ...started, isWell: true }, 5 * minute, { phase: 'Succeeded' }],
  ['is well late', { ...started, isWell: true }, 60 * minute, { phase: 'Succeeded' }],
  ['is out of reach', { ...started, isReachable: false }, 60 * minute, { phase: 'Unreachable' }],
])('a cluster that %s', (_, facts, now, expected) => {
  expect(phaseOf(facts, timed, now)).toEqual(expected);
});

test('without a deadline a cluster is waited for without limit', () => {
  const patient = progressive({ progressDeadline: 'None' });
  expect(phaseOf(started, patient, 1e15)).toMatchObject({ phase: 'Progressing' });
});

test.each([
  [{ type: 'Canary' }, 'must be All, Progressive or ProgressivePerGroup, not "Canary"'],
  [{ progressive: { maxConcurrency: 'many' } }, 'must be a number or a percentage like 10%, not "many"'],
  [{ progressive: { maxFailures: -1 } }, 'must be a number or a percentage like 10%, not -1'],
  [{ progressive: { minSuccessTime: '5 minutes' } }, 'must be a time like 90m, not "5 minutes"'],
  [{ progressive: { progressDeadline: 'never' } }, 'must be a time like 90m, or None, not "never"'],
])('a strategy that makes no sense is refused: %j', (input, message) => {
  const { error } = rolloutStrategySchema.safeParse(input);
  expect(error?.issues.map((issue) => issue.message)).toContain(message);
});
