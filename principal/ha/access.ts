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
 * A check of who may read everything that the hub has, credentials of repositories and clusters included, always by a server's
 * certificate: the names that the operator allows, and without any of them the host of the other principal. An agent never may.
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
    const names = clientNames(peer, certificate, options.method);
    const name = names[0] ?? '';
    const isNamed =
      allowed.length > 0
        ? names.some((one) => allowed.includes(one))
        : peerHost !== undefined && isOfHost(certificate, peerHost);
    // Node names extended key usages so. A principal shows its server's certificate; nobody gives an agent one.
    const isServer = certificate.keyUsage?.includes(serverAuth) === true;
    const agent = names.find((one) => options.isAgent(one));
    if (isNamed && isServer && agent === undefined) {
      return name;
    }
    const hint = hintFor({ agent, isNamed, hasNames: allowed.length > 0 });
    logger.warn({ peer: peer.address, name, hint }, 'a client is refused that wants to follow this principal');
    throw new GrpcError(grpcStatus.permissionDenied, `${JSON.stringify(name)} may not follow this principal`);
  };
}

/** What the operator may do for a client that is refused. */
function hintFor(about: {
  readonly agent: string | undefined;
  readonly isNamed: boolean;
  readonly hasNames: boolean;
}): string {
  if (about.agent !== undefined) {
    return 'This name is an agent of this hub, and agents may not follow a principal.';
  }
  if (about.isNamed) {
    return 'Its certificate must be one of a server (extendedKeyUsage: serverAuth).';
  }
  return about.hasNames
    ? 'Allow it with --ha-allowed-replication-clients.'
    : 'Name it in --ha-allowed-replication-clients, or set --ha-peer-address to a host that its server certificate names.';
}

/** The names of a client: what `--auth` takes from its certificate, and the common name. */
export function clientNames(
  peer: ClientInfo,
  certificate: X509Certificate,
  method: Pick<AuthMethod, 'identify'>,
): string[] {
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

function isOfHost(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
}
