import { describe, expect, test } from 'vitest';
import { BoundedMap, BoundedSet } from './bounded.ts';

describe('a bounded map', () => {
  test('forgets the oldest entry and reports it', () => {
    const evicted: [string, number][] = [];
    const map = new BoundedMap<string, number>(2, (key, value) => evicted.push([key, value]));
    map.set('a', 1).set('b', 2).set('c', 3);
    expect([...map]).toEqual([
      ['b', 2],
      ['c', 3],
    ]);
    expect(evicted).toEqual([['a', 1]]);
  });

  test('a key that is set again is the newest', () => {
    const map = new BoundedMap<string, number>(2);
    map.set('a', 1).set('b', 2).set('a', 3).set('c', 4);
    expect([...map.keys()]).toEqual(['a', 'c']);
    expect(map.get('a')).toBe(3);
  });

  test('keeps nothing when nothing is allowed', () => {
    expect(new BoundedMap<string, number>(0).set('a', 1).size).toBe(0);
  });
});

test('a bounded set forgets the value that was not added for the longest time', () => {
  const set = new BoundedSet<string>(2);
  set.add('a').add('b').add('a').add('c');
  expect([...set]).toEqual(['a', 'c']);
  expect(set.has('b')).toBe(false);
  expect(set.delete('a')).toBe(true);
  expect(set.size).toBe(1);
});
