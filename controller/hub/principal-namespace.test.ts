import { expect, test } from 'vitest';
import { finalizer, keys } from './names.ts';
import { principalNamespaceOf } from './principal-namespace.ts';

const namespaces = { own: ['argocd', 'team-b'], shared: 'argocd' };
const none = { hasAddOns: () => false, hasSecretsIn: () => false };
const of = (namespace: string, metadata: object = {}) => ({ metadata: { namespace, name: 'fleet', ...metadata } });
const enrolled = { finalizers: [finalizer] };
const recorded = (principal: string) => ({ annotations: { [keys.principalNamespace]: principal } });

test("a new GitOpsCluster has the principal of its own namespace, if there is one, else Argo CD's", () => {
  expect(principalNamespaceOf(of('team-b'), namespaces, none)).toBe('team-b');
  expect(principalNamespaceOf(of('argocd'), namespaces, none)).toBe('argocd');
  expect(principalNamespaceOf(of('team-a'), namespaces, none)).toBe('argocd');
  expect(principalNamespaceOf(of('team-a'), { own: [], shared: 'argocd' }, none)).toBe('team-a');
  expect(principalNamespaceOf(of('team-a'), { own: ['team-b'], shared: undefined }, none)).toBe('team-a');
});

test('in the shared namespace the Secrets of the clusters are not looked through', () => {
  const made = { ...none, hasSecretsIn: () => expect.unreachable() };
  expect(principalNamespaceOf(of('argocd', enrolled), namespaces, made)).toBe('argocd');
});

test('one that has clusters keeps its principal', () => {
  expect(principalNamespaceOf(of('team-a', enrolled), namespaces, none)).toBe('team-a');
  expect(principalNamespaceOf(of('team-a'), namespaces, { ...none, hasAddOns: () => true })).toBe('team-a');
  for (const own of [namespaces.own, [...namespaces.own, 'team-a'], []]) {
    const guest = of('team-a', { ...enrolled, ...recorded('argocd') });
    expect(principalNamespaceOf(guest, { own, shared: 'argocd' }, none)).toBe('argocd');
    const made = { hasAddOns: () => true, hasSecretsIn: (namespace: string) => namespace === 'argocd' };
    expect(principalNamespaceOf(of('team-a', enrolled), { own, shared: 'argocd' }, made)).toBe('argocd');
  }
});

test('a record of its users opens no other namespace', () => {
  expect(principalNamespaceOf(of('team-a', recorded('team-b')), namespaces, none)).toBe('argocd');
  expect(principalNamespaceOf(of('team-a', { ...enrolled, ...recorded('kube-system') }), namespaces, none)).toBe(
    'team-a',
  );
});
