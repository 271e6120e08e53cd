import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { AuthError, type AuthMethod, type ClientInfo, commonNameOf, fingerprintOf } from '../../lib/auth/index.ts';
import type { Logger } from '../../lib/base/index.ts';
import { GrpcError, grpcStatus } from '../../lib/wire/index.ts';

/** Extended key usage of servers. */
const serverAuth = '1.3.6.1.5.5.7.3.1';

/** Who may follow a principal. */
export interface ReplicationAccessOptions {
  readonly method: Pick<AuthMethod, 'identify'>;
  isBlocked(fingerprint: string): boolean;
  /** Whether an agent of that name has a cluster Secret. */
  isAgent(name: string): boolean;
  /** Names that may follow. */
  readonly allowed: readonly string[];
  /** The other principal's host; undefined when it is not known. */
  readonly peerHost: string | undefined;
  readonly logger: Logger;
}

/**
 * A check of who may read everything that the hub has, credentials of repositories and clusters included: the names that the
 * operator allows, and without any of them the other principal, by a server certificate for its host. An agent never may.
 * argocd-agent lets every agent when no names are given.
 * @returns a function that returns the name, or throws GrpcError
 */
export function replicationAccess(options: ReplicationAccessOptions): (peer: ClientInfo) => string {
  const { allowed, peerHost, logger } = options;
  return (peer) => {
    const { certificate } = peer;
    if (!peer.encrypted || certificate === undefined || options.isBlocked(fingerprintOf(certificate))) {
      throw new GrpcError(grpcStatus.unauthenticated, 'replication needs a client certificate that holds');
    }
    const names = namesOf(peer, certificate, options.method);
    const name = names[0] ?? '';
    const isAllowed =
      allowed.length > 0
        ? names.some((one) => allowed.includes(one))
        : peerHost !== undefined && isServerOf(certificate, peerHost);
    const agent = names.find((one) => options.isAgent(one));
    if (isAllowed && agent === undefined) {
      return name;
    }
    const hint =
      agent !== undefined
        ? 'This name is an agent of this hub, and agents may not follow a principal.'
        : allowed.length > 0
          ? 'Allow it with --ha-allowed-replication-clients.'
          : 'Name it in --ha-allowed-replication-clients, or set --ha-peer-address to a host that its server certificate names.';
    logger.warn({ peer: peer.address, name, hint }, 'a client is refused that wants to follow this principal');
    throw new GrpcError(grpcStatus.permissionDenied, `${JSON.stringify(name)} may not follow this principal`);
  };
}

function namesOf(peer: ClientInfo, certificate: X509Certificate, method: Pick<AuthMethod, 'identify'>): string[] {
  const common = commonNameOf(certificate);
  try {
    const name = method.identify?.(peer);
    return [name, common].filter((one) => one !== undefined);
  } catch (error) {
    if (!(error instanceof AuthError)) {
      throw error;
    }
    return common === undefined ? [] : [common];
  }
}

function isServerOf(certificate: X509Certificate, host: string): boolean {
  // Node names extended key usages so.
  const isServer = certificate.keyUsage?.includes(serverAuth) === true;
  const isNamed = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host);
  return isServer && isNamed !== undefined;
}
