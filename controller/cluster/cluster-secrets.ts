import { randomBytes } from 'node:crypto';
import { wellKnown } from '../../lib/base/index.ts';
import { type Secret, secrets } from '../../lib/kube/index.ts';
import {
  type CertificateInfo,
  type CertificateRequest,
  fingerprintsOf,
  inspectCertificate,
  issueCertificate,
  type KeyCertificate,
  PkiError,
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
  isGuest,
  keys,
  labelValue,
} from '../hub/index.ts';
import type { Foundation } from '../spec/index.ts';
import {
  authorityInUse,
  type ClientCertificatePlan,
  issuedOf,
  keyCertificateOf,
  planClientCertificate,
} from '../trust/index.ts';
import type { ClusterDeps, Enrolment } from './cluster-deps.ts';
import { type CopiedLabels, copiedLabels, copiedLabelsRecord } from './cluster-labels.ts';
import { deliveredValues } from './delivered-values.ts';
import { ownerMetadata } from './owner-metadata.ts';

type SecretDeps = Pick<ClusterDeps, 'applier' | 'caches' | 'logger' | 'events'>;

/** The generated values that are delivered to one cluster. */
export interface DeliveredSecrets {
  /** Undefined when the cluster uses a certificate that it requested itself. */
  readonly clientCertificate: KeyCertificate | undefined;
  /** Fingerprint of the issuer of all certificates of the cluster; undefined while another one's may be in use. */
  readonly authority: string | undefined;
  readonly redisPassword: string;
  readonly serverSecretKey: string;
}

/** The result of {@link ensureDelivered}. */
export interface EnsuredSecrets {
  readonly delivered: DeliveredSecrets;
  readonly plan: ClientCertificatePlan;
  /** When the cluster must be reconciled again, in milliseconds since the epoch. */
  readonly renewAt: number;
}

/**
 * Issues or renews the agent's client certificate, and generates the other values once per cluster. A value that the Secret
 * lacks is taken back from the works that delivered it: Argo CD on the cluster keeps running with it.
 */
export async function ensureDelivered(deps: SecretDeps, enrolment: Enrolment): Promise<EnsuredSecrets> {
  const { cluster, foundation, signal } = enrolment;
  const key = { namespace: foundation.namespace, name: deliveredSecretName(cluster) };
  const live = await deps.applier.current(secrets, key, deps.caches.ownSecrets.get(key), signal);
  const plan = planClientCertificate(deps.caches, enrolment, live);
  const { clientCertificate, authority, renewAt } = await agentCertificate(deps, enrolment, plan, live);
  const { redisPassword, serverSecretKey } = generatedValues(deps, cluster, live);
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
  if (!plan.isDelivered) {
    recordWithdrawal(deps, enrolment, keyCertificateOf(live).certificate);
  }
  return { delivered: { clientCertificate, authority, redisPassword, serverSecretKey }, plan, renewAt };
}

/**
 * Registers a cluster with the hub's Argo CD: writes its client certificate and its cluster Secret.
 * @returns when the certificate must be renewed, in milliseconds since the epoch, and what could not become a label
 */
export async function ensureImported(
  deps: SecretDeps,
  enrolment: Enrolment,
): Promise<{ renewAt: number; skippedLabels: readonly string[] }> {
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
  const secretKey = { namespace, name: agentSecretName(cluster) };
  const liveSecret = await applier.current(secrets, secretKey, caches.ownSecrets.get(secretKey), signal);
  const copied = copiedLabels(caches.managedClusters.get({ name: cluster }), foundation.clusterLabels, liveSecret);
  await applier.change(secrets, clusterSecret(enrolment, certificate, copied), liveSecret, { exact: ['data'], signal });
  return { renewAt, skippedLabels: copied.skipped };
}

/** With the namespace for guests: an ApplicationSet that selects the clusters of a Placement gets those of no other one. */
function placementName({ gitOpsCluster, namespace, placement }: Foundation): string {
  return isGuest(gitOpsCluster, namespace) ? `${gitOpsCluster.metadata.namespace}.${placement}` : placement;
}

/** The Argo CD cluster Secret. Argo CD on the hub shows the cluster; its application controllers skip it. */
function clusterSecret({ cluster, foundation }: Enrolment, certificate: KeyCertificate, copied: CopiedLabels): Secret {
  const { labels, annotations } = ownerMetadata(foundation.key, cluster, 'cluster');
  return {
    metadata: {
      namespace: foundation.namespace,
      name: agentSecretName(cluster),
      labels: {
        ...copied.labels,
        ...labels,
        [wellKnown.secretTypeLabel]: 'cluster',
        [wellKnown.agentNameLabel]: cluster,
        'placement-name': labelValue(placementName(foundation)),
      },
      annotations: {
        ...annotations,
        'managed-by': 'argocd-agent',
        [wellKnown.agentModeAnnotation]: foundation.addOn.mode,
        [wellKnown.skipReconcileAnnotation]: 'true',
        // A label that leaves the record is no longer applied, so the API server removes it.
        [keys.copiedLabels]: copiedLabelsRecord(copied),
      },
    },
    type: 'Opaque',
    data: {
      name: encode(cluster),
      server: encode(`https://${foundation.resourceProxy}?agentName=${cluster}`),
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

/** A generated value: printable and without spaces, so that environment variables and command lines keep it unchanged. */
const usable = /^[!-~]{1,512}$/;

function generatedValues({ caches, logger }: SecretDeps, cluster: string, live: Secret | undefined) {
  const delivered = deliveredValues(caches.works.list(cluster));
  const keep = (key: keyof typeof delivered, generate: () => string) => {
    const value = secretText(live?.data, key);
    if (value !== undefined && usable.test(value)) {
      return value;
    }
    const former = delivered[key];
    if (live !== undefined || former !== undefined) {
      const action = former === undefined ? 'made anew' : 'taken back from the ManifestWork';
      logger.warn({ cluster, key, action }, `Secret ${deliveredSecretName(cluster)} lacked a usable value`);
    }
    return former ?? generate();
  };
  return {
    redisPassword: keep('redis-password', () => randomBytes(24).toString('base64url')),
    serverSecretKey: keep('server.secretkey', () => randomBytes(32).toString('base64')),
  };
}

/** Reports that a key is no longer delivered, and until when its certificate stays valid. */
function recordWithdrawal(
  { logger, events }: SecretDeps,
  { cluster, foundation }: Enrolment,
  certificate: string | undefined,
): void {
  const info = certificate === undefined ? undefined : validCertificate(certificate);
  if (info === undefined) {
    return;
  }
  const until = info.notAfter.toISOString();
  logger.info({ cluster, fingerprint: info.fingerprint, until }, 'the delivered key is withdrawn');
  const message = `the agent of cluster ${cluster} uses a certificate that the cluster requested, and its former key is withdrawn. The former certificate is valid until ${until}; to refuse it sooner, add ${info.fingerprint} to the keys of ConfigMap ${foundation.namespace}/argocd-agent-tls-blocklist when the agent is connected again`;
  events.normal(foundation.gitOpsCluster, 'KeyWithdrawn', message);
}

function validCertificate(certificate: string): CertificateInfo | undefined {
  try {
    return inspectCertificate(certificate);
  } catch (error) {
    if (error instanceof PkiError) {
      return undefined;
    }
    throw error;
  }
}

/** The agent's certificate, unless the cluster uses one that it requested, and the issuer of the one in use. */
async function agentCertificate(
  deps: SecretDeps,
  enrolment: Enrolment,
  { isDelivered }: ClientCertificatePlan,
  live: Secret | undefined,
): Promise<Pick<DeliveredSecrets, 'clientCertificate' | 'authority'> & { renewAt: number }> {
  const { cluster, foundation, now } = enrolment;
  if (!isDelivered) {
    const addOn = deps.caches.addOns.get({ namespace: cluster, name: addOnName });
    const { authority, lookAgainAt } = authorityInUse(addOn, foundation.authority.certificate, now);
    const until = Date.parse(issuedOf(addOn)?.until ?? '');
    const expiry = until > now.getTime() ? until : Number.POSITIVE_INFINITY;
    return { clientCertificate: undefined, authority, renewAt: lookAgainAt ?? expiry };
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
