import { expect, test } from 'vitest';
import { Random } from '../../e2e/random/index.ts';
import { applyMergePatch, isEqual, mergePatchBetween } from '../base/index.ts';
import {
  type Application,
  type AppProject,
  applicationRouter,
  applicationSchema,
  isProjectForAgent,
  matchesAny,
  matchesGlob,
  projectForAgent,
} from './index.ts';

const app = (namespace: string, destination = {}, labels = {}): Application => ({
  metadata: { name: 'shop', namespace, labels },
  spec: { destination },
});

test('with namespace-based mapping an Application belongs to the agent named like its namespace', () => {
  const route = applicationRouter({
    namespace: 'argocd',
    allowedNamespaces: ['agent-*', '/^x\\d$/'],
    mapping: 'namespace',
  });
  expect(route(app('agent-1'))).toBe('agent-1');
  expect(route(app('x1'))).toBe('x1');
  expect(route(app('argocd'))).toBeUndefined();
  expect(route(app('agent-1', {}, { 'argocd-agent.argoproj-labs.io/ignore-sync': 'true' }))).toBeUndefined();
  expect(route(app('agent-1', {}, { 'argocd-agent.argoproj-labs.io/ignore-sync': 'True' }))).toBe('agent-1');
  expect(
    applicationRouter({ namespace: 'argocd', allowedNamespaces: [], mapping: 'namespace' })(app('a')),
  ).toBeUndefined();
});

test('with destination-based mapping the destination names the agent', () => {
  const route = applicationRouter({ namespace: 'argocd', allowedNamespaces: [], mapping: 'destination' });
  expect(route(app('argocd', { name: 'c1' }))).toBe('c1');
  expect(route(app('other', { name: 'c1' }))).toBeUndefined();
  expect(route(app('argocd', { name: 'in-cluster' }))).toBeUndefined();
  expect(route(app('argocd', { server: 'https://c1' }))).toBeUndefined();
});

test('the mirror of an autonomous agent, whose cluster is called like another agent, is not given to that one', () => {
  const route = applicationRouter({ namespace: 'argocd', allowedNamespaces: ['*'], mapping: 'destination' });
  const own = app('auto', { name: 'c1' });
  expect(route(own)).toBe('c1');
  const marks = { 'argocd-agent.argoproj.io/last-updated': '2026-01-01T00:00:00Z' };
  expect(route({ ...own, metadata: { ...own.metadata, annotations: marks } })).toBeUndefined();
});

test.each([
  [['a*'], 'abc', true],
  [['{a,b{c,d}}x'], 'bdx', true],
  [['a.c'], 'abc', false],
  [['[!a-c]x'], 'dx', true],
  [['[!a-c]x'], 'bx', false],
  [['\\*'], '*', true],
  [['a{b'], 'ab', false],
  [['[z-a]'], 'b', false],
  [['/'], '/', true],
  [['//'], 'x', false],
  [['/[/'], 'x', false],
  [['no', '/^ag/'], 'agent', true],
])('defect 40: %j matches %s: %s', (patterns, text, expected) => expect(matchesAny(patterns, text)).toBe(expected));

test('a glob made from a text by putting wild cards in matches the text', () => {
  for (let seed = 1; seed <= 500; seed++) {
    const dice = new Random(seed);
    const text = Array.from({ length: dice.integer(0, 8) }, () => dice.pick([...'ab-.*?[]{},\\$^é😀'])).join('');
    const pattern = Array.from(text, (char) => {
      switch (dice.integer(0, 4)) {
        case 0:
          return '*';
        case 1:
          return '?';
        case 2:
          return `{q,\\${char}}`;
        default:
          return `\\${char}`;
      }
    }).join('');
    expect(matchesGlob(pattern, text), `seed ${seed}: ${pattern} on ${text}`).toBe(true);
    expect(matchesGlob(`${pattern}Q`, text), `seed ${seed}`).toBe(false);
  }
});

const target = (agent: string) => ({
  agent,
  clusters: [{ name: agent, server: `https://proxy:9090?agentName=${agent}` }],
});

const project = (spec: AppProject['spec']): AppProject => ({ metadata: { name: 'p', uid: 'u' }, spec });

test('defect 41: a project goes to the agents that its destinations and source namespaces mean', () => {
  const some = project({ destinations: [{ name: 'a*', namespace: '*' }], sourceNamespaces: ['a1', 'b1'] });
  expect(isProjectForAgent(some, target('a1'), 'namespace')).toBe(true);
  expect(isProjectForAgent(some, target('a2'), 'namespace')).toBe(false);
  expect(isProjectForAgent(some, target('a2'), 'destination')).toBe(true);
  expect(isProjectForAgent(some, target('b1'), 'namespace')).toBe(false);
  const denying = project({ destinations: [{ name: '*' }, { name: '!a2' }] });
  expect(isProjectForAgent(denying, target('a2'), 'destination')).toBe(false);
  expect(isProjectForAgent(denying, target('a1'), 'destination')).toBe(true);
  const server = project({ destinations: [{ server: 'https://proxy:9090?agentName=a1' }, { server: 'not a url' }] });
  expect(isProjectForAgent(server, target('a1'), 'destination')).toBe(true);
  expect(isProjectForAgent(server, target('a2'), 'destination')).toBe(false);
  const untouched = project({ destinations: [{ server: '*', namespace: '*' }] });
  expect(isProjectForAgent(untouched, target('a1'), 'namespace')).toBe(false);
  expect(isProjectForAgent(untouched, target('a1'), 'destination')).toBe(true);
});

test('defect 41: an agent gets its own destinations once, turned to itself, and no roles', () => {
  const whole = project({
    destinations: [
      { name: 'a1', namespace: 'x' },
      { name: 'a*', namespace: 'x' },
      { name: 'b1', namespace: 'y' },
      { server: '*', namespace: 'z' },
    ],
    sourceNamespaces: ['a1'],
    roles: [{ name: 'admin' }],
    sourceRepos: ['*'],
  });
  const local = (namespace: string) => ({ name: 'in-cluster', server: 'https://kubernetes.default.svc', namespace });
  expect(projectForAgent(whole, target('a1'), 'namespace').spec).toEqual({
    destinations: [local('x'), local('z')],
    sourceRepos: ['*'],
  });
  expect(projectForAgent(whole, target('a1'), 'destination').spec.sourceNamespaces).toEqual(['a1']);
});

test('a merge patch between two values makes the second of the first', () => {
  for (let seed = 1; seed <= 500; seed++) {
    const dice = new Random(seed);
    const from = anyObject(dice, 3);
    const to = anyObject(dice, 3);
    const patch = mergePatchBetween(from, to);
    expect(isEqual(applyMergePatch(from, patch ?? {}), to), `seed ${seed}`).toBe(true);
    expect(patch === undefined, `seed ${seed}`).toBe(isEqual(from, to));
  }
});

test('an Application from outside keeps what is not known, and null is absent', () => {
  const parsed = applicationSchema.parse({
    metadata: { name: 'a', creationTimestamp: null, labels: null, generateName: 'x' },
    spec: { destination: { name: 'c' }, sources: [{ path: 'p' }] },
    status: { summary: { images: ['i'] }, health: {} },
  });
  expect(parsed).toEqual({
    metadata: { name: 'a', creationTimestamp: null, generateName: 'x' },
    spec: { destination: { name: 'c' }, sources: [{ path: 'p' }] },
    status: { summary: { images: ['i'] }, health: {} },
  });
  expect(applicationSchema.safeParse({ metadata: { name: '' }, spec: {} }).success).toBe(false);
});

test('a long list is refused with one issue, however many items are not as expected', () => {
  const conditions = Array<object>(60_000).fill({});
  const { error } = applicationSchema.safeParse({ metadata: { name: 'a' }, spec: {}, status: { conditions } });
  expect(error?.issues).toEqual([expect.objectContaining({ path: ['status', 'conditions', 0, 'type'] })]);
});

function anyObject(dice: Random, depth: number): Record<string, unknown> {
  const entries = Array.from({ length: dice.integer(0, 4) }, () => [
    dice.pick(['a', 'b', 'c', 'd']),
    anyValue(dice, depth),
  ]);
  return Object.fromEntries(entries);
}

function anyValue(dice: Random, depth: number): unknown {
  const kind = dice.integer(0, depth > 0 ? 4 : 2);
  return [1, 'x', [dice.integer(0, 2)], anyObject, anyObject][kind] === anyObject
    ? anyObject(dice, depth - 1)
    : [dice.integer(0, 2), 'x', [dice.integer(0, 2)]][kind];
}
