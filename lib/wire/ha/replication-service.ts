import {
  ConfirmMissingResourcesRequest,
  ConfirmMissingResourcesResponse,
  RefusedResources,
  RefusedResourcesResponse,
  ReplicatedEvent,
  ReplicationAck,
  ReplicationSnapshot,
  ReplicationStatus,
  type Resource,
} from '../../../proto/gen/replicationapi/replication.ts';
import type { ClientInfo } from '../../auth/index.ts';
import type { Logger } from '../../base/index.ts';
import type { ServerCall } from '../grpc/server/server-call.ts';
import { GrpcError, grpcStatus } from '../grpc/status.ts';
import { collectUnary, replicationPaths } from '../methods.ts';

/** Bytes of an acknowledgement, and of a request without a list. */
const maxRequestBytes = 1024;
/** Bytes of a list of resources that a standby asks about: keys without data. */
const maxConfirmBytes = 64 * 1024 * 1024;
const requestMs = 60_000;

/** The events that a standby gets, as the principal that sends them sees it. */
export interface ReplicaStream {
  /** The standby's address. */
  readonly address: string;
  /** Hands an event over; false when the connection can take no more now, or the stream has ended. */
  send(event: ReplicatedEvent): boolean;
  /** Sets the one listener that is called when a full stream can take more. */
  onDrain(listener: () => void): void;
  /** Ends the stream with an error for the standby. */
  end(error: GrpcError): void;
  /** Judges again whether the standby may follow, and ends the stream if not. */
  judge(): void;
  readonly ended: boolean;
}

/** Receives what a standby says on its stream. */
export interface ReplicaHandlers {
  acknowledged(sequence: bigint): void;
  /** The stream has ended. Called once. */
  closed(): void;
}

/**
 * What a principal answers to a standby. `connection` is the same object for all calls of one connection. Methods throw
 * GrpcError to refuse.
 */
export interface ReplicationService {
  /** Called first with each call; returns who it is. */
  authorize(peer: ClientInfo): string;
  subscribe(stream: ReplicaStream, connection: object, identity: string): ReplicaHandlers;
  snapshot(connection: object): Promise<ReplicationSnapshot>;
  status(connection: object): ReplicationStatus;
  confirm(request: ConfirmMissingResourcesRequest, connection: object): Promise<ConfirmMissingResourcesResponse>;
  /** The standby names all objects that it cannot write. */
  refused(resources: readonly Resource[], connection: object): void;
}

/** Whether a path is one of the replication service. */
export function isReplicationPath(path: string): boolean {
  return path.startsWith('/replicationapi.Replication/');
}

/** Serves a call of the replication service. The path is one of it. */
export function serveReplication(
  call: ServerCall,
  service: ReplicationService,
  context: { readonly peer: ClientInfo; readonly connection: object; readonly logger: Logger; accepted(): void },
): void {
  const { peer, connection, logger } = context;
  let identity: string;
  try {
    identity = service.authorize(peer);
  } catch (error) {
    call.fail(error);
    return;
  }
  context.accepted();
  const unary = (maxBytes: number, answer: (bytes: Uint8Array) => Promise<Uint8Array>) =>
    collectUnary(call, { maxBytes, timeoutMs: requestMs, peer: identity }, async (bytes) => {
      try {
        return await answer(bytes);
      } catch (error) {
        if (!(error instanceof GrpcError)) {
          logger.error({ error, call: call.path, peer: peer.address }, 'a call of the replication service failed');
        }
        throw error instanceof GrpcError ? error : new GrpcError(grpcStatus.internal, 'internal server error');
      }
    });
  switch (call.path) {
    case replicationPaths.subscribe:
      serveStream(call, service, { ...context, identity });
      break;
    case replicationPaths.snapshot:
      unary(maxRequestBytes, async () => ReplicationSnapshot.encode(await service.snapshot(connection)).finish());
      break;
    case replicationPaths.status:
      unary(maxRequestBytes, async () => ReplicationStatus.encode(service.status(connection)).finish());
      break;
    case replicationPaths.confirm:
      unary(maxConfirmBytes, async (bytes) =>
        ConfirmMissingResourcesResponse.encode(
          await service.confirm(decoded(ConfirmMissingResourcesRequest, bytes), connection),
        ).finish(),
      );
      break;
    case replicationPaths.refused:
      unary(maxConfirmBytes, async (bytes) => {
        service.refused(decoded(RefusedResources, bytes).resources, connection);
        return RefusedResourcesResponse.encode({}).finish();
      });
      break;
    default:
      call.finish(grpcStatus.unimplemented, 'unknown method for service replicationapi.Replication');
  }
}

function decoded<T>(message: { decode(bytes: Uint8Array): T }, bytes: Uint8Array): T {
  try {
    return message.decode(bytes);
  } catch (cause) {
    throw new GrpcError(grpcStatus.invalidArgument, 'the request cannot be read', { cause });
  }
}

function serveStream(
  call: ServerCall,
  service: ReplicationService,
  context: { readonly peer: ClientInfo; readonly connection: object; readonly identity: string },
): void {
  const stream: ReplicaStream = {
    address: context.peer.address,
    send: (event) => call.send(ReplicatedEvent.encode(event).finish()),
    onDrain: (listener) => call.onDrain(listener),
    end: (error) => call.fail(error),
    judge: () => {
      try {
        service.authorize(context.peer);
      } catch (error) {
        call.fail(error);
      }
    },
    get ended() {
      return call.isOver;
    },
  };
  let handlers: ReplicaHandlers;
  try {
    handlers = service.subscribe(stream, context.connection, context.identity);
  } catch (error) {
    call.fail(error);
    return;
  }
  call.accept();
  call.listen(
    {
      message(bytes) {
        try {
          handlers.acknowledged(ReplicationAck.decode(bytes).ackedSequenceNum);
        } catch {
          call.finish(grpcStatus.invalidArgument, 'the acknowledgement cannot be read');
        }
      },
      unreadable: (error) => call.fail(error),
      halfClose: () => call.finish(),
      end: () => handlers.closed(),
    },
    { maxMessageBytes: maxRequestBytes, peer: context.identity },
  );
}
