import {
  DemoteRequest,
  DemoteResponse,
  HAStatusResponse,
  PromoteRequest,
  PromoteResponse,
  StatusRequest,
} from '../../../proto/gen/haadminapi/haadmin.ts';
import { splitHostPort, timeoutSignal } from '../../base/index.ts';
import { explain } from '../client/failures.ts';
import type { WireError } from '../errors.ts';
import { connectGrpc } from '../grpc/client/client.ts';
import { callUnary } from '../grpc/client/client-call.ts';
import { GrpcError, grpcStatus } from '../grpc/status.ts';
import { haAdminPaths } from '../methods.ts';
import type { ClientTls } from '../tls.ts';

/** What {@link haAdminClient} can ask. Each method opens a connection of its own, and throws GrpcError. */
export interface HaAdminClient {
  status(): Promise<HAStatusResponse>;
  /** Resolves with the state. */
  promote(force: boolean): Promise<string>;
  /** Resolves with the state. */
  demote(): Promise<string>;
}

/**
 * The administration of a principal of a pair.
 * @param options.address `host:port`
 * @param options.tls the client's certificate, and the authorities that the principal's must come from; plaintext for argocd-agent's
 *   principals without TLS, and those before it had it here
 * @param options.timeoutMs of each call, connecting included
 */
export function haAdminClient(options: {
  readonly address: string;
  readonly tls: ClientTls | 'plaintext';
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}): HaAdminClient {
  const ask = async (path: string, request: Uint8Array): Promise<Uint8Array> => {
    const { address, tls, timeoutMs } = options;
    const target = splitHostPort(address);
    if (target === undefined) {
      throw new GrpcError(grpcStatus.invalidArgument, `${JSON.stringify(address)} is not of the form host:port`);
    }
    const late = timeoutSignal(timeoutMs);
    const signal = options.signal === undefined ? late : AbortSignal.any([options.signal, late]);
    const tooLate = () => new GrpcError(grpcStatus.deadlineExceeded, `no answer within ${timeoutMs / 1000} s`);
    const transport = await connectGrpc({
      ...target,
      tls,
      timeoutMs,
      maxMessageBytes: 1024 * 1024,
      compression: false,
      keepalive: { intervalMs: 15_000, timeoutMs: 10_000 },
      signal,
    }).catch(async (error: unknown) => {
      throw late.aborted ? tooLate() : unavailable(await explain(error, undefined, address));
    });
    try {
      return await callUnary(transport.call(path), request, signal);
    } catch (error) {
      if (late.aborted) {
        throw tooLate();
      }
      // A server with TLS 1.3 refuses a certificate, and one with TLS a client without it, only now.
      const isLost = error instanceof GrpcError && error.isConnectionLoss;
      throw isLost ? unavailable(await explain(error, transport, address), true) : error;
    } finally {
      transport.destroy();
    }
  };
  return {
    status: async () => HAStatusResponse.decode(await ask(haAdminPaths.status, StatusRequest.encode({}).finish())),
    promote: async (force) =>
      PromoteResponse.decode(await ask(haAdminPaths.promote, PromoteRequest.encode({ force }).finish())).state,
    demote: async () => DemoteResponse.decode(await ask(haAdminPaths.demote, DemoteRequest.encode({}).finish())).state,
  };
}

function unavailable(cause: WireError, isConnectionLoss = false): GrpcError {
  return new GrpcError(grpcStatus.unavailable, cause.message, { cause, isConnectionLoss });
}
