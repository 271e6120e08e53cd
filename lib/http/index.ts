/** Servers of HTTP, each with limits on what its clients may use up. It knows no program. */
export { type BoundedServer, type BoundedServerOptions, boundedServer, type HttpLimits } from './bounded-server.ts';
export { ConnectionTurns } from './connection-turns.ts';
export { type ConnectionCaps, limitConnections } from './limit-connections.ts';
export { limitHandshakeBytes } from './limit-handshake-bytes.ts';
export { limitHandshakes } from './limit-handshakes.ts';
export { limitRequests, type RequestCaps } from './limit-requests.ts';
export { NetworkShares } from './network-shares.ts';
export { RefusalLog } from './refusal-log.ts';
export { refuseRenegotiation } from './refuse-renegotiation.ts';
