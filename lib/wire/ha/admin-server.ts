import {
  DemoteResponse,
  HAStatusResponse,
  PromoteRequest,
  PromoteResponse,
} from '../../../proto/gen/haadminapi/haadmin.ts';
import type { ClientInfo } from '../../auth/index.ts';
import type { Logger } from '../../base/index.ts';
import type { OpenConnections } from '../../credentials/index.ts';
import { RefusalLog } from '../../http/index.ts';
import { defaultConnectionLimits } from '../grpc/server/connection-rate.ts';
import { peerOf } from '../grpc/server/peer-of.ts';
import { clientOf, type GrpcListener, listenGrpc, type ServerConnection } from '../grpc/server/server.ts';
import type { ServerCall } from '../grpc/server/server-call.ts';
import { GrpcError, grpcStatus } from '../grpc/status.ts';
import { collectUnary, haAdminPaths } from '../methods.ts';
import type { ServerTls } from '../tls.ts';

/** What an operator may ask a principal of a pair. Methods throw GrpcError to refuse. */
export interface HaAdminService {
  status(): HAStatusResponse;
  /** Resolves with the state, when this principal is active. */
  promote(force: boolean): Promise<string>;
  /** Resolves with the state, when this principal writes nothing any more. */
  demote(): Promise<string>;
}

/**
 * Serves the administration of a pair of principals, to clients with a certificate that holds and is allowed. A connection is ended
 * as soon as its certificate does not count any more.
 * @param options.address the address to listen on. Default: all
 * @param options.tls with the authorities of clients
 * @param options.connections gets the open connections of this port
 * @param options.authorize called first with each call of a client whose certificate holds; returns who it is, or throws GrpcError to refuse
 * @throws when the port cannot be used or the TLS material is unusable
 */
export async function serveHaAdmin(options: {
  readonly address?: string;
  readonly port: number;
  readonly tls: ServerTls & { readonly clientCa: string };
  readonly connections: OpenConnections;
  authorize(peer: ClientInfo): string;
  readonly service: HaAdminService;
  readonly logger: Logger;
}): Promise<GrpcListener> {
  const { service, logger } = options;
  const refusals = new RefusalLog('the administration of the pair', logger, { ends: 'a call' });
  /** Who calls; undefined when the call has been refused. */
  const callerOf = (call: ServerCall, connection: ServerConnection) => {
    const problem = connection.certificateProblem();
    try {
      if (problem !== undefined) {
        throw new GrpcError(grpcStatus.unauthenticated, `client certificate rejected: ${problem.reason}`);
      }
      return options.authorize(peerOf(call, connection));
    } catch (error) {
      const reason = error instanceof GrpcError ? error.details : String(error);
      refusals.add('its client may not', connection.address, { reason, hint: 'see --ha-admin-auth' });
      call.fail(error);
      return undefined;
    }
  };
  return await listenGrpc({
    ...(options.address === undefined ? {} : { address: options.address }),
    port: options.port,
    tls: { ...options.tls, requireClientCertificate: true },
    http1: false,
    keepalive: { intervalMs: 15_000, timeoutMs: 10_000 },
    minPingIntervalMs: undefined,
    idleMs: 60_000,
    limits: defaultConnectionLimits,
    maxReceivingBytes: 1024 * 1024,
    messageMs: 15_000,
    certified: options.connections.port('administration'),
    logger,
    refused: () => undefined,
    serve(call, connection) {
      const caller = callerOf(call, connection);
      if (caller === undefined) {
        return;
      }
      connection.authenticated();
      const limits = { maxBytes: 1024, timeoutMs: 15_000, peer: clientOf(connection) };
      const ordered = (order: string) =>
        logger.info({ caller, peer: connection.address, order }, 'an order to the pair');
      switch (call.path) {
        case haAdminPaths.status:
          collectUnary(call, limits, async () => HAStatusResponse.encode(service.status()).finish());
          break;
        case haAdminPaths.promote:
          collectUnary(call, limits, async (bytes) => {
            const { force } = PromoteRequest.decode(bytes);
            ordered(force ? 'promote by force' : 'promote');
            return PromoteResponse.encode({ state: await service.promote(force) }).finish();
          });
          break;
        case haAdminPaths.demote:
          collectUnary(call, limits, async () => {
            ordered('demote');
            return DemoteResponse.encode({ state: await service.demote() }).finish();
          });
          break;
        default:
          call.finish(grpcStatus.unimplemented, 'unknown method');
      }
    },
  });
}
