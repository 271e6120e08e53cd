import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { type ClientInfo, GoExpression, mtlsMethod } from '../../lib/auth/index.ts';
import { createAuthority, issueCertificate } from '../../lib/pki/index.ts';
import { issueSvid } from '../../lib/spiffe/testing.ts';
import { adminAccess, parseAdminAuth } from './admin-access.ts';

let certificates: Record<'admin' | 'user' | 'agent' | 'workload', X509Certificate>;
beforeAll(async () => {
  const authority = await createAuthority({ commonName: 'ca' });
  const issue = async (commonName: string, ...organizations: string[]) =>
    new X509Certificate(
      (await issueCertificate({ authority, commonName, organizations, usages: ['client'] })).certificate,
    );
  certificates = {
    admin: await issue('ha-admin', 'Hub'),
    user: await issue('somebody'),
    agent: await issue('ha-admin-1'),
    workload: new X509Certificate(
      (await issueSvid(authority, 'spiffe://cluster.local/ns/argocd/sa/ha-admin')).certificate,
    ),
  };
});

const peerOf = (certificate: X509Certificate | undefined): ClientInfo => ({
  address: '127.0.0.1:1',
  encrypted: true,
  ...(certificate && { certificate }),
  header: () => undefined,
});
const judge = (auth: string, certificate: X509Certificate | undefined, isOwnAuthority = false) =>
  adminAccess({
    auth: parseAdminAuth(auth),
    method: mtlsMethod({ source: 'subject', pattern: new GoExpression('CN=([^,]+)') }),
    isAgent: isOwnAuthority ? undefined : (name) => name === 'ha-admin-1',
  })(peerOf(certificate));

test('a subject, as Go prints it, or a URI that matches may', () => {
  expect(judge('mtls:subject:^CN=ha-admin,O=Hub$', certificates.admin)).toBe('CN=ha-admin,O=Hub');
  expect(judge('mtls:uri:^spiffe://cluster\\.local/', certificates.workload)).toBe(
    'spiffe://cluster.local/ns/argocd/sa/ha-admin',
  );
});

test('anybody else may not, and is told why as argocd-agent tells it', () => {
  const refusal = (code: number, details: string) => expect.objectContaining({ code, details });
  expect(() => judge('', certificates.admin)).toThrow(
    refusal(7, 'ha-admin-auth not configured; all admin calls are denied'),
  );
  expect(() => judge('mtls:subject:CN=ha-admin', certificates.user)).toThrow(
    refusal(7, 'client identity "CN=somebody" does not match ha-admin-auth pattern'),
  );
  expect(() => judge('mtls:uri:other', certificates.workload)).toThrow(
    refusal(7, 'no URI SAN matched ha-admin-auth pattern'),
  );
  expect(() => judge('mtls:uri:.', certificates.admin)).toThrow(refusal(16, 'no URI SANs in client certificate'));
  expect(() => judge('mtls:subject:.', undefined)).toThrow(refusal(16, 'no verified client certificate'));
});

test('an agent may not, though its name matches, unless its certificate is of another authority', () => {
  expect(() => judge('mtls:subject:CN=ha-admin', certificates.agent)).toThrow(
    'client identity "CN=ha-admin-1" is agent ha-admin-1 of this hub, which ha-admin-auth never allows',
  );
  expect(judge('mtls:subject:CN=ha-admin', certificates.agent, true)).toBe('CN=ha-admin-1');
});

test.each([
  ['subject:CN=ha-admin', "ha-admin-auth must start with 'mtls:', got: subject:CN=ha-admin"],
  [
    'mtls:CN=ha-admin',
    "ha-admin-auth must specify source: 'mtls:subject:<regex>' or 'mtls:uri:<regex>', got: mtls:CN=ha-admin",
  ],
  ['mtls:subject:', 'ha-admin-auth regex pattern cannot be empty'],
  ['mtls:uri:[', 'ha-admin-auth regex compile error: '],
])('%s is refused', (text, reason) => {
  expect(() => parseAdminAuth(text)).toThrow(`--ha-admin-auth (ARGOCD_PRINCIPAL_HA_ADMIN_AUTH): ${reason}`);
});
