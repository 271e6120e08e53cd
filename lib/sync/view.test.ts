import { expect, test } from 'vitest';
import { type Clock, type StoreChange, type StoredObject, View } from './index.ts';

/** A view of a cache that says what it is told to, with timers that run when they are told to. */
function setUp() {
  let notify: (change: StoreChange<StoredObject>) => void = () => undefined;
  const timers: { ms: number; run: () => void }[] = [];
  const clock: Clock = {
    now: () => 0,
    after: (ms, run) => {
      timers.push({ ms, run });
      return () => undefined;
    },
  };
  const changes: string[] = [];
  const doubted: string[] = [];
  const view = new View<StoredObject>({
    clock,
    changed: (_, { now }) => changes.push(now?.metadata.resourceVersion ?? 'gone'),
    doubted: ({ name }) => doubted.push(name),
  });
  view.follow({
    subscribe: (listener) => {
      notify = listener;
      return () => undefined;
    },
  });
  const change = (old: StoredObject | undefined, now: StoredObject, gap?: 'restore') => notify({ old, now, gap });
  const show = (now: StoredObject) => change(undefined, now);
  const lost = (old: StoredObject) => notify({ old, now: undefined });
  return { view, changes, doubted, timers, show, change, lost };
}

const at = (resourceVersion: string, uid = 'u'): StoredObject => ({
  metadata: { namespace: 'n', name: 'x', uid, resourceVersion },
});

const ref = { namespace: 'n', name: 'x' };

test('what the cache says late does not hide what a write returned', () => {
  const { view, changes, show } = setUp();
  show(at('9'));
  view.learn(at('10'));
  show(at('9'));
  expect(view.get({ namespace: 'n', name: 'x' })).toEqual(at('10'));
  expect(changes).toEqual(['9', '10']);
});

test('where resource versions are no numbers, what is told last counts', () => {
  const { view, show } = setUp();
  show(at('b'));
  view.learn(at('a'));
  expect(view.get({ namespace: 'n', name: 'x' })).toEqual(at('a'));
  show(at('b'));
  expect(view.get({ namespace: 'n', name: 'x' })).toEqual(at('b'));
  view.learn(at('b'));
  view.learn(at('12'));
  expect(view.get({ namespace: 'n', name: 'x' }), 'a number beside another form is no older').toEqual(at('12'));
});

test('an old answer does not bring back what is gone', () => {
  const { view, changes, show, lost } = setUp();
  show(at('5'));
  lost(at('8'));
  view.learn(at('7'));
  expect(changes).toEqual(['5', 'gone']);
});

test('a cache that goes back is followed: its API server was restored from a backup', () => {
  const { view, changes, change } = setUp();
  change(undefined, at('1000'));
  view.learn(at('1001'));
  change(at('1000'), at('500'));
  change(at('500'), at('501'));
  expect(changes).toEqual(['1000', '1001', '500', '501']);
});

test('a write that the cache had not seen yet is forgotten when the cache says again what it had', () => {
  const { view, changes, change } = setUp();
  change(undefined, at('1000'));
  view.learn(at('1001'));
  change(at('1000'), at('1000'));
  expect(changes).toEqual(['1000', '1001', '1000']);
});

test('what was deleted after the backup was made is there again', () => {
  const { view, changes, change, lost } = setUp();
  change(undefined, at('1000'));
  lost(at('1001'));
  change(undefined, at('500'));
  change(at('500'), at('501'));
  view.lost(at('501'));
  change(at('501'), at('400'));
  expect(changes).toEqual(['1000', 'gone', '500', '501', 'gone', '400']);
});

test('a cache that tells of a restore is followed, also to a state that is newer than what it had', () => {
  const { view, changes, change } = setUp();
  change(undefined, at('200'));
  view.learn(at('540'));
  change(at('200'), at('215'), 'restore');
  expect(changes).toEqual(['200', '540', '215']);
});

test('an answer to a question that came after what is known is never behind it, but for a restore', () => {
  const { view, changes } = setUp();
  view.learn(at('540'));
  view.learn(at('215'), view.get(ref));
  expect(changes).toEqual(['540', '215']);
});

test('so is one of another object of that name, and one that is hidden', () => {
  const { view, changes } = setUp();
  view.learn(at('540'));
  view.learn(at('103', 'other'), view.get(ref));
  view.left(at('100', 'other'), view.get(ref));
  expect(changes).toEqual(['540', 'gone', '103', 'gone']);
});

test('after a restore no version is one that an object had before, with another state', () => {
  const { view, show, change } = setUp();
  show(at('1000'));
  expect(view.versionOf(at('1000'))).toBe('1000');
  change(at('1000'), at('999'));
  expect(view.versionOf(at('1000'))).not.toBe('1000');
});

test('the same holds when the restore shows in an object that was deleted, not in one that a label takes out and back', () => {
  const { view, show, lost } = setUp();
  show(at('1000'));
  lost(at('1001'));
  show(at('1002'));
  expect(view.versionOf(at('1002'))).toBe('1002');
  lost(at('1003'));
  show(at('1000'));
  expect(view.versionOf(at('1001'))).not.toBe('1001');
});

test('what was deleted comes back by a restore, also when an answer said after the cache that it is gone', () => {
  const { view, changes, show, lost } = setUp();
  show(at('1000'));
  lost(at('1001'));
  view.lost(at('1000'));
  show(at('500'));
  expect(changes).toEqual(['1000', 'gone', '500']);
});

test('what the API server said is gone is not brought back by a cache that has not heard yet', () => {
  const { view, changes, show, lost } = setUp();
  show(at('5'));
  view.lost(at('5'));
  show(at('6'));
  lost(at('7'));
  expect(changes).toEqual(['5', 'gone']);
});

test('an object that a label took out of the selection is there again when the label goes', () => {
  const { view, changes, show, lost } = setUp();
  show(at('5'));
  lost(at('6'));
  view.learn(at('6'));
  show(at('7'));
  expect(changes).toEqual(['5', 'gone', '7']);
  expect(view.get({ namespace: 'n', name: 'x' })).toEqual(at('7'));
});

test('an own creation that does not show in the cache is doubted, ever more rarely', () => {
  const { view, doubted, timers, show } = setUp();
  view.learn(at('5'));
  for (let i = 0; i < 9; i++) {
    timers.at(-1)?.run();
  }
  expect(doubted).toHaveLength(9);
  expect(timers.map(({ ms }) => ms).slice(0, 3)).toEqual([10_000, 20_000, 40_000]);
  expect(Math.max(...timers.map(({ ms }) => ms))).toBe(600_000);
  show(at('6'));
  timers.at(-1)?.run();
  expect(doubted).toHaveLength(9);
});

test('of what a write returned and the cache then says, one copy is kept', () => {
  const { view, changes, show } = setUp();
  view.learn(at('7'));
  const cached = at('7');
  show(cached);
  expect(view.get({ namespace: 'n', name: 'x' })).toBe(cached);
  view.learn(at('7'));
  expect(view.get({ namespace: 'n', name: 'x' })).toBe(cached);
  view.learn(at('8'));
  show(at('7'));
  expect(view.get({ namespace: 'n', name: 'x' })).toEqual(at('8'));
  expect(changes).toEqual(['7', '8']);
});
