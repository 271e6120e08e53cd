import { pods } from '../../lib/kube/index.ts';
import { FatalError } from '../../lib/ops/index.ts';
import {
  DemoteRequest,
  DemoteResponse,
  HAStatusResponse,
  PromoteRequest,
  PromoteResponse,
  StatusRequest,
} from '../../proto/gen/haadminapi/haadmin.ts';
import type { Ctl } from '../ctl-command.ts';
import { forwardPort } from './port-forward.ts';

/** Where a principal takes calls about its pair: on 127.0.0.1 of its pod. */
const adminPort = 8405;
const podSelector = 'app.kubernetes.io/name=argocd-agent-principal';

interface Message<T> {
  encode(message: T): { finish(): Uint8Array };
  decode(bytes: Uint8Array): T;
}

/** The calls about a pair of principals. */
export interface AdminClient {
  status(): Promise<HAStatusResponse>;
  promote(force: boolean): Promise<PromoteResponse>;
  demote(): Promise<DemoteResponse>;
}

/**
 * Connects, makes calls and disconnects. Without an address the port of the principal's pod is forwarded.
 * @throws FatalError when the principal cannot be reached or refuses
 */
export async function withAdmin<T>(
  ctl: Ctl,
  options: { readonly address: string; readonly timeoutMs: number },
  work: (admin: AdminClient) => Promise<T>,
): Promise<T> {
  const deadline = Date.now() + options.timeoutMs;
  const limited = AbortSignal.any([ctl.signal, AbortSignal.timeout(options.timeoutMs)]);
  const forwarded = options.address === '' ? await forwardToPod(ctl, limited) : undefined;
  const address = forwarded === undefined ? options.address : `127.0.0.1:${forwarded.port}`;
  // Loaded for these commands only: it doubles the time that a start takes.
  const { Client, credentials, Metadata } = await import('@grpc/grpc-js');
  const client = new Client(address, credentials.createInsecure());
  const call = <Q, A>(method: string, request: Message<Q>, answer: Message<A>, message: Q): Promise<A> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        `/haadminapi.HAAdmin/${method}`,
        (value: Q) => Buffer.from(request.encode(value).finish()),
        (bytes: Buffer) => answer.decode(bytes),
        message,
        new Metadata(),
        { deadline },
        (error, value) => (error === null && value !== undefined ? resolve(value) : reject(explained(error, address))),
      );
    });
  try {
    return await work({
      status: () => call('Status', StatusRequest, HAStatusResponse, {}),
      promote: (force) => call('Promote', PromoteRequest, PromoteResponse, { force }),
      demote: () => call('Demote', DemoteRequest, DemoteResponse, {}),
    });
  } finally {
    client.close();
    forwarded?.close();
  }
}

function explained(error: { code?: number; details?: string; message: string } | null, address: string): FatalError {
  const details = error?.details || error?.message || 'no answer';
  // 14: nothing answers; 12: something else does.
  const hint =
    error?.code === 14 || error?.code === 12 ? `; is the principal at ${address} one of a pair (--ha-enabled)?` : '';
  return new FatalError(`${details}${hint}`);
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
