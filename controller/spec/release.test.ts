import { expect, test } from 'vitest';
import type { ManifestWork } from '../hub/index.ts';
import { deliveredBy, versionAnnotations, versionKeys } from '../rollout/index.ts';
import { describeVersion, isComparable, isVersion, type Version, versionText } from './release.ts';

const work = (annotations: Record<string, string>): ManifestWork => {
  return { metadata: { name: 'w', annotations }, spec: { workload: { manifests: [] } } };
};

test('a work records the version that it was made with', () => {
  const version = { argoCD: 'argocd:2', redis: 'redis:8', agent: 'agent:1', crds: 'abc' };
  const text = versionText(version);
  const annotations = { [versionKeys.version]: text, [versionKeys.updatedAt]: '2030-01-01T00:00:00Z' };
  const update = { updatedAt: '2030-01-01T00:00:00Z', reconnects: false, isOver: false };
  expect(deliveredBy(work(annotations))).toEqual({ version, ...update });
  expect(deliveredBy(work({ [versionKeys.version]: text }))).toEqual({ version, ...update, updatedAt: undefined });
  for (const other of [update, { ...update, reconnects: true }, { ...update, isOver: true }]) {
    expect(deliveredBy(work(versionAnnotations(version, other)))).toEqual({ version, ...other });
  }
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

test('another endpoint is another version; while none is known, each is the desired one', () => {
  const [one, two] = ['1', '2'].map((port) => ({ agent: 'a', endpoint: { address: 'hub', port } })) as [
    Version,
    Version,
  ];
  expect(isVersion(one, one)).toBe(true);
  expect(isVersion(one, two)).toBe(false);
  expect(isVersion({ agent: 'a' }, two)).toBe(false);
  expect(isVersion(one, { agent: 'a' })).toBe(true);
  expect(isComparable(one, two) && isComparable({ agent: 'b' }, two)).toBe(true);
  expect(describeVersion(two)).toBe('agent a, principal at hub:2');
});

test('versions have a text for people', () => {
  expect(describeVersion({ agent: 'a:1', argoCD: 'x:2' })).toBe('Argo CD x:2, agent a:1');
  expect(describeVersion({ agent: 'a:1', operator: 'o:3' })).toBe('argocd-operator o:3, agent a:1');
  expect(describeVersion({ agent: 'a:1' })).toBe('agent a:1');
});
