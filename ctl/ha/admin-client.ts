import { readFile } from 'node:fs/promises';
import { timeoutSignal } from '../../lib/base/index.ts';
import { pods } from '../../lib/kube/index.ts';
import { FatalError, parseKeyPair, parseTrust, printable } from '../../lib/ops/index.ts';
import { type ClientTls, GrpcError, grpcStatus, type HaAdminClient, haAdminClient } from '../../lib/wire/index.ts';
import type { Ctl } from '../ctl-command.ts';
import { ForwardError, forwardPort } from './port-forward.ts';

/** Where a principal takes calls about its pair. */
const adminPort = 8405;
const podSelector = 'app.kubernetes.io/name=argocd-agent-principal';

/** Files in PEM form; empty names for none of them. */
export interface AdminFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/**
 * Connects, makes calls and disconnects. Without an address the port of the principal's pod is forwarded.
 * @param options.files the operator's certificate and key, and the authorities of the principal; without them there is no TLS
 * @throws FatalError when a file cannot be used, and when the principal cannot be reached or refuses
 */
export async function withAdmin<T>(
  ctl: Ctl,
  options: { readonly address: string; readonly files: AdminFiles; readonly timeoutMs: number },
  work: (admin: HaAdminClient) => Promise<T>,
): Promise<T> {
  const { timeoutMs } = options;
  const tls = await tlsIn(options.files);
  const signal = AbortSignal.any([ctl.signal, timeoutSignal(timeoutMs)]);
  const forwarded = options.address === '' ? await forwardToPod(ctl, signal) : undefined;
  // A name that argocd-agentctl's certificates for principals have.
  const address = forwarded === undefined ? options.address : `localhost:${forwarded.port}`;
  const { status, promote, demote } = haAdminClient({ address, tls, timeoutMs, signal: ctl.signal });
  const explain = (error: Error) => {
    throw error instanceof GrpcError ? explained(error, { address, tls, failure: forwarded?.failure }) : error;
  };
  try {
    return await work({
      status: () => status().catch(explain),
      promote: (force) => promote(force).catch(explain),
      demote: () => demote().catch(explain),
    });
  } finally {
    forwarded?.close();
  }
}

function explained(
  { code, details, isConnectionLoss }: GrpcError,
  about: { readonly address: string; readonly tls: ClientTls | 'plaintext'; readonly failure: Error | undefined },
): FatalError {
  const { address, tls, failure } = about;
  if (failure !== undefined) {
    const hint = failure instanceof ForwardError ? '; is the principal one of a pair (--ha-enabled)?' : '';
    return new FatalError(printable(failure.message) + hint);
  }
  // A server with TLS ends a connection without it.
  if (tls === 'plaintext' && (isConnectionLoss || code === grpcStatus.unauthenticated)) {
    return new FatalError(
      `${details}\n\nHint: the admin endpoint may require mTLS. Provide --tls-cert, --tls-key, and --tls-ca flags`,
    );
  }
  if (code === grpcStatus.permissionDenied && details.includes('ha-admin-auth')) {
    const flag = '--ha-admin-auth (ARGOCD_PRINCIPAL_HA_ADMIN_AUTH)';
    const hint = details.includes('not configured')
      ? `set ${flag} of the principal`
      : `client certificate identity does not match ${flag} of the principal`;
    return new FatalError(`${details}\n\nHint: ${hint}`);
  }
  if (isConnectionLoss) {
    return new FatalError(`${details}; does the principal trust the CA of --tls-cert?`);
  }
  // Nothing answers, or something else does.
  const isElsewhere = (code === grpcStatus.unavailable && tls === 'plaintext') || code === grpcStatus.unimplemented;
  return new FatalError(
    `${details}${isElsewhere ? `; is the principal at ${address} one of a pair (--ha-enabled)?` : ''}`,
  );
}

/** @throws FatalError that names the flag */
async function tlsIn({ cert, key, ca }: AdminFiles): Promise<ClientTls | 'plaintext'> {
  const given = [cert, key, ca].filter((path) => path !== '').length;
  if (given === 0) {
    return 'plaintext';
  }
  const failed = (what: string) => (cause: Error) => {
    throw new FatalError(`failed to load TLS credentials: ${what}${cause.message}`, { cause });
  };
  if (given < 3) {
    return failed('')(new Error('all three flags --tls-cert, --tls-key, and --tls-ca are required for mTLS'));
  }
  const pair = async () =>
    parseKeyPair({ 'tls.crt': await readFile(cert, 'utf8'), 'tls.key': await readFile(key, 'utf8') });
  const authorities = async () => parseTrust({ 'ca.crt': await readFile(ca, 'utf8') });
  const own = await pair().catch(failed(`loading client cert (--tls-cert ${cert}, --tls-key ${key}): `));
  return { ...own, ca: await authorities().catch(failed(`loading CA (--tls-ca ${ca}): `)) };
}

async function forwardToPod(ctl: Ctl, signal: AbortSignal) {
  const { client, namespace } = ctl.principal();
  const found = await client.list(pods, { namespace, labelSelector: podSelector, signal }).catch((cause: unknown) => {
    throw new FatalError(`failed to list principal pods: ${(cause as Error).message}`, { cause });
  });
  const pod = found.find(({ status }) => status?.phase === 'Running') ?? found[0];
  if (pod === undefined) {
    throw new FatalError(`no principal pod found with label ${podSelector} in namespace ${namespace}`);
  }
  return forwardPort(client, { namespace, name: pod.metadata.name, port: adminPort }, signal);
}
