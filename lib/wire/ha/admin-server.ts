import {
  DemoteResponse,
  HAStatusResponse,
  PromoteRequest,
  PromoteResponse,
} from '../../../proto/gen/haadminapi/haadmin.ts';
import type { Logger } from '../../base/index.ts';
import { OpenConnections } from '../../credentials/index.ts';
import { defaultConnectionLimits } from '../grpc/server/connection-rate.ts';
import { listenGrpc } from '../grpc/server/server.ts';
import { grpcStatus } from '../grpc/status.ts';
import { collectUnary, haAdminPaths } from '../methods.ts';

/** What an operator may ask a principal of a pair. Methods throw GrpcError to refuse. */
export interface HaAdminService {
  status(): HAStatusResponse;
  /** Resolves with the state, when this principal is active. */
  promote(force: boolean): Promise<string>;
  /** Resolves with the state, when this principal writes nothing any more. */
  demote(): Promise<string>;
}

/**
 * Serves the administration of a pair of principals, in plaintext to programs of the same machine or pod alone.
 * @throws when the port cannot be used
 */
export async function serveHaAdmin(options: {
  readonly port: number;
  readonly service: HaAdminService;
  readonly logger: Logger;
}): Promise<{ readonly port: number; close(): Promise<void> }> {
  const { service, logger } = options;
  const listener = await listenGrpc({
    address: '127.0.0.1',
    port: options.port,
    tls: 'plaintext',
    http1: false,
    keepalive: { intervalMs: 15_000, timeoutMs: 10_000 },
    minPingIntervalMs: undefined,
    idleMs: 60_000,
    limits: defaultConnectionLimits,
    maxReceivingBytes: 1024 * 1024,
    messageMs: 15_000,
    certified: new OpenConnections({ logger }).port('administration'),
    logger,
    refused: () => undefined,
    serve(call, connection) {
      const limits = { maxBytes: 1024, timeoutMs: 15_000, peer: connection.address };
      switch (call.path) {
        case haAdminPaths.status:
          collectUnary(call, limits, async () => HAStatusResponse.encode(service.status()).finish());
          break;
        case haAdminPaths.promote:
          collectUnary(call, limits, async (bytes) => {
            const state = await service.promote(PromoteRequest.decode(bytes).force);
            return PromoteResponse.encode({ state }).finish();
          });
          break;
        case haAdminPaths.demote:
          collectUnary(call, limits, async () => DemoteResponse.encode({ state: await service.demote() }).finish());
          break;
        default:
          call.finish(grpcStatus.unimplemented, 'unknown method');
      }
    },
  });
  return { port: listener.port, close: () => listener.close() };
}
