import type { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { remoteAddressOf } from '../../../base/index.ts';
import type { Judgement, SocketCertificate } from '../../../credentials/index.ts';
import { grpcStatus } from '../status.ts';
import type { ServerCall } from './server-call.ts';

/** A client's connection. */
export interface ServerConnection {
  /** `address:port`. */
  readonly address: string;
  readonly encrypted: boolean;
  /** Present when the client sent a certificate and it was verified. */
  readonly certificate?: X509Certificate;
  /** Why the requested certificate is missing, or does not count now; undefined while there is one that does. */
  readonly certificateProblem: Judgement;
  /** Whether all calls of a client come over one connection (HTTP/2), not each over one of its own. */
  readonly isShared: boolean;
  /** Whether a call has authenticated. */
  readonly isAuthenticated: boolean;
  /** Call it when a call has authenticated: the limits for unauthenticated connections end. */
  authenticated(): void;
  /** Calls back when the connection has closed, at once if it has already. */
  onClose(listener: () => void): void;
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

/**
 * The known facts about the peer of a socket.
 * @param certified its certificate, when one was verified
 */
export function describePeer(
  socket: Socket,
  certified: SocketCertificate | undefined,
): Pick<ServerConnection, 'address' | 'encrypted' | 'certificate' | 'certificateProblem'> {
  const address = remoteAddressOf(socket);
  if (!(socket instanceof TLSSocket)) {
    return { address, encrypted: false, certificateProblem: () => undefined };
  }
  if (certified !== undefined) {
    return { address, encrypted: true, certificate: certified.certificate, certificateProblem: certified.problem };
  }
  const certificate = socket.getPeerX509Certificate();
  const reason =
    certificate === undefined
      ? 'the client presented no certificate'
      : certificateProblem(String(socket.authorizationError), certificate);
  return { address, encrypted: true, certificateProblem: () => ({ code: 'certificate', reason }) };
}

/** How long a connection that is ended may take to tell its client why. */
const farewellMs = 100;

/** The calls of a connection, which all end with it. */
export class ConnectionCalls {
  readonly #calls = new Set<ServerCall>();

  /** A call has begun. */
  began(call: ServerCall): void {
    this.#calls.add(call);
    call.onOver(() => this.#calls.delete(call));
  }

  /** Ends all calls, with a status that every agent comes back from, and then the connection. */
  end(reason: string, destroy: () => void): void {
    for (const call of [...this.#calls]) {
      call.finish(grpcStatus.unavailable, reason);
    }
    setTimeout(destroy, farewellMs).unref();
  }
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
