import { describe, expect, it } from 'vitest';
import type { ApiRequest } from './audit.ts';
import {
  allows,
  comesLate,
  describeGrant,
  type Grant,
  grantsOf,
  impliedBy,
  onlyWidely,
  superfluous,
} from './grants.ts';

const asked = (verb: string, resource: string, where: Partial<ApiRequest> = {}): ApiRequest => ({
  user: 'system:serviceaccount:a:b',
  verb,
  group: '',
  resource,
  namespace: 'argocd',
  name: '',
  allowed: true,
  at: 0,
  ...where,
});
const texts = (grants: Grant[]) => grants.map(describeGrant);

describe('grants', () => {
  it('are one per group, resource and verb', () => {
    const rules = [{ apiGroups: ['', 'apps'], resources: ['a', 'a/status'], verbs: ['get', 'list'] }];
    expect(texts(grantsOf('ClusterRole x', '', rules))).toEqual([
      'ClusterRole x: get a',
      'ClusterRole x: list a',
      'ClusterRole x: get a/status',
      'ClusterRole x: list a/status',
      'ClusterRole x: get a.apps',
      'ClusterRole x: list a.apps',
      'ClusterRole x: get a/status.apps',
      'ClusterRole x: list a/status.apps',
    ]);
  });

  it('reach as far as their binding and their names', () => {
    const [grant] = grantsOf('Role x', 'argocd', [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }]);
    const [named] = grantsOf('ClusterRole x', '', [
      { apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['one'] },
    ]);
    if (!grant || !named) {
      throw new Error('no grants');
    }
    expect(allows(grant, asked('get', 'secrets'))).toBe(true);
    expect(allows(grant, asked('get', 'secrets', { namespace: '' }))).toBe(false);
    expect(allows(grant, asked('get', 'secrets/status'))).toBe(false);
    expect(allows(grant, asked('get', 'secrets', { group: 'apps' }))).toBe(false);
    expect(allows(named, asked('get', 'secrets', { name: 'one' }))).toBe(true);
    expect(allows(named, asked('get', 'secrets', { name: 'two' }))).toBe(false);
  });

  it('are superfluous when nobody used them, or when another one allows the same', () => {
    const grants = [
      ...grantsOf('ClusterRole wide', '', [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list'] }]),
      ...grantsOf('Role narrow', 'argocd', [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'delete'] }]),
    ];
    expect(texts(superfluous(grants, [asked('get', 'secrets'), asked('delete', 'secrets')]))).toEqual([
      'ClusterRole wide: get secrets',
      'ClusterRole wide: list secrets',
      'Role narrow: get secrets in argocd',
    ]);
    const elsewhere = asked('get', 'secrets', { namespace: 'other' });
    expect(texts(superfluous(grants, [elsewhere, asked('delete', 'secrets')]))).toEqual([
      'ClusterRole wide: list secrets',
      'Role narrow: get secrets in argocd',
    ]);
  });

  it('for signers are used by whoever approves and signs', () => {
    const group = 'certificates.k8s.io';
    const grants = grantsOf('ClusterRole x', '', [
      { apiGroups: [group], resources: ['certificatesigningrequests/approval'], verbs: ['update'] },
      { apiGroups: [group], resources: ['signers'], resourceNames: ['a/b'], verbs: ['approve', 'sign'] },
    ]);
    const approval = asked('update', 'certificatesigningrequests/approval', { group, namespace: '', name: 'csr-1' });
    const unused = (requests: ApiRequest[]) =>
      texts(superfluous(grants, [...requests, ...impliedBy(requests, grants)])).map((text) => text.split(' ')[2]);
    expect(unused([approval])).toEqual(['sign']);
    expect(unused([{ ...approval, allowed: false }])).toEqual(['approve', 'sign']);
    expect(unused([])).toEqual(['update', 'approve', 'sign']);
  });

  it('to everything make no other superfluous, and are told what they are needed for', () => {
    const grants = [
      ...grantsOf('ClusterRole all', '', [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'patch', 'delete'] }]),
      ...grantsOf('Role own', 'argocd', [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list'] }]),
    ];
    const wide = [
      asked('get', 'secrets', { namespace: 'other' }),
      asked('patch', 'deployments/scale', { group: 'apps' }),
    ];
    const requests = [asked('get', 'secrets'), ...wide];
    expect(texts(superfluous(grants, requests))).toEqual([
      'ClusterRole all: delete *.*',
      'Role own: list secrets in argocd',
    ]);
    expect(onlyWidely(grants, requests)).toEqual(wide);
  });
});

it('a request that is refused after its rights were taken away is late, and no other', () => {
  const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }];
  const given = grantsOf('Role x', 'argocd', rules).map((grant) => ({
    ...grant,
    by: ['roles argocd/x', 'rolebindings argocd/x'],
  }));
  const taken = new Map([['rolebindings argocd/x', 100]]);
  const refused = (verb: string, at: number) => asked(verb, 'secrets', { allowed: false, at });
  expect(comesLate(refused('get', 100), given, taken)).toBe(true);
  expect(comesLate(refused('get', 99), given, taken)).toBe(false);
  expect(comesLate(refused('delete', 100), given, taken)).toBe(false);
  expect(comesLate(refused('get', 100), given, new Map())).toBe(false);
});
