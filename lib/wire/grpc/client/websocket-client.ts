import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { WebSocket } from 'ws';
import { onAbort } from '../../../base/index.ts';
import { type KeepaliveTiming, watchWebSocket } from '../keepalive.ts';
import { GrpcError, grpcStatus } from '../status.ts';
import {
  halfCloseFrame,
  maxWebSocketBytes,
  maxWebSocketMessageBytes,
  readFrame,
  webSocketBuffer,
  webSocketProtocol,
} from '../websocket-frames.ts';
import { callHeaders, type GrpcTransport, type TransportOptions } from './client.ts';
import { ClientCall } from './client-call.ts';
import type { ClientChannel, ClientChannelListener } from './client-channel.ts';
import { openSocket } from './socket.ts';

/** How long the server may take to close after the status. */
const closeTimeoutMs = 5000;

/**
 * gRPC for networks that let only HTTP/1.1 through: every call opens a WebSocket of its own, so nothing is connected before
 * the first call. The failures of all calls are `failure`, the last one counts.
 */
export function webSocketTransport(options: TransportOptions): GrpcTransport {
  const { host, port, tls, signal } = options;
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const channels = new Set<WebSocketClientChannel>();
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  let failure: Error | undefined;
  let isClosed = false;
  const destroy = () => {
    isClosed = true;
    for (const channel of channels) {
      channel.destroy();
    }
    resolve();
  };
  void closed.then(onAbort(signal, destroy));
  return {
    call(path, headers) {
      if (isClosed) {
        throw new GrpcError(grpcStatus.unavailable, 'the connection is closed', { isConnectionLoss: true });
      }
      const channel = new WebSocketClientChannel({
        url: `${tls === 'plaintext' ? 'ws' : 'wss'}://${authority}${path}`,
        headers: { ...callHeaders(options, headers), 'sec-websocket-protocol': webSocketProtocol },
        open: () => openSocket({ ...options, proxy: options.proxy, protocol: 'http/1.1' }),
        timeoutMs: options.timeoutMs,
        keepalive: options.keepalive,
        failed(error) {
          failure = error;
        },
        ended: () => channels.delete(channel),
      });
      channels.add(channel);
      return new ClientCall(channel, { gzip: options.compression, maxMessageBytes: options.maxMessageBytes });
    },
    get failure() {
      return failure;
    },
    closed,
    destroy,
  };
}

interface ChannelOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  open(): Promise<Socket>;
  readonly timeoutMs: number;
  readonly keepalive: KeepaliveTiming;
  failed(error: Error): void;
  ended(): void;
}

/** A call over a WebSocket of its own. */
class WebSocketClientChannel implements ClientChannel {
  readonly maxMessageBytes = maxWebSocketMessageBytes;
  readonly #options: ChannelOptions;
  #listener: ClientChannelListener | undefined;
  #webSocket: WebSocket | undefined;
  /** Frames that wait for the WebSocket to open. */
  #waiting: Buffer[] = [];
  #hasResponded = false;
  #isReading = false;
  #isPaused = false;
  #isHalfClosed = false;
  #isFull = false;
  #isGone = false;
  #cause: Error | undefined;

  constructor(options: ChannelOptions) {
    this.#options = options;
    options.open().then(
      (socket) => this.#connected(socket),
      (error: unknown) => this.#end(error instanceof Error ? error : new Error(String(error))),
    );
  }

  get isGone(): boolean {
    return this.#isGone || this.#isHalfClosed;
  }

  attach(listener: ClientChannelListener): void {
    this.#listener = listener;
  }

  read(): void {
    this.#isReading = true;
    this.#flow();
  }

  pause(): void {
    this.#isPaused = true;
    this.#flow();
  }

  resume(): void {
    this.#isPaused = false;
    this.#flow();
  }

  write(frame: Buffer): boolean {
    const webSocket = this.#webSocket;
    if (webSocket?.readyState === WebSocket.OPEN) {
      webSocket.send(frame, () => this.#sent(webSocket));
      this.#isFull = webSocket.bufferedAmount > webSocketBuffer.fullBytes;
    } else {
      this.#waiting.push(frame);
      this.#isFull = true;
    }
    return !this.#isFull;
  }

  halfClose(): void {
    if (this.isGone) {
      return;
    }
    this.write(halfCloseFrame);
    this.#isHalfClosed = true;
  }

  cancel(): void {
    this.destroy();
  }

  destroy(): void {
    if (this.#webSocket === undefined) {
      this.#end(undefined);
    } else {
      this.#webSocket.terminate();
    }
  }

  #connected(socket: Socket): void {
    if (this.#isGone) {
      socket.destroy();
      return;
    }
    const webSocket = new WebSocket(this.#options.url, {
      createConnection: () => socket,
      // Set by hand: asked for through the library it would have to be confirmed, which no server of argocd-agent does.
      headers: { ...this.#options.headers },
      handshakeTimeout: this.#options.timeoutMs,
      perMessageDeflate: false,
      followRedirects: false,
      maxPayload: maxWebSocketBytes,
    });
    this.#webSocket = webSocket;
    let stop: () => void = () => undefined;
    webSocket.on('open', () => {
      stop = watchWebSocket(webSocket, socket, this.#options.keepalive, () => {
        this.#cause = Object.assign(new Error('the connection does not answer any more'), { code: 'ETIMEDOUT' });
      });
      this.#flow();
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const frame of waiting) {
        webSocket.send(frame, () => this.#sent(webSocket));
      }
      this.#listener?.opened();
    });
    webSocket.on('unexpected-response', (_request, response: IncomingMessage) => {
      this.#listener?.headers(response.statusCode ?? 0, {});
      response.destroy();
      webSocket.terminate();
    });
    webSocket.on('message', (data: Buffer, isBinary: boolean) => this.#receive(webSocket, data, isBinary));
    webSocket.on('error', (error) => {
      this.#cause ??= error;
    });
    webSocket.on('close', () => {
      stop();
      this.#end(this.#cause);
    });
  }

  #sent(webSocket: WebSocket): void {
    if (!this.#isFull || webSocket.bufferedAmount > webSocketBuffer.freeBytes) {
      return;
    }
    this.#isFull = false;
    if (!this.isGone) {
      this.#listener?.drain();
    }
  }

  #flow(): void {
    if (this.#isReading && !this.#isPaused) {
      this.#webSocket?.resume();
    } else {
      this.#webSocket?.pause();
    }
  }

  /** The first metadata are the headers, unless they hold the status; the next ones are the trailers. */
  #receive(webSocket: WebSocket, data: Buffer, isBinary: boolean): void {
    if (this.#isGone) {
      return;
    }
    try {
      const message = readFrame(data, isBinary);
      if (message.kind === 'data') {
        this.#listener?.data(message.frame);
      } else if (message.kind === 'metadata') {
        if (this.#hasResponded) {
          this.#listener?.trailers(message.metadata);
        } else {
          this.#listener?.headers(200, message.metadata);
        }
        this.#hasResponded = true;
        if (message.metadata['grpc-status'] !== undefined) {
          this.#finish(webSocket);
        }
      }
    } catch (error) {
      this.#cause ??= error instanceof Error ? error : new Error(String(error));
      webSocket.terminate();
    }
  }

  /** The status is here, so the call is over; the WebSocket ends by itself. */
  #finish(webSocket: WebSocket): void {
    webSocket.resume();
    webSocket.close(1000);
    const linger = setTimeout(() => webSocket.terminate(), closeTimeoutMs).unref();
    webSocket.once('close', () => clearTimeout(linger));
    this.#end(undefined);
  }

  #end(cause: Error | undefined): void {
    if (this.#isGone) {
      return;
    }
    this.#isGone = true;
    this.#waiting = [];
    if (cause !== undefined) {
      this.#options.failed(cause);
    }
    this.#options.ended();
    this.#listener?.closed({ code: grpcStatus.unavailable, details: 'the connection broke', cause });
  }
}
