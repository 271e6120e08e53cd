import type { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { hostPort, networkOf, plainAddress } from '../../../base/index.ts';

/** A client's connection. */
export interface ServerConnection {
  /** `address:port`. */
  readonly address: string;
  readonly encrypted: boolean;
  /** Present when the client sent a certificate and it was verified. */
  readonly certificate?: X509Certificate;
  /** Why the requested certificate is missing or invalid; undefined when there is one and it is valid. */
  readonly certificateProblem?: string;
  /** Whether all calls of a client come over one connection (HTTP/2), not each over one of its own. */
  readonly isShared: boolean;
  /** Whether a call has authenticated. */
  readonly isAuthenticated: boolean;
  /** Call it when a call has authenticated: the limits for unauthenticated connections end. */
  authenticated(): void;
  /** Calls back when the connection has closed, at once if it has already. */
  onClose(listener: () => void): void;
}

const strangerMark = 'stranger ';

/**
 * The client that a connection belongs to, as far as that is known: who shares the server's time with whom. The connections of a
 * network that have shown neither a certificate nor a login are one client, a stranger: otherwise each would be one of its own.
 */
export function clientOf({
  certificate,
  address,
  isAuthenticated,
}: Pick<ServerConnection, 'certificate' | 'address' | 'isAuthenticated'>): string {
  if (certificate !== undefined) {
    return certificate.fingerprint256;
  }
  return isAuthenticated ? address : `${strangerMark}${networkOf(address.slice(0, address.lastIndexOf(':')))}`;
}

/** Whether a client of {@link clientOf} is one that has shown nothing. */
export function isStranger(client: string): boolean {
  return client.startsWith(strangerMark);
}

/** See {@link ServerConnection.onClose}. */
export function onSocketClose(socket: Duplex): ServerConnection['onClose'] {
  return (listener) => {
    if (socket.destroyed) {
      listener();
    } else {
      socket.once('close', listener);
    }
  };
}

/** The known facts about the peer of a socket. */
export function describePeer(
  socket: Socket,
): Pick<ServerConnection, 'address' | 'encrypted' | 'certificate' | 'certificateProblem'> {
  const address = remoteAddressOf(socket);
  if (!(socket instanceof TLSSocket)) {
    return { address, encrypted: false };
  }
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) {
    return { address, encrypted: true, certificateProblem: 'the client presented no certificate' };
  }
  if (socket.authorized) {
    return { address, encrypted: true, certificate };
  }
  const reason = certificateProblem(String(socket.authorizationError), certificate);
  return { address, encrypted: true, certificateProblem: reason };
}

/** `address:port` of the other end of a socket; an IPv6 address is in brackets. */
export function remoteAddressOf(socket: {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}): string {
  return hostPort(plainAddress(socket.remoteAddress ?? 'unknown'), socket.remotePort ?? 0);
}

/**
 * Ends a connection that has had no call for a while, so that unused connections do not use up the limit.
 */
export class Idleness {
  readonly #idleMs: number;
  readonly #close: () => void;
  #calls = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(idleMs: number, close: () => void) {
    this.#idleMs = idleMs;
    this.#close = close;
    this.#wait();
  }

  /** Whether the connection has no open call. */
  get isIdle(): boolean {
    return this.#calls === 0;
  }

  /** A call has begun. */
  callBegan(): void {
    this.#calls++;
    clearTimeout(this.#timer);
  }

  /** A call has ended. */
  callEnded(): void {
    this.#calls--;
    if (this.#calls === 0) {
      this.#wait();
    }
  }

  /** The connection has ended. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#calls = Number.POSITIVE_INFINITY;
  }

  #wait(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#close, this.#idleMs).unref();
  }
}

function certificateProblem(code: string, certificate: X509Certificate): string {
  const subject = onOneLine(certificate.subject);
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return `the certificate of "${subject}" expired on ${certificate.validTo}`;
    case 'CERT_NOT_YET_VALID':
      return `the certificate of "${subject}" is not valid before ${certificate.validFrom}`;
    case 'INVALID_PURPOSE':
      return `the certificate of "${subject}" is not meant for clients (extended key usage)`;
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'CERT_SIGNATURE_FAILURE': {
      const issuer = onOneLine(certificate.issuer);
      return `the certificate of "${subject}" was issued by "${issuer}", which is not a CA that this principal trusts`;
    }
    default:
      return `the certificate of "${subject}" was refused (${code})`;
  }
}

/** A name in a certificate. Node gives nothing for an empty one, whatever its types say. */
function onOneLine(name: string | undefined): string {
  return (name ?? '').replaceAll('\n', ', ');
}
