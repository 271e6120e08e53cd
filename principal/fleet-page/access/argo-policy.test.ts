import { expect, test } from 'vitest';
import { ArgoPolicy, type PolicyRequest } from './argo-policy.ts';

const cluster = (object = 'https://one.example.com'): PolicyRequest => ({
  resource: 'clusters',
  action: 'get',
  object,
});
const application = (object: string): PolicyRequest => ({ resource: 'applications', action: 'get', object });
const local = (name: string) => ({ name, groups: [] });
const policy = (csv: string, more: Readonly<Record<string, string>> = {}) =>
  new ArgoPolicy({ 'policy.csv': csv, ...more });

test('without a policy only admin sees anything', () => {
  const none = new ArgoPolicy({});
  expect(none.allows(local('admin'), cluster())).toBe(true);
  expect(none.allows(local('admin'), application('default/shop'))).toBe(true);
  expect(none.allowsAllClusters(local('admin'))).toBe(true);
  for (const name of ['alice', '', 'role:nothing', 'Admin', 'toString', '__proto__']) {
    expect(none.allows(local(name), cluster()), name).toBe(false);
    expect(none.allowsAllClusters(local(name)), name).toBe(false);
  }
});

test('rights, roles, roles of roles, and the built-in ones', () => {
  const given = policy(`
    # people
    g, alice, role:readonly
    g, bob, role:team
    g, role:team, role:viewers
    p, role:viewers, clusters, get, https://one.*, allow
    p, carol, clusters, *, *, allow
    p, dave, clusters, update, *, allow
    p, erin, cluster*, g?t, https://*.example.com, allow
    "p", "frank", clusters, get, "*", allow
  `);
  for (const name of ['alice', 'bob', 'carol', 'erin', 'frank']) {
    expect(given.allows(local(name), cluster()), name).toBe(true);
  }
  expect(given.allows(local('dave'), cluster())).toBe(false);
  expect(given.allows(local('bob'), cluster('https://two.example.com'))).toBe(false);
  expect(
    ['alice', 'carol', 'frank', 'bob', 'erin', 'dave'].map((name) => given.allowsAllClusters(local(name))),
  ).toEqual([true, true, true, false, false, false]);
});

test('a denial counts more than any right, and a role of a role is reached but not for ever', () => {
  const given = policy(`
    g, alice, role:admin
    p, alice, clusters, get, https://secret.*, deny
    g, role:a, role:b
    g, role:b, role:a
    g, bob, role:a
  `);
  expect(given.allows(local('alice'), cluster())).toBe(true);
  expect(given.allows(local('alice'), cluster('https://secret.example.com'))).toBe(false);
  expect(given.allowsAllClusters(local('alice'))).toBe(false);
  expect(given.allows(local('bob'), cluster())).toBe(false);
});

test('policy.default is for everybody; further policy files count', () => {
  expect(new ArgoPolicy({ 'policy.default': 'role:readonly' }).allowsAllClusters(local('anyone'))).toBe(true);
  const more = new ArgoPolicy({
    'policy.csv': 'g, alice, role:x',
    'policy.team.csv': 'p, role:x, clusters, get, *, allow',
  });
  expect(more.allows(local('alice'), cluster())).toBe(true);
});

test('groups count when a g line has them, as in Argo CD', () => {
  const given = policy('g, my-org:ops, role:readonly\np, direct, clusters, get, *, allow');
  expect(given.allows({ name: 'zoe', groups: ['my-org:ops'] }, cluster())).toBe(true);
  expect(given.allows({ name: 'zoe', groups: ['direct'] }, cluster())).toBe(false);
  expect(given.allows({ name: 'zoe', groups: ['my-org:dev'] }, cluster())).toBe(false);
});

test('roles of a project count for what is in it', () => {
  const given = policy('');
  const project = {
    name: 'shop',
    policies: 'p, proj:shop:dev, applications, get, shop/*, allow\ng, devs, proj:shop:dev',
  };
  const zoe = { name: 'zoe', groups: ['devs'] };
  expect(given.allows(zoe, application('shop/web'), project)).toBe(true);
  expect(given.allows(zoe, application('other/web'), { name: 'other', policies: '' })).toBe(false);
  const broken = { name: 'shop', policies: `${project.policies}\np, what` };
  expect(given.allows(zoe, application('shop/web'), broken)).toBe(false);
});

test('what is not understood allows nothing and denies', () => {
  const given = policy(`
    p, alice, clusters, get, {https://one*}, allow
    p, bob, clusters, get, *, allow
    p, bob, clusters, get, [h]*, deny
    p, carol, clusters, get, *, perhaps
    p, dave, clusters, get, *, allow\t x
  `);
  for (const name of ['alice', 'bob', 'carol', 'dave']) {
    expect(given.allows(local(name), cluster()), name).toBe(false);
  }
  for (const line of [
    'p, alice, clusters, get, *',
    'q, a, b',
    'g, alice',
    'p, "alice, clusters, get, *, allow',
    'p, a"b, c, d, e, f',
    ',,,,,',
  ]) {
    expect(() => policy(line), line).toThrow('line 1 of the policy is not understood');
  }
});

test('regular expressions match anywhere; one that Go does not compile ends it, as in Argo CD', () => {
  const regex = { 'policy.matchMode': 'regex' };
  const given = policy('p, alice, clusters, get, one\\.example, allow\np, bob, clusters, get, .*, allow', regex);
  expect(given.allows(local('alice'), cluster())).toBe(true);
  expect(given.allows(local('alice'), cluster('https://two.example.com'))).toBe(false);
  expect(
    policy('p, bob, clusters, get, .*, allow\np, bob, clusters, get, *, allow', regex).allows(local('bob'), cluster()),
  ).toBe(false);
  const slow = policy(`p, bob, clusters, get, (a+)+$, allow\np, al, clusters, get, ${'*a'.repeat(200)}, allow`);
  expect(slow.allows(local('al'), cluster('a'.repeat(3_000)))).toBe(true);
  expect(slow.allows(local('al'), cluster(`${'a'.repeat(3_000)}b`))).toBe(false);
});
