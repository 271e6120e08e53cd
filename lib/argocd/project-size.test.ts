import { expect, test } from 'vitest';
import { isProjectForAgent } from './app-project-rules.ts';
import type { AppProject } from './application.ts';
import { permitsSource } from './project-permissions.ts';
import { excessOf, mostEntries, mostPatternCharacters } from './project-size.ts';

const one = { agent: 'one', clusters: [{ name: 'one', server: 'https://one' }] };
const project = (spec: AppProject['spec']): AppProject => ({ metadata: { name: 'p' }, spec });
const here = { name: 'one', namespace: '*' };
const many = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => item(i));

test.each<[string, (count: number) => AppProject['spec']]>([
  ['destinations', (count) => ({ destinations: [here, ...many(count - 1, (i) => ({ name: `c${i}` }))] })],
  ['sourceNamespaces', (count) => ({ destinations: [here], sourceNamespaces: many(count, () => 'one') })],
  ['sourceRepos', (count) => ({ destinations: [here], sourceRepos: many(count, (i) => `https://git/${i}`) })],
  ['syncWindows', (count) => ({ destinations: [here], syncWindows: many(count, () => ({})) })],
  [
    'syncWindows[].clusters',
    (count) => ({ destinations: [here], syncWindows: [{ clusters: ['a'] }, { clusters: many(count - 1, () => '') }] }),
  ],
  [
    'destinationServiceAccounts',
    (count) => ({ destinations: [here], destinationServiceAccounts: many(count, () => ({ server: '' })) }),
  ],
])('a project with too many entries in %s is for no agent', (field, specFor) => {
  const [most, more] = [project(specFor(mostEntries)), project(specFor(mostEntries + 1))];
  expect(excessOf(most)).toBeUndefined();
  expect(isProjectForAgent(most, one, 'destination')).toBe(true);
  expect(excessOf(more)).toContain(`spec.${field} has 5001 entries`);
  expect(isProjectForAgent(more, one, 'destination')).toBe(false);
});

test.each<[string, (pattern: string) => AppProject['spec']]>([
  ['names', (name) => ({ destinations: [here, { name }] })],
  ['denied servers', (server) => ({ destinations: [here, { server: `!${server}` }] })],
  ['sources', (pattern) => ({ destinations: [here], sourceRepos: [pattern] })],
  ['source namespaces', (pattern) => ({ destinations: [here], sourceNamespaces: [pattern] })],
  ['clusters of sync windows', (pattern) => ({ destinations: [here], syncWindows: [{ clusters: [pattern] }] })],
  ['service accounts', (server) => ({ destinations: [here], destinationServiceAccounts: [{ server }] })],
])('a project with too long patterns for %s is for no agent', (_, specFor) => {
  const [most, more] = [mostPatternCharacters - 1, mostPatternCharacters + 1].map((length) =>
    project(specFor(`*${'x'.repeat(length - 1)}`)),
  ) as [AppProject, AppProject];
  expect(excessOf(most)).toBeUndefined();
  expect(isProjectForAgent(most, one, 'destination')).toBe(true);
  expect(excessOf(more)).toMatch(/^its patterns for clusters, namespaces and sources have 13107\d characters/);
  expect(isProjectForAgent(more, one, 'destination')).toBe(false);
});

test('names and addresses of a large fleet are no patterns', () => {
  const destinations = many(mostEntries, (i) => ({
    name: i === 0 ? 'one' : `prod-eu-west-1-cluster-${i}`,
    server: `https://${'api.'.repeat(20)}cluster-${i}.example.com:6443`,
    namespace: '*',
  }));
  expect(excessOf(project({ destinations }))).toBeUndefined();
  expect(isProjectForAgent(project({ destinations }), one, 'destination')).toBe(true);
});

test('lists that are none are not counted', () => {
  const odd = { destinations: null, sourceRepos: 'x', syncWindows: [null, { clusters: 5 }], sourceNamespaces: [1] };
  expect(excessOf(project(odd as never))).toBeUndefined();
});

test('a source with a very long address is permitted by no project, not by one that only denies either', () => {
  const url = (length: number) => `https://git/${'x'.repeat(length)}`;
  for (const sourceRepos of [['*'], ['!https://other/*']]) {
    expect(permitsSource(project({ sourceRepos }), url(4_000))).toBe(true);
    expect(permitsSource(project({ sourceRepos }), url(5_000))).toBe(false);
  }
});
