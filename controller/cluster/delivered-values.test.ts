import { expect, test } from 'vitest';
import type { KubeObject } from '../../lib/kube/index.ts';
import { Templates } from '../../lib/manifests/index.ts';
import type { ManifestWork } from '../hub/index.ts';
import { renderWorks } from '../render/index.ts';
import { argoCD, input } from '../testing/render-input.ts';
import { deliveredValues, deliversOrderedPods } from './delivered-values.ts';

const worksOf = (change: object = {}): ManifestWork[] =>
  renderWorks(new Templates(), { ...input, argoCD: { ...argoCD, ...change } }).map(({ spec }) => {
    return { metadata: { name: 'w' }, spec };
  });

test('the generated values of a cluster are in its works', () => {
  expect(deliveredValues(worksOf({ redisPassword: 'one', serverSecretKey: 'two' }))).toEqual({
    'redis-password': 'one',
    'server.secretkey': 'two',
  });
});

test('works that somebody damaged have no values', () => {
  const none = { 'redis-password': undefined, 'server.secretkey': undefined };
  expect(deliveredValues([])).toEqual(none);
  const secrets = [{}, { data: {} }, { data: { auth: '' } }, { data: null }].map((content) => {
    return { kind: 'Secret', metadata: { name: 'argocd-redis' }, ...content } as KubeObject;
  });
  expect(deliveredValues([{ metadata: { name: 'w' }, spec: { workload: { manifests: secrets } } }])).toEqual(none);
});

test('a StatefulSet that was delivered with ordered pods is recognised', () => {
  expect(deliversOrderedPods(worksOf({ orderedPods: true }))).toBe(true);
  expect(deliversOrderedPods(worksOf())).toBe(false);
  expect(deliversOrderedPods([])).toBe(false);
});
