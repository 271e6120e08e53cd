import type { ClientInfo } from '../../../auth/index.ts';
import type { ServerConnection } from './connection.ts';
import type { ServerCall } from './server-call.ts';

/** The caller of a call, as methods of authentication see it. */
export function peerOf(call: ServerCall, connection: ServerConnection): ClientInfo {
  return {
    address: connection.address,
    encrypted: connection.encrypted,
    ...(connection.certificate === undefined ? undefined : { certificate: connection.certificate }),
    header: (name) => call.header(name),
    isGone: () => call.isOver,
  };
}
