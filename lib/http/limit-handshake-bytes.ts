import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Server, TLSSocket } from 'node:tls';
import { networkOf } from '../base/index.ts';
import { ConnectionTurns } from './connection-turns.ts';
import type { RefusalLog } from './refusal-log.ts';
import { refuseRenegotiation } from './refuse-renegotiation.ts';

/**
 * What a client may send until its TLS handshake is complete. A leaf with two authorities, each with RSA 4096, and a key share of
 * post-quantum cryptography are 9 KiB.
 */
export const mostHandshakeBytes = 16 * 1024;

type Done = (error?: Error | null) => void;

/**
 * Limits what a client of a TLS server may send until its handshake is complete, to be called last, when the server has all its
 * listeners. OpenSSL checks a chain of certificates before it asks who vouches for it, and takes up to 100 KB: every name of a
 * stranger's certificate against every constraint of the authorities that he has made. Node has no setting for less. What has come is
 * read in turns ({@link ConnectionTurns}). And nobody asks for a second handshake on a connection.
 */
export function limitHandshakeBytes(server: Server, refusals: RefusalLog): void {
  const turns = new ConnectionTurns();
  const listeners = server.listeners('connection') as ((socket: Duplex) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const gate = new HandshakeGate(socket, turns, () =>
      refusals.add('its handshake is too large', networkOf(socket.remoteAddress ?? '')),
    );
    for (const listener of listeners) {
      listener.call(server, gate);
    }
  });
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    refuseRenegotiation(socket);
    nameAddress(socket)?.open();
  });
  server.prependListener('tlsClientError', (_error: Error, socket: TLSSocket) => void nameAddress(socket));
}

/** A client's socket as TLS sees it: until the handshake is complete, no more comes through than may. */
class HandshakeGate extends Duplex {
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
  readonly #socket: Socket;
  readonly #turns: ConnectionTurns;
  readonly #refused: () => void;
  #left = mostHandshakeBytes;
  #isOpen = false;
  #isWaiting = false;
  #leaveQueue: (() => void) | undefined;

  constructor(socket: Socket, turns: ConnectionTurns, refused: () => void) {
    super();
    this.#socket = socket;
    this.#turns = turns;
    this.#refused = refused;
    this.remoteAddress = socket.remoteAddress;
    this.remotePort = socket.remotePort;
    socket.pause();
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    socket.once('end', () => this.push(null));
    socket.once('error', (error) => this.destroy(error));
    socket.once('close', () => this.destroy());
  }

  /** The handshake is complete. */
  open(): void {
    this.#isOpen = true;
  }

  override _read(): void {
    if (!this.#isWaiting) {
      this.#socket.resume();
    }
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.#socket.write(bytes, done);
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: Done): void {
    this.#socket.cork();
    for (const [index, { chunk }] of chunks.entries()) {
      this.#socket.write(chunk, index === chunks.length - 1 ? done : undefined);
    }
    this.#socket.uncork();
  }

  override _final(done: Done): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#leaveQueue?.();
    this.#socket.destroy();
    done(error);
  }

  #take(bytes: Buffer): void {
    if (this.#isOpen) {
      this.#pass(bytes);
      return;
    }
    this.#socket.pause();
    this.#isWaiting = true;
    this.#leaveQueue = this.#turns.enter(this.remoteAddress ?? '', () => {
      this.#isWaiting = false;
      this.#takeOfHandshake(bytes);
    });
  }

  #takeOfHandshake(bytes: Buffer): void {
    const first = bytes.subarray(0, this.#left);
    this.#left -= first.length;
    this.#socket.resume();
    // TLS reads it at once. What the client has sent behind its handshake may be of any size.
    this.#pass(first);
    if (first.length === bytes.length) {
      return;
    }
    if (this.#isOpen) {
      this.#pass(bytes.subarray(first.length));
    } else {
      this.#refused();
      this.destroy();
    }
  }

  #pass(bytes: Buffer): void {
    if (!this.push(bytes)) {
      this.#socket.pause();
    }
  }
}

/** Gives a TLS socket the address of its client, which Node does not look for behind a stream. */
function nameAddress(socket: TLSSocket): HandshakeGate | undefined {
  const gate = (socket as unknown as TlsInternals)._handle?._parentWrap?.stream;
  if (!(gate instanceof HandshakeGate)) {
    return undefined;
  }
  const { remoteAddress, remotePort } = gate;
  Object.defineProperties(socket, { remoteAddress: { value: remoteAddress }, remotePort: { value: remotePort } });
  return gate;
}

/** What Node has inside a TLS socket whose client comes through a stream. */
interface TlsInternals {
  readonly _handle?: { readonly _parentWrap?: { readonly stream?: unknown } } | null;
}
