import { ConnectionError, isNotFound, type Secret, secrets } from '../lib/kube/index.ts';
import { FatalError } from '../lib/ops/index.ts';
import {
  type CertificateRequest,
  inspectCertificate,
  issueCertificate,
  type KeyCertificate,
  PkiError,
  pkcs8Pem,
  splitCertificates,
  tlsOfSecret,
} from '../lib/pki/index.ts';
import type { Ctl, Side } from './ctl-command.ts';
import { type KeyValues, keyAlgorithmOf } from './key-flags.ts';

/** Names of the Secrets and ConfigMaps that this tool reads and writes: those of argocd-agent. */
export const names = {
  authority: 'argocd-agent-ca',
  principalTls: 'argocd-agent-principal-tls',
  resourceProxyTls: 'argocd-agent-resource-proxy-tls',
  clientTls: 'argocd-agent-client-tls',
  sharedClientTls: 'argocd-agent-shared-client-tls',
  haAdminTls: 'argocd-agent-ha-admin-tls',
  jwt: 'argocd-agent-jwt',
  blocklist: 'argocd-agent-tls-blocklist',
} as const;

/** Organisation in the subject of what this tool issues, as in the original: for those who look at a certificate. */
export const organization = 'DO NOT USE IN PRODUCTION';
/** Writer of what this tool writes. */
export const ctlManager = 'argocd-agentctl';

const day = 24 * 3_600_000;

/**
 * The key pair of a Secret of type `kubernetes.io/tls`; undefined when the Secret does not exist.
 * @throws FatalError when it is not one
 */
export async function keyPairIn(side: Side, name: string, signal: AbortSignal): Promise<KeyCertificate | undefined> {
  const secret = await side.client.get(secrets, { namespace: side.namespace, name }, signal);
  return secret === undefined ? undefined : pairOf(secret, `${side.namespace}/${name}`);
}

function pairOf(secret: Secret, what: string): KeyCertificate {
  if (secret.type !== 'kubernetes.io/tls') {
    throw new FatalError(`${what}: not a TLS secret`);
  }
  if (Object.keys(secret.data ?? {}).length === 0) {
    throw new FatalError(`${what}: empty secret`);
  }
  let pair: KeyCertificate | undefined;
  try {
    pair = tlsOfSecret(secret.data, `Secret ${what}`);
  } catch (cause) {
    throw cause instanceof PkiError ? new FatalError(`invalid cert or key data: ${cause.message}`, { cause }) : cause;
  }
  if (pair === undefined) {
    throw new FatalError(`${what}: either cert or key is missing in the secret`);
  }
  return pair;
}

/** The authority of the hub. @throws FatalError when there is none */
export async function authorityOf(side: Side, signal: AbortSignal, missing: string): Promise<KeyCertificate> {
  const found = await keyPairIn(side, names.authority, signal);
  if (found === undefined) {
    throw new FatalError(missing);
  }
  return found;
}

/**
 * Issues a certificate of an authority, for as many days as the flags say.
 * @throws FatalError when that is longer than the authority's own life
 */
export async function issueFor(
  authority: KeyCertificate,
  request: CertificateRequest,
  flags: KeyValues,
): Promise<KeyCertificate> {
  const { notAfter } = inspectCertificate(authority.certificate);
  const left = Math.floor((notAfter.getTime() - Date.now()) / day);
  checkDays(flags.days);
  if (Date.now() + flags.days * day > notAfter.getTime()) {
    throw new FatalError(
      `a certificate valid for ${flags.days} days would outlive the CA, which ends on ${notAfter.toISOString()}: --days can be at most ${Math.max(left, 0)}`,
    );
  }
  const made = await issueCertificate({
    ...request,
    organizations: [organization],
    authority,
    algorithm: keyAlgorithmOf(flags),
    lifetimeMs: flags.days * day,
  });
  return { certificate: made.certificate, key: pkcs8Pem(made.key) };
}

/** @throws FatalError unless the number can be a life's length */
export function checkDays(days: number): void {
  if (days <= 0) {
    throw new FatalError(`validity days must be greater than 0, got ${days}`);
  }
}

/** The first certificate of a PEM text, as the original hands it on. */
export function firstCertificate(pem: string): string {
  return `${splitCertificates(pem)[0] ?? ''}\n`;
}

/** Creates a Secret, or gives it another content. Labels and annotations stay. @returns whether it was there */
export async function putSecret(
  side: Side,
  secret: Secret,
  { signal }: Pick<Ctl, 'signal'>,
): Promise<'created' | 'updated'> {
  const { namespace, name } = secret.metadata;
  const live = await side.client.get(secrets, { namespace, name }, signal);
  if (live === undefined) {
    await side.client.create(secrets, secret, { fieldManager: ctlManager, signal });
    return 'created';
  }
  if (live.type !== undefined && live.type !== secret.type) {
    throw new FatalError(
      `Secret ${namespace}/${name} is of type ${live.type}, which cannot change to ${secret.type}: delete it first`,
    );
  }
  const { data = {} } = secret;
  await side.client.replace(secrets, { ...live, data }, { fieldManager: ctlManager, signal });
  return 'updated';
}

/** What a failed request means for the one who types. */
export function asFatal(what: string): (cause: unknown) => never {
  return (cause) => {
    if (cause instanceof FatalError || !(cause instanceof Error)) {
      throw cause;
    }
    const hint =
      cause instanceof ConnectionError
        ? '; check --kubeconfig and --principal-context, and that the cluster is up'
        : '';
    const missing = isNotFound(cause) ? '; does its namespace exist?' : '';
    throw new FatalError(`${what}: ${cause.message}${hint}${missing}`, { cause });
  };
}
