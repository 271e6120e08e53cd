import { randomBytes } from 'node:crypto';
import { wellKnown } from '../../lib/base/index.ts';
import { type Secret, secrets } from '../../lib/kube/index.ts';
import {
  type CertificateRequest,
  fingerprintsOf,
  inspectCertificate,
  issueCertificate,
  type KeyCertificate,
  reasonToReissue,
  renewalTime,
  secretText,
  tlsSecretData,
} from '../../lib/pki/index.ts';
import {
  addOnName,
  agentSecretName,
  agentSubject,
  clusterClientName,
  deliveredSecretName,
  labelValue,
} from '../hub/index.ts';
import { authorityInUse, keyCertificateOf } from '../trust/index.ts';
import type { ClusterDeps, Enrolment } from './cluster-deps.ts';
import { ownerMetadata } from './owner-metadata.ts';

type SecretDeps = Pick<ClusterDeps, 'applier' | 'caches' | 'logger' | 'events'>;

/** The generated values that are delivered to one cluster. */
export interface DeliveredSecrets {
  /** Undefined when the cluster requests its certificate itself. */
  readonly clientCertificate: KeyCertificate | undefined;
  /** Fingerprint of the issuer of all certificates of the cluster; undefined while another one's may be in use. */
  readonly authority: string | undefined;
  readonly redisPassword: string;
  readonly serverSecretKey: string;
}

/** Address of the resource proxy for Argo CD on the hub, as in argocd-agent. */
const resourceProxy = 'argocd-agent-resource-proxy:9090';

/** Issues or renews the agent's client certificate, and generates the other values once per cluster. */
export async function ensureDelivered(
  deps: SecretDeps,
  enrolment: Enrolment,
): Promise<{ delivered: DeliveredSecrets; renewAt: number }> {
  const { cluster, foundation, signal } = enrolment;
  const key = { namespace: foundation.namespace, name: deliveredSecretName(cluster) };
  const live = await deps.applier.current(secrets, key, deps.caches.ownSecrets.get(key), signal);
  const { clientCertificate, authority, renewAt } = await agentCertificate(deps, enrolment, live);
  const redisPassword = secretText(live?.data, 'redis-password') ?? randomBytes(24).toString('base64url');
  const serverSecretKey = secretText(live?.data, 'server.secretkey') ?? randomBytes(32).toString('base64');
  const desired: Secret = {
    metadata: { ...key, ...ownerMetadata(foundation.key, cluster, 'agent-credentials') },
    type: 'Opaque',
    data: {
      ...(clientCertificate && tlsSecretData(clientCertificate)),
      'redis-password': encode(redisPassword),
      'server.secretkey': encode(serverSecretKey),
    },
  };
  await deps.applier.change(secrets, desired, live, { exact: ['data'], signal });
  return { delivered: { clientCertificate, authority, redisPassword, serverSecretKey }, renewAt };
}

/**
 * Registers a cluster with the hub's Argo CD: writes its client certificate and its cluster Secret.
 * @returns when the certificate must be renewed, in milliseconds since the epoch
 */
export async function ensureImported(deps: SecretDeps, enrolment: Enrolment): Promise<{ renewAt: number }> {
  const { cluster, foundation, signal } = enrolment;
  const { applier, caches } = deps;
  const { namespace } = foundation;
  const key = { namespace, name: clusterClientName(cluster) };
  const live = await applier.current(secrets, key, caches.ownSecrets.get(key), signal);
  const request: CertificateRequest = { commonName: cluster, usages: ['client'] };
  const { certificate, renewAt } = await certificateFor(deps, enrolment, live, request, key.name);
  const client: Secret = {
    metadata: { ...key, ...ownerMetadata(foundation.key, cluster, 'cluster-client') },
    type: 'kubernetes.io/tls',
    data: tlsSecretData(certificate),
  };
  await applier.change(secrets, client, live, { exact: ['data'], signal });
  const secret = clusterSecret(enrolment, certificate);
  const cached = caches.ownSecrets.get({ namespace, name: secret.metadata.name });
  await applier.ensure(secrets, secret, cached, { exact: ['data'], signal });
  return { renewAt };
}

/** The Argo CD cluster Secret. Argo CD on the hub shows the cluster; its application controllers skip it. */
function clusterSecret({ cluster, foundation }: Enrolment, certificate: KeyCertificate): Secret {
  const { labels, annotations } = ownerMetadata(foundation.key, cluster, 'cluster');
  return {
    metadata: {
      namespace: foundation.namespace,
      name: agentSecretName(cluster),
      labels: {
        ...labels,
        [wellKnown.secretTypeLabel]: 'cluster',
        [wellKnown.agentNameLabel]: cluster,
        'placement-name': labelValue(foundation.placement),
      },
      annotations: {
        ...annotations,
        'managed-by': 'argocd-agent',
        [wellKnown.agentModeAnnotation]: foundation.addOn.mode,
        [wellKnown.skipReconcileAnnotation]: 'true',
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
}

/** The agent's certificate, unless the cluster requests it itself, and the issuer of the one in use. */
async function agentCertificate(
  deps: SecretDeps,
  enrolment: Enrolment,
  live: Secret | undefined,
): Promise<Pick<DeliveredSecrets, 'clientCertificate' | 'authority'> & { renewAt: number }> {
  const { cluster, foundation, now } = enrolment;
  if (foundation.addOn.clientCertificate === 'CSR') {
    const addOn = deps.caches.addOns.get({ namespace: cluster, name: addOnName });
    const { authority, lookAgainAt } = authorityInUse(addOn, foundation.authority.certificate, now);
    return { clientCertificate: undefined, authority, renewAt: lookAgainAt ?? Number.POSITIVE_INFINITY };
  }
  const request: CertificateRequest = { ...agentSubject(cluster), usages: ['client'] };
  const { certificate, renewAt } = await certificateFor(deps, enrolment, live, request, deliveredSecretName(cluster));
  return {
    clientCertificate: certificate,
    authority: fingerprintsOf(foundation.authority.certificate)[0],
    renewAt,
  };
}

async function certificateFor(
  { logger, events }: SecretDeps,
  { cluster, foundation, now }: Enrolment,
  live: Secret | undefined,
  request: CertificateRequest,
  name: string,
): Promise<{ certificate: KeyCertificate; renewAt: number }> {
  // Only the hub checks these certificates, and it trusts a new authority before that issues. So no cluster is waited for.
  const { authority } = foundation;
  const current = keyCertificateOf(live);
  const reason = reasonToReissue(current, request, authority.certificate, now);
  let certificate = current as KeyCertificate;
  if (reason !== undefined) {
    certificate = await issueCertificate({ ...request, authority, algorithm: 'p256', now });
    logger.info({ cluster, secret: name, reason }, 'issued a client certificate');
    if (current.certificate && name === deliveredSecretName(cluster)) {
      const message = `the certificate of the agent of cluster ${cluster} is renewed: ${reason}`;
      events.normal(foundation.gitOpsCluster, 'CertificateRenewed', message);
    }
  }
  const renewal = renewalTime(inspectCertificate(certificate.certificate, `Secret ${name}`));
  return { certificate, renewAt: renewal.getTime() };
}

const encode = (text: string) => Buffer.from(text).toString('base64');
