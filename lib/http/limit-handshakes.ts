import type { Socket } from 'node:net';
import type { Server, TLSSocket } from 'node:tls';
import { BoundedMap, remoteAddressOf } from '../base/index.ts';
import { refuseRenegotiation } from './refuse-renegotiation.ts';

/** Clients complete a handshake at once. */
const mostHandshakes = 1_000;

/**
 * Limits the connections of a server whose TLS handshake is not complete: above 1,000 the oldest makes room. Otherwise whoever
 * reaches the port could take all connections that the server accepts, without a certificate or a password.
 * @returns ends these connections. A server that closes would wait for them: they are none of HTTP yet.
 */
export function limitHandshakes(server: Server): () => void {
  const open = new BoundedMap<string, Socket>(mostHandshakes, (_, socket) => socket.destroy());
  server.on('connection', (socket: Socket) => {
    const key = remoteAddressOf(socket);
    open.set(key, socket);
    socket.once('close', () => {
      // The address and port may be in use again.
      if (open.get(key) === socket) {
        open.delete(key);
      }
    });
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    open.delete(remoteAddressOf(socket));
    refuseRenegotiation(socket);
  });
  return () => {
    for (const socket of open.values()) {
      socket.destroy();
    }
  };
}
