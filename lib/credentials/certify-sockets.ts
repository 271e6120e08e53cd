import type { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Server, TLSSocket } from 'node:tls';
import { remoteAddressOf } from '../base/index.ts';
import type { CertifiedPort, EndUse, Judgement } from './open-connections.ts';

/** What is known of a client's certificate. */
export interface SocketCertificate {
  readonly certificate: X509Certificate;
  /** Why it does not count now. */
  readonly problem: Judgement;
  /** Sets how the connection is ended when the certificate does not count any more. Default: it is destroyed. */
  endWith(end: EndUse): void;
}

/**
 * Hands every connection of a TLS server with a verified client certificate to the port that watches it. Call it before other
 * listeners of the connections are set.
 * @returns finds the certificate of a connection; undefined when none was verified
 */
export function certifySockets(server: Server, port: CertifiedPort): (socket: object) => SocketCertificate | undefined {
  const known = new WeakMap<object, SocketCertificate>();
  const accepted = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    const [key, now] = [remoteAddressOf(socket), performance.now()];
    accepted.set(key, now);
    socket.once('close', () => {
      // The address and port may be in use again.
      if (accepted.get(key) === now) {
        accepted.delete(key);
      }
    });
  });
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
    if (certificate === undefined) {
      return;
    }
    const key = remoteAddressOf(socket);
    let end: EndUse = () => socket.destroy();
    const problem = port.opened({
      certificate,
      address: key,
      since: accepted.get(key) ?? Number.NEGATIVE_INFINITY,
      end: (reason) => end(reason),
      onClose: (closed) => void socket.once('close', closed),
    });
    known.set(socket, {
      certificate,
      problem,
      endWith: (other) => {
        end = other;
      },
    });
  });
  return (socket) => known.get(socket);
}
