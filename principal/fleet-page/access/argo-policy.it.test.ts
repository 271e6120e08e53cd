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

/** So many things are asked of each policy: that is quicker than to read as many. */
const each = 20;

/** A policy, and what it is asked. */
function question(dice: Random, resources: readonly (keyof typeof objects)[]) {
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
  const policies = roles
    .flatMap((role) => [...role.policies, ...role.groups.map((group) => `g, ${group}, proj:shop:${role.name}`)])
    .join('\n');
  const asked = Array.from({ length: each }, () => {
    const resource = dice.pick(resources);
    return {
      subject: dice.pick(['alice', 'bob', 'admin', 'zoe']),
      groups: some(dice, 2, () => dice.pick(['devs', 'ops'])),
      resource,
      action: 'get' as const,
      object: dice.pick(objects[resource]),
    };
  });
  const of = { data, project: 'shop', spec: { roles }, asked };
  return { of, policy: new ArgoPolicy(data), asked, project: { name: 'shop', policies } };
}

test(
  'who may see what is what Argo CD says',
  async () => {
    const make = (dice: Random) => {
      const { of, policy, asked, project } = question(dice, ['clusters', 'applications']);
      const ours = asked.map(({ subject: name, groups, ...request }) =>
        policy.allows({ name, groups }, request, request.object.startsWith('shop/') ? project : undefined),
      );
      return { of, ours };
    };
    expect(await compareWithArgoCD('rights', make, { each })).toBeUndefined();
  },
  comparisonMs,
);

test(
  'who sees all clusters sees each of them in Argo CD',
  async () => {
    const make = (dice: Random) => {
      const { of, policy, asked, project } = question(dice, ['clusters']);
      const ours = asked.map(
        ({ subject: name, groups }) =>
          policy.allowsAllClusters({ name, groups }) && policy.allowsAllClusters({ name, groups }, project),
      );
      const agrees = (theirs: unknown) => Array.isArray(theirs) && ours.every((one, at) => !one || theirs[at] === true);
      return { of, ours, agrees };
    };
    expect(await compareWithArgoCD('rights', make, { each })).toBeUndefined();
  },
  comparisonMs,
);
