export type { PrincipalInfo, WireClientOptions } from './client-options.ts';
export { type CloudEvent, decodeEvent, encodeEvent } from './codec.ts';
export { WireError, type WireErrorCode } from './errors.ts';
export {
  agentSource,
  dataOf,
  eventTypes,
  isAcknowledgement,
  principalSource,
  type Target,
  targets,
  type WireEvent,
} from './event.ts';
export type { ConnectionLimits } from './grpc/admission.ts';
export { GrpcError, type GrpcStatusCode, grpcStatus } from './grpc/status.ts';
export { secureContextOptions } from './grpc/tls-options.ts';
export { eventIdOf, type IdentifiedMetadata, resourceIdOf, sentAt } from './ids.ts';
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
} from './live-streams.ts';
export {
  acknowledgement,
  type EventObject,
  heartbeatEvent,
  messageEvent,
  type ObjectTarget,
  type Origin,
  objectEvent,
} from './make.ts';
export type { ObservedCall } from './observe.ts';
export { runWireClient } from './run-client.ts';
export { serveWire } from './serve.ts';
export type { Refusal, Session, WireServer, WireServerOptions } from './server-options.ts';
export { defaultMaxMessageBytes, type EventStream, type SessionHandlers, type WireLogger } from './stream.ts';
export type { ClientTls, ServerTls } from './tls.ts';
export {
  asksForCipherSuites,
  cipherSuiteCatalogue,
  parseTlsSettings,
  type TlsSettings,
  type TlsVersion,
} from './tls-settings.ts';
