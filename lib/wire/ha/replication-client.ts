import {
  ConfirmMissingResourcesRequest,
  ConfirmMissingResourcesResponse,
  RefusedResources,
  ReplicatedEvent,
  ReplicationAck,
  ReplicationSnapshot,
  ReplicationStatus,
  type Resource,
  SnapshotRequest,
  StatusRequest,
} from '../../../proto/gen/replicationapi/replication.ts';
import { connect } from '../client/connect.ts';
import { explain } from '../client/failures.ts';
import type { WireError } from '../errors.ts';
import { callUnary } from '../grpc/client/client-call.ts';
import { GrpcError, grpcStatus } from '../grpc/status.ts';
import { replicationPaths } from '../methods.ts';
import type { ClientTls } from '../tls.ts';

const connectMs = 15_000;
/** A snapshot has all objects of a hub. grpc-go's default of 4 MiB, which argocd-agent's standby has, holds some hundred. */
const maxMessageBytes = 1024 * 1024 * 1024;

/** Receives what the active principal sends. */
export interface PrimaryHandlers {
  event(event: ReplicatedEvent): void;
  /** The stream has ended; a principal that is not active ends it with `unavailable`. Called once. */
  ended(error: GrpcError): void;
}

/** The stream of events, as the standby sees it. */
export interface PrimaryStream {
  acknowledge(sequence: bigint): void;
  /** Stops and goes on reading; the sender is slowed down by flow control. */
  pause(): void;
  resume(): void;
}

/** A connection to the principal that a standby follows. */
export interface PrimaryConnection {
  subscribe(handlers: PrimaryHandlers): PrimaryStream;
  snapshot(): Promise<ReplicationSnapshot>;
  status(): Promise<ReplicationStatus>;
  confirm(request: ConfirmMissingResourcesRequest): Promise<ConfirmMissingResourcesResponse>;
  /**
   * Tells all objects that this standby cannot write, of which only the names count. True: from now on an acknowledgement does not
   * stand for them. False: the other principal does not know this, as argocd-agent's does not.
   */
  reportRefused(resources: readonly Resource[]): Promise<boolean>;
  /** Says in plain words why a call failed. */
  explain(error: unknown): Promise<WireError>;
  /** Ends the connection at once. */
  destroy(): void;
}

/**
 * Connects to the principal that a standby follows, on its port for agents.
 * @param options.server `host:port`
 * @param options.tls the standby's own certificate, and the authorities that the other one's must come from
 * @throws WireError that says why there is no connection
 */
export async function connectPrimary(options: {
  readonly server: string;
  readonly tls: ClientTls | 'plaintext';
  readonly signal: AbortSignal;
}): Promise<PrimaryConnection> {
  const { server, tls, signal } = options;
  const settings = { server, maxMessageBytes, signal };
  const transport = await connect(settings, tls, { connectMs, pingFactor: 1 }).catch(async (error: unknown) => {
    throw await explain(error, undefined, server);
  });
  const unary = (path: string, request: Uint8Array) => callUnary(transport.call(path), request, signal);
  return {
    subscribe(handlers) {
      const call = transport.call(replicationPaths.subscribe);
      call.listen({
        message(bytes) {
          handlers.event(ReplicatedEvent.decode(bytes));
        },
        end: (error) =>
          handlers.ended(error ?? new GrpcError(grpcStatus.unavailable, 'the principal ended the replication')),
      });
      return {
        acknowledge: (ackedSequenceNum) => void call.send(ReplicationAck.encode({ ackedSequenceNum }).finish()),
        pause: () => call.pause(),
        resume: () => call.resume(),
      };
    },
    snapshot: async () => {
      const request = SnapshotRequest.encode({ sinceSequenceNum: 0n }).finish();
      return ReplicationSnapshot.decode(await unary(replicationPaths.snapshot, request));
    },
    status: async () =>
      ReplicationStatus.decode(await unary(replicationPaths.status, StatusRequest.encode({}).finish())),
    confirm: async (request) => {
      const bytes = ConfirmMissingResourcesRequest.encode(request).finish();
      return ConfirmMissingResourcesResponse.decode(await unary(replicationPaths.confirm, bytes));
    },
    reportRefused: async (resources) => {
      try {
        await unary(replicationPaths.refused, RefusedResources.encode({ resources: [...resources] }).finish());
        return true;
      } catch (error) {
        if (error instanceof GrpcError && error.code === grpcStatus.unimplemented) {
          return false;
        }
        throw error;
      }
    },
    explain: (error) => explain(error, transport, server),
    destroy: () => transport.destroy(),
  };
}
