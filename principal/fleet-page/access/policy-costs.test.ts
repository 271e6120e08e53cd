import { expect, test } from 'vitest';
import type { AppProject } from '../../../lib/argocd/index.ts';
import { growth } from '../../../lib/base/testing.ts';
import { ArgoPolicy, type PolicyRequest } from './argo-policy.ts';
import { parsePolicy } from './policy-text.ts';
import { longestProjectPolicies, projectPolicies } from './project-policies.ts';

const admin = { name: 'admin', groups: [] };
const web: PolicyRequest = { resource: 'applications', action: 'get', object: `shop/${'a'.repeat(300)}` };
const attempt = (text: string) => {
  try {
    return parsePolicy(text);
  } catch {
    return undefined;
  }
};

test.each<[string, (size: number) => string]>([
  ['blanks', (size) => `p, ${' '.repeat(size)}x"`],
  ['blanks before a field', (size) => `p,${' '.repeat(size)}a, b, c, d, e"`],
  ['a field with blanks', (size) => `p, ${'a '.repeat(size)}"`],
  ['an open quote', (size) => `p, "${'x'.repeat(size)}`],
  ['quotes', (size) => `p,"${'""'.repeat(size)}x`],
  ['commas', (size) => ','.repeat(size)],
  ['lines', (size) => 'g, a, b\n'.repeat(size)],
])('to read a policy takes time in proportion to it: %s', (_, text) => {
  expect(growth(text, attempt, 8_000)).toBeLessThan(25);
});

test('so does one subject with many roles, and a role with as many', () => {
  const members = (size: number) => Array.from({ length: size }, (_, at) => `g, admin, role:${at}`).join('\n');
  const read = (csv: string) => new ArgoPolicy({ 'policy.csv': csv }).allows(admin, web);
  expect(growth(members, read, 2_000)).toBeLessThan(25);
  // Each role is followed once, however often it is named.
  const chain = Array.from({ length: 9 }, (_, at) => `g, r${at}, r${at + 1}\n`.repeat(100)).join('');
  const csv = `${chain}g, admin, r0\np, r9, applications, get, shop/*, allow`;
  expect(new ArgoPolicy({ 'policy.csv': csv }).allows({ name: 'r0', groups: [] }, web)).toBe(true);
});

/** Counts how often the text of an object is looked at. */
function counted(text: string) {
  let looks = 0;
  const object = new Proxy(new String(text), {
    get(target, key) {
      looks += 1;
      const value = Reflect.get(target, key);
      return typeof value === 'function' ? value.bind(text) : value;
    },
  });
  return { request: { ...web, object: object as unknown as string }, looks: () => looks };
}

test('the lines of others cost a question nothing', () => {
  const lines = (count: number) =>
    Array.from({ length: count }, (_, at) => `p, u${at}, applications, get, shop/*, allow`).join('\n');
  const { request, looks } = counted('shop/web');
  const policy = new ArgoPolicy({});
  expect(policy.allows({ name: 'u7', groups: [] }, request, { name: 'shop', policies: lines(1_000) })).toBe(true);
  expect(looks()).toBeLessThan(100);
});

test('lines of a project that compare without end deny, after as many comparisons as one question has', () => {
  const object = `shop/${'a'.repeat(300)}`;
  const slow = (count: number) => ({
    name: 'shop',
    policies: Array.from(
      { length: count },
      (_, at) => `p, bob, applications, get, *a*a*a*${'?'.repeat(99)}b${at}, allow`,
    )
      .concat('p, bob, applications, get, shop/*, allow')
      .join('\n'),
  });
  const policy = new ArgoPolicy({});
  const ask = (count: number) => {
    const { request, looks } = counted(object);
    return [policy.allows({ name: 'bob', groups: [] }, request, slow(count)), looks()] as const;
  };
  expect(ask(1)[0]).toBe(true);
  const [isAllowed, looks] = ask(300);
  expect(isAllowed).toBe(false);
  expect(looks).toBeLessThan(200_000);
  // Argo CD's own policy is the operator's.
  expect(policy.allows(admin, web, slow(300))).toBe(true);
});

test('a project with more policies than are read gives nothing and denies, and it is said', () => {
  const said: string[] = [];
  const policy = new ArgoPolicy({}, (project) => said.push(project));
  const filling = `# ${'x'.repeat(longestProjectPolicies)}`;
  const long = { name: 'shop', policies: `${filling}\np, bob, applications, get, shop/*, allow` };
  expect([policy.allows({ name: 'bob', groups: [] }, web, long), policy.allows(admin, web, long)]).toEqual([
    false,
    false,
  ]);
  expect([policy.allowsAllClusters(admin), policy.allowsAllClusters(admin, long)]).toEqual([true, false]);
  expect(said).toEqual(['shop']);
});

test('a project whose regular expressions are long when written out gives nothing and denies', () => {
  const said: string[] = [];
  const policy = new ArgoPolicy({ 'policy.matchMode': 'regex', 'policy.csv': 'p, bob, .*, .*, .*, allow' }, (project) =>
    said.push(project),
  );
  const bob = { name: 'bob', groups: [] };
  const line = (object: string) => ({ name: 'shop', policies: `p, zoe, .*, .*, "${object}", allow` });
  expect(policy.allows(bob, web, line('a{3}-[0-9]{1,4}'))).toBe(true);
  expect(policy.allows(bob, web, line(`(${'abcdefgh'.repeat(100)}){1000}`))).toBe(false);
  expect(policy.allows(bob, web, line('((a{1,30}){1,30}){1,30}'))).toBe(false);
  expect(said).toEqual(['shop', 'shop']);
});

test('the policies of a project are not made longer than they are read', () => {
  const project: AppProject = {
    metadata: { name: 'shop' },
    spec: {
      roles: [{ name: 'r'.repeat(500_000), policies: [], groups: Array.from({ length: 5_000 }, (_, at) => `g${at}`) }],
    },
  };
  expect(projectPolicies(project)).toEqual({ name: 'shop', policies: undefined });
  expect(projectPolicies({ ...project, spec: {} }).policies).toBe('');
});
