import { createPrivateKey, X509Certificate } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import {
  managedCertificates,
  putIssuers,
  renewByHand,
  startCertManager,
  untilIssued,
} from '../../e2e/ecosystem/cert-manager.ts';
import type { Program } from '../../e2e/pair/index.ts';
import { borrowCluster, type SharedCluster } from '../../e2e/testbed/index.ts';
import { until } from '../../lib/base/testing.ts';
import { secretText } from '../../lib/pki/index.ts';
import { useHub, workNames } from '../testing/hub.ts';

// The controller of the fleet issues all certificates with an authority that cert-manager makes, and renews with a key of its
// own each time.

const hub = useHub(borrowCluster);
let certManager: Program | undefined;
afterEach(() => certManager?.stop('SIGKILL'));

const textIn = async (name: string, key: string) => secretText((await hub.secret(name))?.data, key) ?? '';

describe("cert-manager's own controller", { tags: 'cert-manager' }, () => {
  test('issues the fleet’s authority, and a renewal of it is a rotation', async () => {
    const { ns, client } = hub;
    certManager = await startCertManager(hub.cluster as SharedCluster);
    await putIssuers(client, ns);
    const key = { namespace: ns, name: 'argocd-agent-ca' };
    await client.create(managedCertificates, {
      metadata: key,
      spec: {
        secretName: 'argocd-agent-ca',
        isCA: true,
        commonName: 'argocd-agent-ca',
        issuerRef: { name: 'own' },
        privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' },
      },
    });
    await untilIssued(client, key);
    await hub.enroll({}, { clientCertificate: 'Generated' });
    const report = () =>
      Promise.all([hub.a, hub.b].flatMap((one) => workNames.map((name) => hub.fixture.reportWork(one, name))));
    await report();
    await hub.idle();
    const authority = async () => new X509Certificate(await textIn('argocd-agent-ca', 'tls.crt'));
    const server = async () => new X509Certificate(await textIn('argocd-agent-principal-tls', 'tls.crt'));
    const first = await authority();
    expect((await server()).verify(first.publicKey)).toBe(true);
    const own = createPrivateKey(await textIn('argocd-agent-principal-tls', 'tls.key'));
    expect((await server()).checkPrivateKey(own)).toBe(true);

    await renewByHand(client, key);
    const second = await authority();
    expect(second.publicKey.equals(first.publicKey)).toBe(false);
    await hub.fixture.conditionIs([ns, 'fleet'], 'CACertificateReady', 'True', /in use until clusters/);
    expect((await server()).verify(first.publicKey)).toBe(true);
    await until(async () => {
      await report();
      expect((await server()).verify(second.publicKey)).toBe(true);
    });
  });
});
