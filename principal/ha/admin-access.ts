import { type AuthMethod, type ClientInfo, GoExpression, subjectOf, urisOf } from '../../lib/auth/index.ts';
import { FatalError } from '../../lib/ops/index.ts';
import { GrpcError, grpcStatus } from '../../lib/wire/index.ts';
import { clientNames } from './access.ts';

/** Who may administer a pair of principals: the flag `--ha-admin-auth`, parsed. */
export interface AdminAuth {
  /** The part of the client certificate that is looked at. */
  readonly source: 'subject' | 'uri';
  readonly pattern: GoExpression;
}

const flag = '--ha-admin-auth (ARGOCD_PRINCIPAL_HA_ADMIN_AUTH)';

/**
 * Parses `mtls:subject:<re>` or `mtls:uri:<re>`; undefined for an empty text, which lets nobody.
 * @throws FatalError that contains argocd-agent's text
 */
export function parseAdminAuth(text: string): AdminAuth | undefined {
  if (text === '') {
    return undefined;
  }
  const [, method, rest = ''] = /^(mtls:)?(.*)$/s.exec(text) ?? [];
  if (method === undefined) {
    throw new FatalError(`${flag}: ha-admin-auth must start with 'mtls:', got: ${text}`);
  }
  const [, source, pattern] = /^(subject|uri):(.*)$/s.exec(rest) ?? [];
  if (source === undefined || pattern === undefined) {
    throw new FatalError(
      `${flag}: ha-admin-auth must specify source: 'mtls:subject:<regex>' or 'mtls:uri:<regex>', got: ${text}`,
    );
  }
  if (pattern === '') {
    throw new FatalError(`${flag}: ha-admin-auth regex pattern cannot be empty`);
  }
  try {
    return { source: source === 'uri' ? 'uri' : 'subject', pattern: new GoExpression(pattern) };
  } catch (cause) {
    throw new FatalError(`${flag}: ha-admin-auth regex compile error: ${(cause as Error).message}`, { cause });
  }
}

/**
 * A check of who may ask for the state of a pair, promote and demote, by a client certificate that holds. It is argocd-agent's, and
 * keeps agents out besides: expressions that match anywhere in a subject may match the name of one.
 * @param options.auth undefined when nobody may
 * @param options.method finds the name of an agent in a certificate
 * @param options.isAgent whether an agent of that name has a cluster Secret; undefined when agents' certificates come from another
 *   authority
 * @returns a function that returns the subject or the URI that matches, or throws GrpcError with argocd-agent's text
 */
export function adminAccess(options: {
  readonly auth: AdminAuth | undefined;
  readonly method: Pick<AuthMethod, 'identify'>;
  readonly isAgent: ((name: string) => boolean) | undefined;
}): (peer: ClientInfo) => string {
  const { auth } = options;
  const denied = (text: string) => new GrpcError(grpcStatus.permissionDenied, text);
  return (peer) => {
    const { certificate } = peer;
    if (certificate === undefined) {
      throw new GrpcError(grpcStatus.unauthenticated, 'no verified client certificate');
    }
    if (auth === undefined) {
      throw denied('ha-admin-auth not configured; all admin calls are denied');
    }
    const texts = auth.source === 'uri' ? urisOf(certificate) : [subjectOf(certificate)];
    if (texts.length === 0) {
      throw new GrpcError(grpcStatus.unauthenticated, 'no URI SANs in client certificate');
    }
    const identity = texts.find((text) => auth.pattern.matches(text));
    if (identity === undefined) {
      throw denied(
        auth.source === 'uri'
          ? 'no URI SAN matched ha-admin-auth pattern'
          : `client identity ${JSON.stringify(texts[0])} does not match ha-admin-auth pattern`,
      );
    }
    const agent = clientNames(peer, certificate, options.method).find((name) => options.isAgent?.(name));
    if (agent !== undefined) {
      throw denied(
        `client identity ${JSON.stringify(identity)} is agent ${agent} of this hub, which ha-admin-auth never allows`,
      );
    }
    return identity;
  };
}
