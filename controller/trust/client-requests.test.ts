import { beforeAll, expect, test } from 'vitest';
import { createSigningRequest, type RequestedSubject } from '../../e2e/ocm/signing-request.ts';
import type { CertificateSigningRequest } from '../../lib/kube/index.ts';
import { readSigningRequest, type SigningRequest } from '../../lib/pki/index.ts';
import { agentSubject } from '../hub/index.ts';
import { isApproved, isDone, reasonToDeny } from './client-requests.ts';

const now = new Date('2030-01-01T12:00:00Z');
const san = 'argocd-agent-addon.addon.open-cluster-management.io';
const usages = ['digital signature', 'key encipherment', 'client auth'];
const cluster = 'open-cluster-management.io/cluster-name';
const addOn = 'open-cluster-management.io/addon-name';
const labels: Record<string, string> = { [cluster]: 'c1', [addOn]: 'argocd-agent-addon' };

const csr = (spec: object = {}, metadata: object = {}): CertificateSigningRequest => ({
  metadata: { name: 'addon-c1', labels, creationTimestamp: '2030-01-01T11:59:00Z', ...metadata },
  spec: {
    request: '',
    signerName: 'open-cluster-management.io/argocd-agent-addon',
    username: 'system:open-cluster-management:c1:agent',
    groups: ['system:open-cluster-management:c1', 'system:open-cluster-management:managed-clusters'],
    usages,
    ...spec,
  },
});
const ask = async (subject: Partial<RequestedSubject> = {}): Promise<SigningRequest> => {
  const { request } = await createSigningRequest({ ...agentSubject('c1'), dnsNames: [san], ...subject });
  return readSigningRequest(request);
};
let good: SigningRequest;
beforeAll(async () => {
  good = await ask();
});

test('the requests of OCM’s agents may be issued', async () => {
  expect(reasonToDeny(csr(), good, now)).toBeUndefined();
  expect(reasonToDeny(csr({ usages: ['client auth'] }), await ask({ dnsNames: [] }), now)).toBeUndefined();
});

test.each<[string, object, object, RegExp]>([
  ['another cluster', { username: 'system:open-cluster-management:c2:agent' }, {}, /made by .*c2:agent.* not by .* c1/],
  ['a cluster whose name begins alike', { username: 'system:open-cluster-management:c10:agent' }, {}, /not by .* c1/],
  ['an add-on’s own user', { username: 'system:open-cluster-management:c1:addon:x' }, {}, /not by .* c1/],
  ['a user without the group', { groups: ['system:open-cluster-management:c2'] }, {}, /not by the registration agent/],
  ['an administrator', { username: 'kubernetes-admin', groups: ['system:masters'] }, {}, /kubernetes-admin/],
  ['further usages', { usages: [...usages, 'server auth'] }, {}, /more than client authentication: "server auth"/],
  ['a certificate for signing', { usages: [...usages, 'cert sign'] }, {}, /cert sign/],
  ['no client certificate', { usages: ['digital signature'] }, {}, /lack client auth/],
  ['no cluster', {}, { labels: { [addOn]: 'argocd-agent-addon' } }, /lacks the label .*cluster-name/],
  ['another add-on', {}, { labels: { ...labels, [addOn]: 'other' } }, /addon-name is "other"/],
  ['long ago', {}, { creationTimestamp: '2030-01-01T10:59:00Z' }, /older than an hour/],
])('a request of %s is denied', (_, spec, metadata, why) => {
  expect(reasonToDeny(csr(spec, metadata), good, now)).toMatch(why);
});

test.each<[string, Partial<RequestedSubject>, RegExp]>([
  ['another common name', { commonName: 'c2' }, /common name is "c2", not "system:.*cluster:c1:/],
  ['the subject of another cluster', agentSubject('c2'), /common name is ".*cluster:c2:/],
  ['a further organization', { organizations: [...agentSubject('c1').organizations, 'system:masters'] }, /masters/],
  [
    'one organization twice',
    { organizations: Array(2).fill(agentSubject('c1').organizations[0]) },
    /organizations are/,
  ],
  ['no organization', { organizations: [] }, /organizations are "", not/],
  ['another attribute', { others: [{ OU: ['x'] }] }, /more than it may: "OU"/],
  ['a second common name', { others: [{ CN: ['c2'] }] }, /common name is/],
  ['another host name', { dnsNames: [san, 'principal.example.com'] }, /other names: "principal\.example\.com"/],
  ['an address', { ipAddresses: ['10.0.0.1'] }, /other names: "ip 10\.0\.0\.1"/],
])('a request with %s is denied', async (_, subject, why) => {
  expect(reasonToDeny(csr(), await ask(subject), now)).toMatch(why);
});

test('a reason is short, whatever is asked for', async () => {
  const dnsNames = Array.from({ length: 150 }, (_, at) => `${'x'.repeat(50)}-${at}.example.com`);
  const request = await ask({ dnsNames });
  expect(reasonToDeny(csr(), request, now)?.length).toBeLessThan(300);
  expect(reasonToDeny(csr({ username: `x${'y'.repeat(10_000)}` }), request, now)?.length).toBeLessThan(400);
});

test('a request that is too long is refused', async () => {
  const { request } = await createSigningRequest(agentSubject('c1'));
  const long = `${request}${'\n'.repeat(20_000)}`;
  await expect(readSigningRequest(long)).rejects.toThrow(/has 20\d\d\d characters; 16384 are accepted/);
});

test('a weak key is denied', () => {
  const weakness = 'an RSA key of 1024 bits is too short';
  expect(reasonToDeny(csr(), { ...good, weakness }, now)).toBe(weakness);
});

test('a request is done when it has a certificate, was denied or failed', () => {
  const status = (type: string) => ({ conditions: [{ type, status: 'True' }] });
  expect(isDone(csr())).toBe(false);
  expect([
    isDone({ ...csr(), status: status('Approved') }),
    isApproved({ ...csr(), status: status('Approved') }),
  ]).toEqual([false, true]);
  for (const type of ['Denied', 'Failed']) {
    expect(isDone({ ...csr(), status: status(type) })).toBe(true);
  }
  expect(isDone({ ...csr(), status: { ...status('Approved'), certificate: 'x' } })).toBe(true);
});
