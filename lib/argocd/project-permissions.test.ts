import { expect, test } from 'vitest';
import { type AppProjectSpec, admitsNamespace, permitsDestination } from './index.ts';

const project = (spec: AppProjectSpec) => ({ metadata: { name: 'team-a' }, spec });
const prod = { name: 'prod', server: 'https://prod:6443', namespace: 'web' };

test.each<[AppProjectSpec['destinations'], boolean]>([
  [undefined, false],
  [[{ name: 'prod', namespace: 'web' }], true],
  [[{ server: 'https://prod:6443', namespace: 'web' }], true],
  [[{ server: '*', namespace: '*' }], true],
  [[{ name: 'p*', namespace: 'w*' }], true],
  [[{ name: 'prod', namespace: 'db' }], false],
  [[{ name: 'test', namespace: 'web' }], false],
  [[{ name: 'prod' }], false],
  [
    [
      { server: '*', namespace: '*' },
      { name: '!prod', namespace: '*' },
    ],
    false,
  ],
  [
    [
      { server: '*', namespace: '*' },
      { server: '!https://prod:6443', namespace: '*' },
    ],
    false,
  ],
  [
    [
      { server: '*', namespace: '*' },
      { server: '*', namespace: '!web' },
    ],
    false,
  ],
  [
    [
      { server: '*', namespace: '*' },
      { name: '!test', namespace: '*' },
    ],
    true,
  ],
  [
    [
      { server: '!https://prod:6443', namespace: '*' },
      { server: '*', namespace: '*' },
    ],
    false,
  ],
])('destinations %j', (destinations, expected) => {
  const spec = destinations === undefined ? {} : { destinations };
  expect(permitsDestination(project(spec), prod)).toBe(expected);
});

test('a project without sourceNamespaces admits no namespace', () => {
  expect(admitsNamespace(project({}), 'team-a')).toBe(false);
  expect(admitsNamespace(project({ sourceNamespaces: ['team-*'] }), 'team-a')).toBe(true);
  expect(admitsNamespace(project({ sourceNamespaces: ['/^team-[ab]$/'] }), 'team-c')).toBe(false);
});
