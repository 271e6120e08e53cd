import { Script } from 'node:vm';
import { expect, onTestFinished, test, vi } from 'vitest';
import { isGlob, matchesGlob, unreadableEntries } from './glob.ts';
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
])('defect 40: %j and %j: %s', (pattern, text, expected) => expect(matchesAny([pattern], text)).toBe(expected));

test('no pattern matches nothing, one of several is enough', () => {
  expect(matchesAny([], 'x')).toBe(false);
  expect(matchesAny(['a', 'x'], 'x')).toBe(true);
});

test.each([
  ['*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*ab', 'a'.repeat(250)],
  [`${'{a,aa}'.repeat(100)}b`, 'a'.repeat(150)],
  [`${'{*a,*b}'.repeat(50)}c`, 'ab'.repeat(100)],
  ['{'.repeat(4_000), 'a'],
  ['{a,'.repeat(1_000), 'a'],
  ['/^(a+)+$/', `${'a'.repeat(60)}b`],
  ['/(a|aa)+$/', `${'a'.repeat(60)}b`],
  ['/^(?=(a+)+$)/', `${'a'.repeat(60)}b`],
  [`/${'(a?'.repeat(10_000)}/`, 'a'],
])('defect 40: nobody stops the program with a pattern (%#)', (pattern, text) => {
  const began = performance.now();
  for (let round = 0; round < 100; round++) {
    expect(matchesAny([pattern], text)).toBe(false);
  }
  expect(performance.now() - began).toBeLessThan(10_000);
});

test.each(['(?:.{20}|.{21})'.repeat(200), '[^]{65000}'.repeat(400)])(
  'nobody stops the program with an expression that takes long to compile (%#)',
  (source) => {
    const entries = () => [`/${source}/`];
    const began = process.cpuUsage();
    // V8 compiles an expression anew when it is used again, and for another kind of text.
    for (const text of ['a', 'a'.repeat(60), 'é中', 'b', 'b']) {
      expect(matchesAny(entries(), text)).toBe(false);
    }
    expect(process.cpuUsage(began).user / 1_000).toBeLessThan(400);
  },
);

const slow = (count: number) =>
  Array.from({ length: count }, (_, index) => `/^(([a-z])+.)+[A-Z]([a-z])+$(?:${index})?/`);
const text = `${'a'.repeat(40)}1`;

test.each([20, 500])('%i slow expressions of one list have 50 ms of the processor together', (count) => {
  const entries = slow(count);
  const began = process.cpuUsage();
  expect(matchesAny(entries, text)).toBe(false);
  // Each of them alone would take for ever. The test has time for other work of the process.
  expect(process.cpuUsage(began).user / 1_000).toBeLessThan(400);
  const again = process.cpuUsage();
  for (let round = 0; round < 100; round++) {
    expect(matchesAny(entries, text)).toBe(false);
  }
  expect(process.cpuUsage(again).user / 1_000).toBeLessThan(400);
});

test('a good expression after slow ones matches', () => {
  expect(matchesAny([...slow(10), '/^a+1$/'], text)).toBe(true);
  expect(matchesAny([...slow(10), '/^a+1$/'], 'ab')).toBe(false);
});

test.each([
  ['a/*', 'a/b', true],
  ['a/*', 'a/b/c', false],
  ['a/**', 'a/b/c', true],
  ['a/***', 'a/b/c', true],
  ['*/c', 'a/b/c', false],
  ['**/c', 'a/b/c', true],
  ['*', 'a/b', false],
  ['a?b', 'a/b', false],
  ['a[/]b', 'a/b', true],
  ['{*,x}/b', 'a/b', true],
])('with a separator, %j and %j: %s', (pattern, text, expected) =>
  expect(matchesGlob(pattern, text, '/')).toBe(expected),
);

test.each([
  ['/^team\\-[a-z]+$/', 'team-a', true],
  ['/(?i)^TEAM-/', 'team-a', true],
  ['/\\Ateam-a\\z/', 'team-a', true],
  ['/\\Ateam\\z/', 'team-a', false],
  ['/^prod\\:/', 'prod:', true],
  ['/^a$|^team\\-b$/', 'team-b', true],
  ['/^team\\_a$/', 'team_a', false],
  ['/^[\\w\\-]+$/', 'team-a', true],
  ['/^[]a]+$/', 'a]', true],
  ['/^[^]a]+$/', 'b', true],
  ['/^a{x}]$/', 'a{x}]', true],
  ['/^a{,2}$/', 'a{,2}', true],
  ['/^a(?#or b)$/', 'a', true],
  ['/^team-(?!b)/', 'team-a', true],
  ['/(?i)^TEAM-(/', 'team-a', false],
  ['/^[a-z-[aeiou]]$/', 'b', false],
])('the expression %s is read as Argo CD reads it: %s', (entry, text, matches) => {
  expect(matchesAny([entry], text)).toBe(matches);
});

test.each(['team-[a-z0-9]', '[a-]', '[]a]', '[]', '[a-cx]', '[z-a]', '[a'])('%s is no glob to Argo CD', (pattern) => {
  expect(isGlob(pattern)).toBe(false);
  for (const text of ['team-a', 'team-0', 'team-z', 'a', '-', ']', pattern]) {
    expect(matchesGlob(pattern, text), text).toBe(false);
  }
});

test('a class has a range, or characters of which \\ takes one as it is', () => {
  const matching = (pattern: string) => ['a', '-', ']', '!', '\\', 'B'].filter((text) => matchesGlob(pattern, text));
  expect(matching('[\\]a]')).toEqual(['a', ']']);
  expect(matching('[-a]')).toEqual(['a', '-']);
  expect(matching('[!-a]')).toEqual([']', '!', '\\', 'B']);
  expect(matching('[A-]]')).toEqual([']', '\\', 'B']);
  expect(matching('[]-a]')).toEqual(['a', ']']);
});

test('entries that cannot be read are told apart', () => {
  const entries = ['team-*', 'team-[a-z0-9]', '/^team/', '/(/', '/[a-z-[b]]/'];
  expect(unreadableEntries(entries)).toEqual(['team-[a-z0-9]', '/(/', '/[a-z-[b]]/']);
});

test('a list is searched once for each text, however many ask', () => {
  const searches = vi.spyOn(Script.prototype, 'runInContext');
  onTestFinished(() => searches.mockRestore());
  const entries = Array.from({ length: 10 }, (_, index) => `/^team-${index}$/`);
  for (let round = 0; round < 100; round++) {
    expect([matchesAny(entries, 'team-9'), matchesAny(entries, 'team-x')]).toEqual([true, false]);
  }
  // Without that there are 2,000. A busy machine interrupts some, which go on.
  expect(searches.mock.calls.length).toBeLessThan(200);
});

test('what was not searched to its end is not remembered', () => {
  const entries = [`/^(([a-z])+.)+[A-Z]([a-z])+$(?:once)?/`, '/^none$/'];
  const searches = vi.spyOn(Script.prototype, 'runInContext');
  onTestFinished(() => searches.mockRestore());
  expect(matchesAny(entries, text)).toBe(false);
  searches.mockClear();
  const now = performance.now() + 61_000;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  expect(matchesAny(entries, text)).toBe(false);
  expect(searches.mock.calls.length).toBeGreaterThan(1);
});
