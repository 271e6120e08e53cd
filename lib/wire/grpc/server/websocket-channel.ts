import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { type KeepaliveTiming, watchWebSocket } from '../keepalive.ts';
import { GrpcError, grpcStatus } from '../status.ts';
import {
  encodeMetadataFrame,
  maxWebSocketBytes,
  maxWebSocketMessageBytes,
  readFrame,
  webSocketBuffer,
} from '../websocket-frames.ts';
import type { ChannelListener, ServerChannel } from './server-channel.ts';

/** Bytes that are accepted above the limit, so that a message over it gets a status instead of a broken connection. */
const marginBytes = 64 * 1024;
/** What a piece of an incomplete message counts at least, in bytes: the library keeps each as an object. */
const leastPieceBytes = 256;
const webSocketOptions = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  // argocd-agent's agents expect that the subprotocol is not confirmed.
  handleProtocols: () => false as const,
  /** Time limit, in ms, for the client to read the sent data and to close. */
  closeTimeout: 10_000,
};

/**
 * A call over a WebSocket of its own. The request to upgrade is answered only when the call is first used, because how much
 * a client may send at once depends on whether it may be here.
 */
export class WebSocketServerChannel implements ServerChannel {
  readonly path: string;
  readonly maxMessageBytes = maxWebSocketMessageBytes;
  readonly #request: IncomingMessage;
  readonly #socket: Socket;
  readonly #head: Buffer;
  readonly #keepalive: KeepaliveTiming;
  readonly #dead: () => void;
  #webSocket: WebSocket | undefined;
  #gone: () => void = () => undefined;
  #isFull = false;
  #isPaused = false;
  #isFinished = false;
  #listener: ChannelListener | undefined;

  /** @param dead the client does not answer any more and is cut off */
  constructor(
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    options: { readonly keepalive: KeepaliveTiming; dead(): void },
  ) {
    this.path = (request.url ?? '').replace(/\?.*/, '');
    this.#request = request;
    this.#socket = socket;
    this.#head = head;
    this.#keepalive = options.keepalive;
    this.#dead = () => options.dead();
    socket.on('error', () => undefined);
    socket.on('close', () => this.#gone());
  }

  get isGone(): boolean {
    if (this.#webSocket !== undefined) {
      return this.#webSocket.readyState !== this.#webSocket.OPEN;
    }
    return this.#socket.destroyed || !this.#socket.writable;
  }

  header(name: string): string | undefined {
    return this.#request.headersDistinct[name]?.[0];
  }

  onGone(listener: () => void): void {
    this.#gone = listener;
  }

  read(listener: ChannelListener, maxMessageBytes: number): void {
    this.#listener = listener;
    const webSocket = this.#open(Math.min(maxMessageBytes + marginBytes, maxWebSocketBytes));
    if (!this.#isPaused) {
      webSocket?.resume();
    }
  }

  pause(): void {
    this.#isPaused = true;
    this.#webSocket?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    // Nothing is delivered before somebody listens.
    if (this.#listener !== undefined) {
      this.#webSocket?.resume();
    }
  }

  respond(headers: Readonly<Record<string, string>>): void {
    this.write(encodeMetadataFrame(headers));
  }

  write(frame: Buffer): boolean {
    const webSocket = this.#open(maxWebSocketBytes);
    if (webSocket === undefined) {
      return false;
    }
    webSocket.send(frame, () => {
      if (!this.#isFull || webSocket.bufferedAmount > webSocketBuffer.freeBytes) {
        return;
      }
      this.#isFull = false;
      if (!this.isGone) {
        this.#listener?.drain();
      }
    });
    this.#isFull = webSocket.bufferedAmount > webSocketBuffer.fullBytes;
    return !this.#isFull;
  }

  finish(trailers: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> | undefined): void {
    this.#isFinished = true;
    const webSocket = this.#open(maxWebSocketBytes);
    webSocket?.send(encodeMetadataFrame({ ...headers, ...trailers }));
    webSocket?.resume();
    webSocket?.close(1000);
  }

  /** The WebSocket; undefined when the request cannot be upgraded and was answered with an error. */
  #open(maxPayload: number): WebSocket | undefined {
    if (this.#webSocket !== undefined) {
      return this.#webSocket;
    }
    if (this.isGone) {
      return undefined;
    }
    const server = new WebSocketServer({ ...webSocketOptions, maxPayload });
    server.handleUpgrade(this.#request, this.#socket, this.#head, (webSocket) => this.#opened(webSocket));
    return this.#webSocket;
  }

  #opened(webSocket: WebSocket): void {
    this.#webSocket = webSocket;
    webSocket.pause();
    const stop = watchWebSocket(webSocket, this.#socket, this.#keepalive, this.#dead);
    let partial = 0;
    webSocket.on('message', (data: Buffer, isBinary: boolean) => {
      partial = 0;
      this.#listener?.partial(0);
      this.#receive(data, isBinary);
    });
    // The library buffers a message until it is complete, without reporting its size so far.
    this.#socket.prependListener('data', (chunk: Buffer) => {
      partial += Math.max(chunk.length, leastPieceBytes);
      this.#listener?.partial(partial);
    });
    // What breaks the rules of WebSocket ends it.
    webSocket.on('error', () => undefined);
    webSocket.on('close', () => {
      stop();
      this.#gone();
    });
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (this.#isFinished) {
      return;
    }
    try {
      const message = readFrame(data, isBinary);
      if (message.kind === 'data') {
        this.#listener?.data(message.frame);
      } else if (message.kind === 'halfClose') {
        this.#listener?.end();
      } else {
        throw new GrpcError(grpcStatus.internal, 'the client sends metadata after its request');
      }
    } catch (error) {
      if (!(error instanceof GrpcError)) {
        throw error;
      }
      this.#listener?.unreadable(error);
    }
  }
}
