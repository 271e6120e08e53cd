import { createPrivateKey, X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSigningRequest } from '../../e2e/ocm/signing-request.ts';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import {
  type CertificateSigningRequest,
  certificateSigningRequests,
  KubeClient,
  secrets,
} from '../../lib/kube/index.ts';
import { createAuthority, type KeyAlgorithm, type KeyCertificate, pkcs8Pem, secretText } from '../../lib/pki/index.ts';
import { agentSubject } from '../hub/index.ts';
import { useHub, workNames } from '../testing/hub.ts';

// An authority that a user supplies, of every kind of key, in a Secret as cert-manager writes it.

const hub = useHub(borrowCluster);

/** A Secret of type kubernetes.io/tls with `ca.crt` too, written over the one that is there. */
function supply({ certificate, key }: KeyCertificate) {
  const encode = (text: string) => Buffer.from(text).toString('base64');
  return hub.fixture.put(secrets, {
    metadata: {
      namespace: hub.ns,
      name: 'argocd-agent-ca',
      labels: { 'controller.cert-manager.io/fao': 'true' },
      annotations: { 'cert-manager.io/certificate-name': 'argocd-agent-ca' },
    },
    type: 'kubernetes.io/tls',
    data: { 'ca.crt': encode(certificate), 'tls.crt': encode(certificate), 'tls.key': encode(key) },
  });
}

const issued = async (name: string) => {
  const data = (await hub.secret(name))?.data;
  return { certificate: secretText(data, 'tls.crt') ?? '', key: secretText(data, 'tls.key') ?? '' };
};

/** Whether a certificate belongs to its key, and the authority's key has signed it. */
function expectIssuedBy(authority: KeyCertificate, { certificate, key }: KeyCertificate): void {
  const [leaf, issuer] = [new X509Certificate(certificate), new X509Certificate(authority.certificate)];
  expect(leaf.verify(issuer.publicKey)).toBe(true);
  expect(leaf.checkIssued(issuer)).toBe(true);
  expect(leaf.checkPrivateKey(createPrivateKey(key))).toBe(true);
}

async function requested(cluster: string): Promise<KeyCertificate> {
  const user = `system:open-cluster-management:${cluster}:agent`;
  const groups = [`system:open-cluster-management:${cluster}`, 'system:masters'];
  const client = KubeClient.fromKubeconfig(await (hub.cluster as SharedCluster).kubeconfigFor({ user, groups }));
  const { request, key } = await createSigningRequest(agentSubject(cluster));
  const { metadata } = await client.create(certificateSigningRequests, {
    metadata: {
      generateName: `addon-${cluster}-argocd-agent-addon-`,
      labels: {
        'open-cluster-management.io/cluster-name': cluster,
        'open-cluster-management.io/addon-name': 'argocd-agent-addon',
      },
    } as unknown as CertificateSigningRequest['metadata'],
    spec: {
      request: Buffer.from(request).toString('base64'),
      signerName: 'open-cluster-management.io/argocd-agent-addon',
      usages: ['digital signature', 'key encipherment', 'client auth'],
    },
  });
  await client.close();
  const signed = await until('the certificate', async () => {
    const { name } = metadata;
    return (await hub.client.get(certificateSigningRequests, { name }))?.status?.certificate;
  });
  return { certificate: Buffer.from(signed, 'base64').toString(), key };
}

async function supplied(algorithm: KeyAlgorithm, form: 'own' | 'PKCS#8', name = 'own'): Promise<KeyCertificate> {
  const made = await createAuthority({ commonName: name, algorithm });
  const authority = form === 'own' ? made : { ...made, key: pkcs8Pem(made.key) };
  await supply(authority);
  return authority;
}

test.each([
  ['rsa3072', 'PKCS#8', 'PRIVATE KEY'],
  ['p256', 'own', 'EC PRIVATE KEY'],
  ['p256', 'PKCS#8', 'PRIVATE KEY'],
  ['p384', 'own', 'EC PRIVATE KEY'],
  ['p384', 'PKCS#8', 'PRIVATE KEY'],
  ['p521', 'own', 'EC PRIVATE KEY'],
  ['ed25519', 'PKCS#8', 'PRIVATE KEY'],
] as const)(
  'an authority with a key %s (%s, %s) issues the certificates of the fleet',
  async (algorithm, form, label) => {
    const authority = await supplied(algorithm, form);
    expect(authority.key).toContain(`-----BEGIN ${label}-----`);
    const before = (await hub.secret('argocd-agent-ca'))?.metadata.resourceVersion;
    await hub.enroll();
    for (const name of ['argocd-agent-principal-tls', 'argocd-agent-resource-proxy-tls']) {
      expectIssuedBy(authority, await issued(name));
    }
    expectIssuedBy(authority, await requested(hub.a));
    expect((await hub.secret('argocd-agent-ca'))?.metadata.resourceVersion).toBe(before);
  },
);

test('renewed in place with a key of another kind, it takes over when all clusters trust it', async () => {
  const first = await supplied('p256', 'own', 'first');
  await hub.enroll({}, { clientCertificate: 'Generated' });
  const report = () =>
    Promise.all([hub.a, hub.b].flatMap((one) => workNames.map((name) => hub.fixture.reportWork(one, name))));
  await report();
  await hub.idle();
  expectIssuedBy(first, await issued('argocd-agent-principal-tls'));
  const second = await supplied('p384', 'PKCS#8', 'second');
  await hub.fixture.conditionIs([hub.ns, 'fleet'], 'CACertificateReady', 'True', /in use until clusters/);
  expectIssuedBy(first, await issued('argocd-agent-principal-tls'));
  await until(async () => {
    await report();
    expectIssuedBy(second, await issued('argocd-agent-principal-tls'));
  });
});
