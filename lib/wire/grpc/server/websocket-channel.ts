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
import { IncomingFrames } from './incoming-frames.ts';
import type { ChannelListener, ServerChannel } from './server-channel.ts';

/** Bytes that are gathered above the limit of messages. A client whose call has ended, or was never read, may send only these. */
const marginBytes = 64 * 1024;
/** How long a client may take to see the status that sends more than it may. */
const lingerMs = 1000;
const webSocketOptions = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  /** See `#mostBytes` for what counts. */
  maxPayload: maxWebSocketBytes,
  // argocd-agent's agents expect that the subprotocol is not confirmed.
  handleProtocols: () => false as const,
  /** Time limit, in ms, for the client to read the sent data and to close. */
  closeTimeout: 10_000,
};

/**
 * A call over a WebSocket of its own. The request to upgrade is answered only when the call is first used. How much of a message is gathered
 * depends on whether its client may be here.
 */
export class WebSocketServerChannel implements ServerChannel {
  readonly path: string;
  readonly maxMessageBytes = maxWebSocketMessageBytes;
  readonly #request: IncomingMessage;
  readonly #socket: Socket;
  readonly #head: Buffer;
  readonly #keepalive: KeepaliveTiming;
  readonly #dead: () => void;
  readonly #incoming = new IncomingFrames();
  /** Bytes of an incomplete message that are gathered. */
  #mostBytes = marginBytes;
  #webSocket: WebSocket | undefined;
  #gone: () => void = () => undefined;
  #isFull = false;
  #isPaused = false;
  #isFinished = false;
  /** Runs while a client that sends too much may see its status. */
  #linger: NodeJS.Timeout | undefined;
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
    this.#mostBytes = Math.min(maxMessageBytes + marginBytes, maxWebSocketBytes);
    const webSocket = this.#open();
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
    // Nothing is delivered before somebody listens, or after the end.
    if (this.#listener !== undefined && !this.#isFinished) {
      this.#webSocket?.resume();
    }
  }

  respond(headers: Readonly<Record<string, string>>): void {
    this.write(encodeMetadataFrame(headers));
  }

  write(frame: Buffer): boolean {
    const webSocket = this.#open();
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
    this.#mostBytes = marginBytes;
    const webSocket = this.#open();
    webSocket?.send(encodeMetadataFrame({ ...headers, ...trailers }));
    webSocket?.resume();
    webSocket?.close(1000);
    this.#limit();
  }

  /** The WebSocket; undefined when the request cannot be upgraded and was answered with an error. */
  #open(): WebSocket | undefined {
    if (this.#webSocket !== undefined) {
      return this.#webSocket;
    }
    if (this.isGone) {
      return undefined;
    }
    const server = new WebSocketServer(webSocketOptions);
    server.handleUpgrade(this.#request, this.#socket, this.#head, (webSocket) => this.#opened(webSocket));
    return this.#webSocket;
  }

  #opened(webSocket: WebSocket): void {
    this.#webSocket = webSocket;
    webSocket.pause();
    const stop = watchWebSocket(webSocket, this.#socket, this.#keepalive, this.#dead);
    webSocket.on('message', (data: Buffer, isBinary: boolean) => this.#receive(data, isBinary));
    // Before the library gathers it.
    this.#socket.prependListener('data', (chunk: Buffer) => {
      this.#incoming.take(chunk);
      this.#listener?.partial(this.#incoming.incompleteBytes);
      this.#limit();
    });
    // What breaks the rules of WebSocket ends it.
    webSocket.on('error', () => undefined);
    webSocket.on('close', () => {
      stop();
      clearTimeout(this.#linger);
      this.#gone();
    });
  }

  /** Refuses a message as soon as more of it has arrived than may be gathered. */
  #limit(): void {
    if (this.#incoming.incompleteBytes <= this.#mostBytes) {
      return;
    }
    if (!this.#isFinished) {
      const message = `a message has more than the limit of ${this.#mostBytes - marginBytes} bytes`;
      this.#listener?.unreadable(new GrpcError(grpcStatus.resourceExhausted, message));
      return;
    }
    const webSocket = this.#webSocket;
    webSocket?.pause();
    this.#linger ??= setTimeout(() => webSocket?.terminate(), lingerMs).unref();
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
