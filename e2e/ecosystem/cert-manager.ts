import { join } from 'node:path';
import { until } from '../../lib/base/testing.ts';
import { type Condition, type KubeClient, type KubeObject, resourceType } from '../../lib/kube/index.ts';
import { installCrds, readCrds } from '../hub/index.ts';
import { freePort, Program } from '../pair/index.ts';
import type { SharedCluster } from '../testbed/index.ts';

const { CERT_MANAGER_BIN: executable = '', CERT_MANAGER_SOURCE: source = '' } = process.env;

/** cert-manager.io/v1 Certificate or Issuer, loosely typed. */
export interface CertManagerObject extends KubeObject {
  spec: object;
  status?: { conditions?: Condition[]; revision?: number };
}

const kind = (name: string) =>
  resourceType<CertManagerObject>({
    group: 'cert-manager.io',
    version: 'v1',
    kind: name,
    plural: `${name.toLowerCase()}s`,
    namespaced: true,
  });

/** cert-manager.io/v1 Certificate. */
export const managedCertificates = kind('Certificate');
/** cert-manager.io/v1 Issuer. */
export const certificateIssuers = kind('Issuer');

/**
 * Starts cert-manager's own controller for a cluster, with its CRDs, without webhook and CA injector: the objects of tests are
 * complete. The caller stops it.
 */
export async function startCertManager({ client, kubeconfig }: SharedCluster): Promise<Program> {
  await installCrds(client, await readCrds(join(source, 'deploy/crds')));
  const program = new Program(
    [
      `--kubeconfig=${kubeconfig}`,
      '--leader-elect=false',
      '--v=2',
      `--metrics-listen-address=127.0.0.1:${await freePort()}`,
      `--internal-healthz-listen-address=127.0.0.1:${await freePort()}`,
    ],
    {},
    executable,
  );
  program.start();
  await program.says(/starting healthz server/);
  return program;
}

/** Issuers in a namespace: `own` signs with the certificate's own key, `fleet` with the Secret `argocd-agent-ca`. */
export async function putIssuers(client: KubeClient, namespace: string): Promise<void> {
  await client.create(certificateIssuers, { metadata: { namespace, name: 'own' }, spec: { selfSigned: {} } });
  await client.create(certificateIssuers, {
    metadata: { namespace, name: 'fleet' },
    spec: { ca: { secretName: 'argocd-agent-ca' } },
  });
}

/** Resolves when a Certificate of this name is issued for the `revision`th time. */
export async function untilIssued(
  client: KubeClient,
  key: { namespace: string; name: string },
  revision = 1,
): Promise<void> {
  await until(
    `${key.name} is issued`,
    async () => {
      const { status } = (await client.get(managedCertificates, key)) ?? {};
      const isReady = status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True');
      return isReady === true && (status?.revision ?? 0) >= revision;
    },
    { timeoutMs: 120_000 },
  );
}

/** Asks cert-manager to issue a certificate now, as `cmctl renew` does; resolves when it has. */
export async function renewByHand(client: KubeClient, key: { namespace: string; name: string }): Promise<void> {
  const { status } = (await client.get(managedCertificates, key)) as CertManagerObject;
  const issuing: Condition = {
    type: 'Issuing',
    status: 'True',
    reason: 'ManuallyTriggered',
    message: 'Certificate re-issuance manually triggered',
    lastTransitionTime: new Date().toISOString().replace(/\.\d+/, ''),
  };
  const conditions = [...(status?.conditions ?? []), issuing];
  await client.mergePatch(managedCertificates, key, { status: { conditions } }, { subresource: 'status' });
  await untilIssued(client, key, (status?.revision ?? 0) + 1);
}
