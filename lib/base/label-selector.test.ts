import { expect, test } from 'vitest';
import { labelCompletion, labelSelector } from './index.ts';

test.each([
  ['', {}, true],
  ['a=b', { a: 'b' }, true],
  ['a==b', { a: 'c' }, false],
  ['a!=b', { a: 'c' }, true],
  ['a!=b', {}, true],
  ['a=', { a: '' }, true],
  ['a=', {}, false],
  ['team in (x, y)', { team: 'y' }, true],
  ['team in (x,y),env', { team: 'y' }, false],
  ['team notin (x,y)', {}, true],
  ['team notin (x,y)', { team: 'x' }, false],
  ['example.com/team', { 'example.com/team': '' }, true],
  ['!team', { team: '' }, false],
  ['! team', {}, true],
  ['n>3,n<5', { n: '4' }, true],
  ['n>3', { n: 'x' }, false],
  ['argocd-agent.argoproj-labs.io/ignore-sync!=true,a=b', { a: 'b' }, true],
  ['toString', {}, false],
])('%j selects %j: %s', (selector, labels, isSelected) => {
  expect(labelSelector(selector)(labels)).toBe(isSelected);
});

test.each(['a=b,', 'a in x', 'a in (x', '=b', 'a b', 'a=b c', '!a=b', 'n>x', 'a in (x y)', '-a'])(
  '%j is no selector',
  (text) => {
    expect(() => labelSelector(text)).toThrow(SyntaxError);
  },
);

test.each([
  ['', { a: 'b' }, { a: 'b' }],
  ['team=x', { a: 'b' }, { a: 'b', team: 'x' }],
  ['team=x', { team: 'y' }, { team: 'x' }],
  ['team in (x,y)', {}, { team: 'x' }],
  ['team in (x,y)', { team: 'y' }, { team: 'y' }],
  ['team in (x,y),team!=x', {}, { team: 'y' }],
  ['team!=x', { team: 'x', a: 'b' }, { a: 'b' }],
  ['team notin (x,y)', { team: 'y' }, {}],
  ['team notin (x,y)', { team: 'z' }, { team: 'z' }],
  ['team', {}, { team: '' }],
  ['team,team!=', { team: '' }, { team: 'true' }],
  ['!team', { team: 'x' }, {}],
  ['n>3,n<5', { n: '7' }, { n: '4' }],
  ['n<0', {}, undefined],
  ['team=x,team=y', {}, undefined],
  ['toString=x', {}, { toString: 'x' }],
])('%j completes %j to %j', (selector, labels, completed) => {
  expect(labelCompletion(selector)(labels)).toEqual(completed);
  expect(completed === undefined || labelSelector(selector)(completed as Record<string, string>)).toBe(true);
});
