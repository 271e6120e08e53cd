import { expect, test } from 'vitest';
import type { ManifestWork } from '../hub/index.ts';
import { deliveredBy, versionKeys } from '../rollout/index.ts';
import { describeVersion, isComparable, versionText } from './release.ts';

const work = (annotations: Record<string, string>): ManifestWork => {
  return { metadata: { name: 'w', annotations }, spec: { workload: { manifests: [] } } };
};

test('a work records the version that it was made with', () => {
  const version = { argoCD: 'argocd:2', redis: 'redis:8', agent: 'agent:1', crds: 'abc' };
  const text = versionText(version);
  const annotations = { [versionKeys.version]: text, [versionKeys.updatedAt]: '2030-01-01T00:00:00Z' };
  expect(deliveredBy(work(annotations))).toEqual({ version, updatedAt: '2030-01-01T00:00:00Z' });
  expect(deliveredBy(work({ [versionKeys.version]: text }))).toEqual({ version, updatedAt: undefined });
  expect(versionText(Object.fromEntries(Object.entries(version).reverse()) as never)).toBe(text);
});

test.each(['', '{', '[]', '{"agent":1}', 'null'])('an invalid record counts as none: %j', (text) => {
  expect(deliveredBy(work({ [versionKeys.version]: text }))).toBeUndefined();
  expect(deliveredBy(work({}))).toBeUndefined();
});

test('versions with different components are not updates of each other', () => {
  expect(isComparable({ agent: 'a', argoCD: 'x' }, { agent: 'b', argoCD: 'y' })).toBe(true);
  expect(isComparable({ agent: 'a' }, { agent: 'a', operator: 'o' })).toBe(false);
});

test('versions have a text for people', () => {
  expect(describeVersion({ agent: 'a:1', argoCD: 'x:2' })).toBe('Argo CD x:2, agent a:1');
  expect(describeVersion({ agent: 'a:1', operator: 'o:3' })).toBe('argocd-operator o:3, agent a:1');
  expect(describeVersion({ agent: 'a:1' })).toBe('agent a:1');
});
