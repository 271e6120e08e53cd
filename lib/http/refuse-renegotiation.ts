import type { TLSSocket } from 'node:tls';

/** Ends a connection whose client asks for a second handshake. Nobody has to, and each may cost as much as the first. */
export function refuseRenegotiation(socket: TLSSocket): void {
  socket.disableRenegotiation();
  // Node reports it, and leaves it to the server to end the connection.
  socket.once('error', () => socket.destroy());
}
