import { expect, test } from 'vitest';
import { matchesAny } from './index.ts';

test.each([
  ['argocd', 'argocd', true],
  ['argocd', 'argocd-2', false],
  ['*', 'anything', true],
  ['team-*', 'team-a', true],
  ['team-*', 'a-team-b', false],
  ['team-?', 'team-a', true],
  ['team-[abc]', 'team-b', true],
  ['team-[a-c]', 'team-d', false],
  ['team-[!a]', 'team-b', true],
  ['team-[!a]', 'team-a', false],
  ['{dev,prod}-*', 'prod-1', true],
  ['{dev,prod}-*', 'test-1', false],
  ['a\\*', 'a*', true],
  ['a.b', 'axb', false],
  ['/^team-\\d+$/', 'team-12', true],
  ['/team/', 'my-team-x', true],
  ['/team/', 'other', false],
  ['[', '[', false],
  ['/', 'x', false],
  ['/(/', 'x', false],
  ['', 'x', false],
])('%j and %j: %s', (pattern, text, expected) => expect(matchesAny([pattern], text)).toBe(expected));

test('no pattern matches nothing, one of several is enough', () => {
  expect(matchesAny([], 'x')).toBe(false);
  expect(matchesAny(['a', 'x'], 'x')).toBe(true);
});
