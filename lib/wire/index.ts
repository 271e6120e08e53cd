export { requestCertificate } from './client/certificates.ts';
export { clientKeepalive } from './client/client-keepalive.ts';
export type { LoginCredentials, PrincipalInfo, SessionCalls, WireClientOptions } from './client/client-options.ts';
export { runWireClient } from './client/run-client.ts';
export { WireError, type WireErrorCode } from './errors.ts';
export { type CloudEvent, decodeEvent, encodeEvent } from './events/codec.ts';
export {
  agentSource,
  eventTypes,
  isAcknowledgement,
  principalSource,
  targets,
  type WireEvent,
  type WireTarget,
} from './events/event.ts';
export { eventIdOf, type IdentifiedMetadata, resourceIdOf, sentAt } from './events/ids.ts';
export { limitOf, type PayloadLimit } from './events/limits.ts';
export {
  acknowledgement,
  type EventObject,
  heartbeatEvent,
  messageEvent,
  type ObjectTarget,
  type Origin,
  objectEvent,
  refusedReason,
  refusingAcknowledgement,
} from './events/make.ts';
export { dataOf, parseLimited } from './events/payload.ts';
export { connectGrpc, type GrpcTransport } from './grpc/client/client.ts';
export { type ClientCall, callUnary } from './grpc/client/client-call.ts';
export type { ConnectionLimits } from './grpc/server/connection-rate.ts';
export { secureContextOptions, useTls } from './grpc/server/tls-options.ts';
export { GrpcError, type GrpcStatusCode, grpcStatus, statusName } from './grpc/status.ts';
export { type HaAdminClient, haAdminClient } from './ha/admin-client.ts';
export { type HaAdminService, serveHaAdmin } from './ha/admin-server.ts';
export {
  connectPrimary,
  type PrimaryConnection,
  type PrimaryHandlers,
  type PrimaryStream,
} from './ha/replication-client.ts';
export type { ReplicaHandlers, ReplicaStream, ReplicationService } from './ha/replication-service.ts';
export { paths } from './methods.ts';
export type { ObservedCall } from './observe.ts';
export { serveWire } from './server/serve.ts';
export type {
  CertificateService,
  RefusalReason,
  Session,
  WireServer,
  WireServerOptions,
} from './server/server-options.ts';
export {
  type ClientLiveStream,
  type LiveCalls,
  type LiveStream,
  type LiveStreamHandlers,
  type LiveStreamService,
  LogStreamData,
  LogStreamResponse,
  type ServerLiveStream,
  TerminalStreamData,
} from './streams/live-streams.ts';
export { defaultMaxMessageBytes, type EventStream, type PauseReason, type SessionHandlers } from './streams/stream.ts';
export type { ClientTls, ServerTls } from './tls.ts';
export {
  asksForCipherSuites,
  cipherSuiteCatalogue,
  parseTlsSettings,
  type TlsSettings,
  type TlsVersion,
} from './tls-settings.ts';
