import { timeoutSignal } from '../../lib/base/index.ts';
import { pods } from '../../lib/kube/index.ts';
import { FatalError, printable } from '../../lib/ops/index.ts';
import { GrpcError, grpcStatus, type HaAdminClient, haAdminClient } from '../../lib/wire/index.ts';
import type { Ctl } from '../ctl-command.ts';
import { ForwardError, forwardPort } from './port-forward.ts';

/** Where a principal takes calls about its pair: on 127.0.0.1 of its pod. */
const adminPort = 8405;
const podSelector = 'app.kubernetes.io/name=argocd-agent-principal';

/**
 * Connects, makes calls and disconnects. Without an address the port of the principal's pod is forwarded.
 * @throws FatalError when the principal cannot be reached or refuses
 */
export async function withAdmin<T>(
  ctl: Ctl,
  options: { readonly address: string; readonly timeoutMs: number },
  work: (admin: HaAdminClient) => Promise<T>,
): Promise<T> {
  const { timeoutMs } = options;
  const signal = AbortSignal.any([ctl.signal, timeoutSignal(timeoutMs)]);
  const forwarded = options.address === '' ? await forwardToPod(ctl, signal) : undefined;
  const address = forwarded === undefined ? options.address : `127.0.0.1:${forwarded.port}`;
  const { status, promote, demote } = haAdminClient({ address, timeoutMs, signal: ctl.signal });
  const explain = (error: Error) => {
    throw error instanceof GrpcError ? explained(error, address, forwarded?.failure) : error;
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

function explained({ code, details }: GrpcError, address: string, failure: Error | undefined): FatalError {
  if (failure !== undefined) {
    const hint = failure instanceof ForwardError ? '; is the principal one of a pair (--ha-enabled)?' : '';
    return new FatalError(printable(failure.message) + hint);
  }
  // Nothing answers, or something else does.
  const isElsewhere = code === grpcStatus.unavailable || code === grpcStatus.unimplemented;
  return new FatalError(
    `${details}${isElsewhere ? `; is the principal at ${address} one of a pair (--ha-enabled)?` : ''}`,
  );
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
