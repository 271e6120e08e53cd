import { expect, test } from 'vitest';
import { compareWithArgoCD, comparisonMs } from '../../../e2e/oracle/index.ts';
import type { Random } from '../../../e2e/random/index.ts';
import { ArgoPolicy } from './argo-policy.ts';

const some = <T>(dice: Random, most: number, make: () => T): T[] => Array.from({ length: dice.integer(0, most) }, make);

const subjects = ['alice', 'bob', 'ops', 'devs', 'role:team', 'role:readonly', 'role:admin', 'proj:shop:dev'];
const objects = {
  clusters: ['https://c1', 'shop/https://c1', 'shop/https://c2'],
  applications: ['shop/web', 'shop/team/web', 'default/web'],
};
const globs = ['*', '*/*', 'shop/*', 'shop/https://c1', 'https://*', 'https://c?', 'default/*', 'shop/web'];
const expressions = ['.*', 'shop/.*', '^https', 'c1$', '(', 'shop', 'web'];

/** `isLess`: what is seen here must be seen in Argo CD, but not the other way round. */
function question(dice: Random, isAll: boolean) {
  const mode = dice.chance(0.3) ? 'regex' : 'glob';
  const patterns = mode === 'regex' ? expressions : globs;
  const line = (subject: string) => {
    const resource = dice.pick(
      mode === 'regex' ? ['clusters', 'applications', '.*', '('] : ['clusters', 'applications', '*'],
    );
    const action = dice.pick(mode === 'regex' ? ['get', 'update', '.*', '('] : ['get', 'update', '*']);
    return `p, ${subject}, ${resource}, ${action}, ${dice.pick(patterns)}, ${dice.pick(['allow', 'allow', 'deny'])}`;
  };
  const csv = some(dice, 5, () =>
    dice.chance(0.4) ? `g, ${dice.pick(subjects)}, ${dice.pick(subjects)}` : line(dice.pick(subjects)),
  );
  const data = {
    'policy.csv': csv.join('\n'),
    ...(dice.chance(0.2) ? { 'policy.default': dice.pick(['role:readonly', 'role:team', '']) } : {}),
    'policy.matchMode': mode,
  };
  const roles = some(dice, 2, () => 'dev')
    .slice(0, 1)
    .map((name) => ({
      name,
      policies: some(dice, 2, () => line('proj:shop:dev')),
      groups: some(dice, 2, () => dice.pick(['devs', 'ops', 'alice'])),
    }));
  const resource = isAll ? 'clusters' : dice.pick(['clusters', 'applications'] as const);
  const object = dice.pick(objects[resource]);
  const subject = {
    name: dice.pick(['alice', 'bob', 'admin', 'zoe']),
    groups: some(dice, 2, () => dice.pick(['devs', 'ops'])),
  };
  const policies = roles
    .flatMap((role) => [...role.policies, ...role.groups.map((group) => `g, ${group}, proj:shop:${role.name}`)])
    .join('\n');
  const project = object.startsWith('shop/') ? { name: 'shop', policies } : undefined;
  const of = {
    data,
    project: 'shop',
    spec: { roles },
    subject: subject.name,
    groups: subject.groups,
    resource,
    action: 'get',
    object,
  };
  const policy = new ArgoPolicy(data);
  return { of, policy, subject, project, request: { resource, action: 'get' as const, object }, policies };
}

test(
  'who may see what is what Argo CD says',
  async () => {
    const differs = await compareWithArgoCD('rights', (dice) => {
      const { of, policy, subject, request, project } = question(dice, false);
      return { of, ours: policy.allows(subject, request, project) };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);

test(
  'who sees all clusters sees each of them in Argo CD',
  async () => {
    const differs = await compareWithArgoCD('rights', (dice) => {
      const { of, policy, subject, policies } = question(dice, true);
      const ours = policy.allowsAllClusters(subject) && !policy.mayDeny({ name: 'shop', policies });
      return { of, ours, agrees: (theirs) => !ours || theirs === true };
    });
    expect(differs).toBeUndefined();
  },
  comparisonMs,
);
