import { expect, it } from 'vitest';
import { type AggregatedRole, areAggregated } from './aggregated-roles.ts';

const pods = { apiGroups: [''], resources: ['pods'], verbs: ['get'] };
const secrets = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] };
const part = (name: string, rule: object): AggregatedRole => ({
  metadata: { name: `part-of-${name}`, labels: { [`to-${name}`]: 'true' } },
  rules: [rule],
});
const aggregated = (name: string, rules: object[] | null, labels = {}): AggregatedRole => ({
  metadata: { name, labels },
  aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [`to-${name}`]: 'true' } }] },
  rules,
});

it('is so when each role has the rules of its parts, also of those that are put together themselves', () => {
  const parts = [part('edit', pods), part('admin', secrets)];
  const edit = aggregated('edit', [pods], { 'to-admin': 'true' });
  expect(areAggregated([...parts, edit, aggregated('admin', [secrets, pods])])).toBe(true);
  expect(areAggregated([...parts, edit, aggregated('admin', [secrets])])).toBe(false);
  expect(areAggregated([...parts, edit, aggregated('admin', null)])).toBe(false);
});

it('is not so before there are such roles', () => {
  expect(areAggregated([])).toBe(false);
  expect(areAggregated([part('edit', pods)])).toBe(false);
});
