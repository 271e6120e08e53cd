import { expect, test } from 'vitest';
import { isForRepository, permitsSource } from './index.ts';

const secret = (url: string, type = 'repository') => ({
  metadata: { labels: { 'argocd.argoproj.io/secret-type': type } },
  data: { url: Buffer.from(url).toString('base64') },
});

test.each([
  ['https://git.example.com/a', 'https://git.example.com/a.git', true],
  ['https://Git.example.com/A', ' https://git.example.com/a', true],
  ['https://git.example.com/a', 'https://git.example.com/a/', false],
  ['git@git.example.com:a/b.git', 'ssh://git@git.example.com/a/b', true],
  ['git@git.example.com:a/b', 'https://git.example.com/a/b', false],
  ['oci://registry.example.com/charts', 'oci://registry.example.com/charts', true],
  ['', '', false],
])('the repository %j and the source %j: %s', (own, url, expected) =>
  expect(isForRepository(secret(own), url)).toBe(expected),
);

test.each([
  ['https://git.example.com/team/', 'https://git.example.com/team/a', true],
  ['https://git.example.com/team/', 'https://git.example.com/team-b/a', false],
  // As in Argo CD: who means a folder ends the address with a slash.
  ['https://git.example.com/team', 'https://git.example.com/team-b/a', true],
  ['git@git.example.com:team', 'ssh://git@git.example.com/team/a', true],
  ['', 'https://git.example.com', false],
])('the template %j and the source %j: %s', (own, url, expected) =>
  expect(isForRepository(secret(own, 'repo-creds'), url)).toBe(expected),
);

test.each([
  [['*'], true],
  [[], false],
  [undefined, false],
  [['https://git.example.com/team/shop'], true],
  [['https://git.example.com/*'], false],
  [['https://git.example.com/**'], true],
  [['*', '!https://git.example.com/team/*'], false],
  [['!https://elsewhere/**'], true],
])('a project with the sources %j: %s', (sourceRepos, expected) => {
  const project = { metadata: { name: 'team' }, spec: sourceRepos === undefined ? {} : { sourceRepos } };
  expect(permitsSource(project, 'https://git.example.com/team/shop.git')).toBe(expected);
});

test('an address of many signs takes no time', () => {
  const begin = performance.now();
  expect(isForRepository(secret('git@x:y'), '@'.repeat(1_000_000))).toBe(false);
  expect(performance.now() - begin).toBeLessThan(1_000);
});
