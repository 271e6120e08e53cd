import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { Logger } from '../../../base/index.ts';
import type { SocketCertificate } from '../../../credentials/index.ts';
import { type KeepaliveTiming, watchSession } from '../keepalive.ts';
import { connectionWindowBytes, sessionMemoryMegabytes, streamWindowBytes } from '../windows.ts';
import { ConnectionCalls, describePeer, Idleness, onSocketClose, type ServerConnection } from './connection.ts';
import { watchPings } from './ping-policy.ts';
import type { ReceiveBudget } from './receive-budget.ts';
import { ServerCall } from './server-call.ts';
import type { ChannelListener, ServerChannel } from './server-channel.ts';

/** Open calls of one client: its event stream, renewals of tokens, and live logs and terminals of many users. */
const maxConcurrentStreams = 1_000;
/** The same before authentication: enough to log in. Each call may use as much memory as its headers. */
const maxUnauthenticatedStreams = 8;
/** Headers of a request: a token and what proxies add. */
const maxHeaderListBytes = 32 * 1024;
/** gRPC has ten, and proxies add some. */
const maxHeaderListPairs = 48;
/** What HTTP/2 counts for a header beside its name and value. */
const headerOverheadBytes = 32;
/** How long a connection that is asked to end may take. */
const shutdownGraceMs = 1000;
/** How long a client may go on sending after its call has ended. */
const lingerMs = 1000;

/** A connection that speaks HTTP/2. */
export interface Http2Connection {
  /** Ends it when its calls have ended. */
  close(): void;
}

/** Serves the calls of one connection; `serve` is called for each. */
export function serveHttp2(
  socket: Socket,
  options: {
    readonly keepalive: KeepaliveTiming;
    /** Shortest allowed time between pings of the client (`--keepalive-min-interval`); undefined for our own default. */
    readonly minPingIntervalMs: number | undefined;
    readonly idleMs: number;
    readonly budget: ReceiveBudget;
    /** The client's certificate, when one was verified. */
    readonly certified: SocketCertificate | undefined;
    readonly logger: Logger;
    /** A call has come in. */
    called(): void;
    /** The client is authenticated. */
    authenticated(): void;
    serve(call: ServerCall, connection: ServerConnection): void;
  },
): Http2Connection {
  const { logger, certified } = options;
  const session = performServerHandshake(socket, {
    settings: {
      initialWindowSize: streamWindowBytes,
      maxConcurrentStreams: maxUnauthenticatedStreams,
      maxHeaderListSize: maxHeaderListBytes,
    },
    maxSessionMemory: sessionMemoryMegabytes,
    maxHeaderListPairs,
  });
  let isAuthenticated = false;
  const connection: ServerConnection = {
    ...describePeer(socket, certified),
    isShared: true,
    onClose: onSocketClose(socket),
    get isAuthenticated() {
      return isAuthenticated;
    },
    authenticated() {
      if (isAuthenticated || session.destroyed) {
        return;
      }
      isAuthenticated = true;
      // Before this an unauthenticated client has the small default window of HTTP/2.
      session.setLocalWindowSize(connectionWindowBytes);
      session.settings({ maxConcurrentStreams });
      options.authenticated();
    },
  };
  const calls = new ConnectionCalls();
  certified?.endWith((reason) => {
    calls.end(reason, () => session.destroy());
    session.close();
  });
  const about = { peer: connection.address };
  const stopWatching = watchSession(session, options.keepalive, () =>
    logger.warn(about, 'A connection does not answer any more and is cut off'),
  );
  const pings = watchPings(session, options.minPingIntervalMs, () =>
    logger.warn(
      { ...about, hint: "Raise the agent's --keep-alive-ping-interval, or lower --keepalive-min-interval." },
      'A client pings too often and is cut off',
    ),
  );
  const idleness = new Idleness(options.idleMs, () => closeInTime(session));
  session.on('error', (error) => logger.debug({ ...about, error }, 'A connection broke'));
  session.on('close', () => {
    stopWatching();
    idleness.stop();
  });
  session.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _: number, raw: readonly string[]) => {
    options.called();
    idleness.callBegan();
    stream.once('close', () => idleness.callEnded());
    const channel = new Http2ServerChannel(stream, headers, pings.written);
    // Node looks at the limit only after the client has acknowledged it.
    if (headerListBytes(raw) > maxHeaderListBytes) {
      stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    } else if (isGrpc(headers)) {
      const call = new ServerCall(channel, options.budget);
      calls.began(call);
      options.serve(call, connection);
    } else {
      channel.refuseContent();
    }
  });
  return { close: () => session.close() };
}

function closeInTime(session: ServerHttp2Session): void {
  session.close();
  // A client that does not complete the HTTP/2 preface does not complete a graceful shutdown either.
  setTimeout(() => session.destroy(), shutdownGraceMs).unref();
}

/** The size of headers as HTTP/2 counts it, from their names and values in turn. */
function headerListBytes(raw: readonly string[]): number {
  let bytes = (raw.length / 2) * headerOverheadBytes;
  for (const text of raw) {
    bytes += text.length;
  }
  return bytes;
}

function isGrpc(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type'];
  return headers[':method'] === 'POST' && /^application\/grpc(\+proto)?($|;)/.test(type ?? '');
}

/** A call over a stream of HTTP/2. */
class Http2ServerChannel implements ServerChannel {
  readonly path: string;
  readonly maxMessageBytes = Number.POSITIVE_INFINITY;
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #written: () => void;

  /** @param written is called whenever something is sent */
  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, written: () => void) {
    this.path = headers[':path'] ?? '';
    this.#stream = stream;
    this.#headers = headers;
    this.#written = written;
    // Before a listener is set: a stream may be reset at any moment.
    stream.on('error', () => undefined);
  }

  /** Whether the stream cannot be written to any more; Node throws then. A stream is closed before it is destroyed. */
  get isGone(): boolean {
    return this.#stream.closed || this.#stream.destroyed;
  }

  header(name: string): string | undefined {
    const value = this.#headers[name];
    return Array.isArray(value) ? value[0] : value;
  }

  onGone(listener: () => void): void {
    // A reset by the peer arrives as one or more of these.
    for (const event of ['aborted', 'error', 'close']) {
      this.#stream.on(event, listener);
    }
  }

  read(listener: ChannelListener): void {
    this.#stream.on('drain', () => listener.drain());
    this.#stream.on('data', (chunk: Buffer) => listener.data(chunk));
    this.#stream.on('end', () => listener.end());
    // Node emits the end of an empty request at once, before a listener is set.
    if (this.#stream.readableEnded) {
      queueMicrotask(() => listener.end());
    }
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  respond(headers: Readonly<Record<string, string>>): void {
    this.#written();
    this.#stream.respond({ ':status': 200, ...headers }, { waitForTrailers: true });
  }

  write(frame: Buffer): boolean {
    this.#written();
    return this.#stream.write(frame);
  }

  finish(trailers: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> | undefined): void {
    this.#written();
    const stream = this.#stream;
    if (headers === undefined) {
      stream.once('wantTrailers', () => {
        if (!this.isGone) {
          stream.sendTrailers(trailers);
        }
      });
      stream.end();
    } else {
      stream.respond({ ':status': 200, ...headers, ...trailers }, { endStream: true });
    }
    stream.resume();
    const linger = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), lingerMs).unref();
    stream.once('close', () => clearTimeout(linger));
  }

  /** Answers a request that is not for gRPC, with the HTTP status that gRPC asks for. */
  refuseContent(): void {
    if (!this.isGone) {
      this.#stream.respond({ ':status': 415 }, { endStream: true });
    }
  }
}
