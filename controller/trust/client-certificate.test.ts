import { expect, test } from 'vitest';
import type { Secret } from '../../lib/kube/index.ts';
import { clientSecretName, keys, type ManagedClusterAddOn, type ManifestWork, signerName } from '../hub/index.ts';
import type { AddOnSettings } from '../spec/index.ts';
import { planClientCertificate } from './client-certificate.ts';

const now = new Date('2030-01-02T00:00:00Z');
const issued = (until: string) => ({
  [keys.issued]: JSON.stringify({ authority: 'A', at: '2030-01-01T00:00:00Z', until }),
});
const own = { [keys.owner]: 'argocd/fleet' };
const valid = { ...own, ...issued('2030-01-03T00:00:00Z') };
const expired = { ...own, ...issued('2030-01-01T12:00:00Z') };
const withKey: Secret = { metadata: { name: 's' }, data: { 'tls.key': 'aw==' } };
const withoutKey: Secret = { metadata: { name: 's' }, data: { 'redis-password': 'eA==' } };
const works: ManifestWork[] = [
  {
    metadata: { name: 'w' },
    spec: { workload: { manifests: [{ kind: 'Secret', metadata: { name: clientSecretName } }] } },
  },
];

function plan(
  clientCertificate: AddOnSettings['clientCertificate'],
  from: { annotations?: Record<string, string>; secret?: Secret; works?: ManifestWork[]; isRegistered?: boolean },
): string {
  const status = from.isRegistered ? { registrations: [{ signerName }] } : {};
  const addOn: ManagedClusterAddOn | undefined = from.annotations && {
    metadata: { name: 'x', annotations: from.annotations },
    status,
  };
  const caches = { addOns: { get: () => addOn }, works: { list: () => from.works ?? [] } };
  const enrolment = { cluster: 'c', foundation: { addOn: { clientCertificate } }, now };
  const { isDelivered, isRequested } = planClientCertificate(caches as never, enrolment as never, from.secret);
  return [isDelivered && 'delivered', isRequested && 'requested'].filter(Boolean).join(' and ');
}

test.each([
  ['a new cluster', {}, 'requested'],
  ['a cluster whose Secret was made without a key', { secret: withoutKey, annotations: own }, 'requested'],
  ['a cluster with a key', { secret: withKey, annotations: own }, 'delivered'],
  ['a cluster with a key in its works only', { works, annotations: own }, 'delivered'],
  ['a cluster with a key, which requested a certificate once', { secret: withKey, annotations: valid }, 'delivered'],
  ['a cluster of argocd-pull-integration', { annotations: {}, isRegistered: true }, 'delivered'],
  ['an add-on that a user made', { annotations: {} }, 'requested'],
  ['an enrolled cluster', { annotations: own, isRegistered: true }, 'requested'],
  ['an enrolled cluster without owner', { annotations: {}, isRegistered: true, secret: withoutKey }, 'requested'],
])('without a setting: %s', (_, from, expected) => {
  expect(plan(undefined, from)).toBe(expected);
  expect(plan('Generated', from)).toBe('delivered');
});

test.each([
  ['without a key', { annotations: own }, 'requested'],
  ['with a key', { secret: withKey, annotations: own }, 'delivered and requested'],
  ['with a key in its works only', { works, annotations: own }, 'delivered and requested'],
  ['with a key and an expired certificate', { secret: withKey, annotations: expired }, 'delivered and requested'],
  ['with a key and a certificate of its own', { secret: withKey, works, annotations: valid }, 'requested'],
])('with CSR: a cluster %s', (_, from, expected) => {
  expect(plan('CSR', from)).toBe(expected);
});
