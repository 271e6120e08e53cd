import { randomBytes } from 'node:crypto';
import { type Secret, secrets } from '../../lib/kube/index.ts';
import {
  type CertificateRequest,
  fingerprintsOf,
  inspectCertificate,
  issueCertificate,
  type KeyCertificate,
  reasonToReissue,
  renewalTime,
  textOf,
  tlsSecretData,
} from '../../lib/pki/index.ts';
import {
  addOnName,
  agentSubject,
  clusterClientName,
  clusterSecretName,
  deliveredSecretName,
  keys,
  labelValue,
} from '../hub/names.ts';
import { keyCertificateOf } from '../trust/hub-certificates.ts';
import { authorityInUse } from '../trust/issued-certificate.ts';
import type { ClusterContext } from './cluster-context.ts';

/** What was generated for one cluster and is delivered to it. */
export interface DeliveredSecrets {
  /** Undefined when the cluster asks for its certificate itself. */
  readonly clientCertificate: KeyCertificate | undefined;
  /** Fingerprint of the authority that all certificates of the cluster are of; undefined while another's may be in use. */
  readonly authority: string | undefined;
  readonly redisPassword: string;
  readonly serverSecretKey: string;
}

/** How Argo CD on the hub reaches the resource proxy: argocd-agent's own default. */
const resourceProxy = 'argocd-agent-resource-proxy:9090';

/** Makes or renews the agent's client certificate and what else is generated once per cluster. */
export async function ensureDelivered(context: ClusterContext): Promise<DeliveredSecrets> {
  const { cluster } = context;
  const name = deliveredSecretName(cluster);
  const cached = context.caches.ownSecrets.get({ namespace: context.foundation.namespace, name });
  const live = await context.applier.current(
    secrets,
    { namespace: context.foundation.namespace, name },
    cached,
    context.signal,
  );
  const { certificate, authority } = await clientCertificate(context, live, name);
  const redisPassword = textOf(live?.data, 'redis-password') ?? randomBytes(24).toString('base64url');
  const serverSecretKey = textOf(live?.data, 'server.secretkey') ?? randomBytes(32).toString('base64');
  const encode = (text: string) => Buffer.from(text).toString('base64');
  const desired: Secret = {
    metadata: metadataOf(context, name, 'agent-credentials'),
    type: 'Opaque',
    data: {
      ...(certificate && tlsSecretData(certificate)),
      'redis-password': encode(redisPassword),
      'server.secretkey': encode(serverSecretKey),
    },
  };
  await context.applier.change(secrets, desired, live, { exact: ['data'], signal: context.signal });
  return { clientCertificate: certificate, authority, redisPassword, serverSecretKey };
}

/** Makes the cluster known to the hub's Argo CD: its client certificate and its cluster Secret. */
export async function ensureImported(context: ClusterContext): Promise<void> {
  const { cluster, applier, caches, foundation, signal } = context;
  const { namespace } = foundation;
  const name = clusterClientName(cluster);
  const cached = caches.ownSecrets.get({ namespace, name });
  const live = await applier.current(secrets, { namespace, name }, cached, signal);
  const certificate = await certificateFor(context, live, { commonName: cluster, usages: ['client'] }, name);
  const client: Secret = {
    metadata: metadataOf(context, name, 'cluster-client'),
    type: 'kubernetes.io/tls',
    data: tlsSecretData(certificate),
  };
  await applier.change(secrets, client, live, { exact: ['data'], signal });
  const encode = (text: string) => Buffer.from(text).toString('base64');
  const metadata = metadataOf(context, clusterSecretName(cluster), 'cluster');
  const secret: Secret = {
    metadata: {
      ...metadata,
      labels: {
        ...metadata.labels,
        [keys.secretType]: 'cluster',
        [keys.agentName]: cluster,
        'placement-name': labelValue(foundation.placement),
      },
      // Argo CD on the hub shows the cluster, its application controller (if there is one) leaves it alone.
      annotations: {
        ...metadata.annotations,
        'managed-by': 'argocd-agent',
        [keys.agentMode]: foundation.addOn.mode,
        'argocd.argoproj.io/skip-reconcile': 'true',
      },
    },
    type: 'Opaque',
    data: {
      name: encode(cluster),
      server: encode(`https://${resourceProxy}?agentName=${cluster}`),
      config: encode(
        JSON.stringify({
          tlsClientConfig: {
            insecure: false,
            certData: encode(certificate.certificate),
            keyData: encode(certificate.key),
            caData: encode(foundation.authorities),
          },
        }),
      ),
    },
  };
  await applier.ensure(secrets, secret, caches.ownSecrets.get(secret.metadata as { namespace: string; name: string }), {
    exact: ['data'],
    signal,
  });
}

/** The agent's certificate, unless the cluster asks for it itself, and the authority that the agent's is of. */
async function clientCertificate(
  context: ClusterContext,
  live: Secret | undefined,
  name: string,
): Promise<{ certificate: KeyCertificate | undefined; authority: string | undefined }> {
  const { cluster, foundation, caches, now } = context;
  if (foundation.addOn.clientCertificate === 'CSR') {
    const addOn = caches.addOns.get({ namespace: cluster, name: addOnName });
    const { authority, lookAgainAt } = authorityInUse(addOn, foundation.authority.certificate, now);
    context.renewAt = Math.min(context.renewAt, lookAgainAt ?? Number.POSITIVE_INFINITY);
    return { certificate: undefined, authority };
  }
  const certificate = await certificateFor(context, live, { ...agentSubject(cluster), usages: ['client'] }, name);
  return { certificate, authority: fingerprintsOf(foundation.authority.certificate)[0] };
}

async function certificateFor(
  context: ClusterContext,
  live: Secret | undefined,
  request: CertificateRequest,
  name: string,
): Promise<KeyCertificate> {
  // Only the hub checks these, and it trusts a new authority before anything comes from it: no need to wait for anybody.
  const { authority } = context.foundation;
  const current = keyCertificateOf(live);
  const reason = reasonToReissue(current, request, authority.certificate, context.now);
  let certificate = current as KeyCertificate;
  if (reason !== undefined) {
    certificate = await issueCertificate({ ...request, authority, algorithm: 'p256', now: context.now });
    context.logger.info({ cluster: context.cluster, secret: name, reason }, 'issued a client certificate');
    if (current.certificate && name === deliveredSecretName(context.cluster)) {
      const message = `the certificate of the agent of cluster ${context.cluster} is renewed: ${reason}`;
      context.events?.normal(context.foundation.gitOpsCluster, 'CertificateRenewed', message);
    }
  }
  const renewal = renewalTime(inspectCertificate(certificate.certificate, `Secret ${name}`));
  context.renewAt = Math.min(context.renewAt, renewal.getTime());
  return certificate;
}

function metadataOf(context: ClusterContext, name: string, component: string) {
  const base = context.ownerMetadata(component);
  return { namespace: context.foundation.namespace, name, ...base };
}
