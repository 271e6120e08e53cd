import { expect, test } from 'vitest';
import { Assignments } from './assignments.ts';

test('each agent has what was given to it last, and only that', () => {
  const assignments = new Assignments();
  const of = (agent: string) => Array.from(assignments.of(agent), ({ namespace, name }) => `${namespace}/${name}`);
  const x = { namespace: 'n', name: 'x' };
  const y = { namespace: 'n', name: 'y' };
  assignments.move(x, undefined, 'a');
  assignments.move(x, 'a', 'a');
  assignments.move(y, undefined, 'a');
  expect(of('a')).toEqual(['n/x', 'n/y']);
  assignments.move(x, 'a', 'b');
  expect(of('a')).toEqual(['n/y']);
  expect(of('b')).toEqual(['n/x']);
  assignments.move(y, 'a', undefined);
  expect(of('a')).toEqual([]);
});
