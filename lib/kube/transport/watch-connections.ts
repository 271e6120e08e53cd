import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { abortable, onAbort } from '../../base/index.ts';
import { ConnectionError } from '../errors.ts';
import type { HttpBody, HttpRequest, HttpResponse } from './connection.ts';
import { connectionError } from './connection.ts';
import type { Credentials, Identity } from './credentials.ts';

/** How soon a dead connection is detected. */
export interface WatchConnectionOptions {
  /** Time between two pings. */
  pingIntervalMs: number;
  /** Longest wait for the answer to a ping. */
  pingTimeoutMs: number;
  /** Called when a connection turned out dead. */
  onDead: (reason: ConnectionError) => void;
}

/** The negotiated protocol of the connection. */
export type Connected = { session: WatchSession } | { protocol: 'http/1.1' };

const connectTimeoutMs = 10_000;
const lingerMs = 10_000;
/** Servers allow 100 or more; half of it leaves room for streams that are being closed. */
const watchesPerConnection = 50;

/**
 * Connections for watches: HTTP/2, shared by many watches, each kept under observation by pings.
 *
 * A watch may be silent for a minute, which looks the same as a dead connection: TCP keep-alive
 * checks only the kernel of the next hop, and a request on another connection does not test this one. An
 * HTTP/2 ping is answered by the server itself on this very connection.
 */
export class WatchConnections {
  readonly #credentials: Credentials;
  readonly #options: WatchConnectionOptions;
  readonly #sessions = new Set<WatchSession>();
  #connecting: Promise<Connected> | undefined;
  #closed = false;

  constructor(credentials: Credentials, options: WatchConnectionOptions) {
    this.#credentials = credentials;
    this.#options = options;
  }

  /**
   * Sends a request whose answer streams. Resolves to undefined when the server does not speak HTTP/2, to be asked in
   * another way.
   */
  async send(request: HttpRequest): Promise<HttpResponse | undefined> {
    for (;;) {
      request.signal?.throwIfAborted();
      if (this.#closed) {
        throw new ConnectionError('the client is closed', { code: 'CLOSED', sent: false });
      }
      const identity = await this.#credentials.current();
      request.signal?.throwIfAborted();
      for (const session of this.#sessions) {
        if (session.hasRoomFor(identity)) {
          return session.send(request, identity);
        }
      }
      // A caller that arrives while a connection is being made waits for it and checks again.
      this.#connecting ??= this.#connect(identity).finally(() => {
        this.#connecting = undefined;
      });
      const connected = await abortable(this.#connecting, request.signal);
      if ('protocol' in connected) {
        return undefined;
      }
    }
  }

  /** Ends all connections; watches on them fail. */
  close(): void {
    this.#closed = true;
    for (const session of [...this.#sessions]) {
      session.destroy();
    }
  }

  async #connect(identity: Identity): Promise<Connected> {
    const socket = await openTls(this.#credentials.server, identity);
    if (socket.alpnProtocol !== 'h2') {
      socket.destroy();
      return { protocol: 'http/1.1' };
    }
    const session = new WatchSession(socket, this.#credentials.server, identity, this.#options, () =>
      this.#sessions.delete(session),
    );
    if (this.#closed) {
      session.destroy();
    } else {
      this.#sessions.add(session);
    }
    return { session };
  }
}

/** One HTTP/2 connection. */
class WatchSession {
  readonly #session: ClientHttp2Session;
  readonly #fingerprint: string;
  readonly #options: WatchConnectionOptions;
  readonly #server: string;
  #streams = 0;
  #isLeaving = false;
  #receivedAt = performance.now();
  #linger: NodeJS.Timeout | undefined;

  constructor(
    socket: TLSSocket,
    server: string,
    identity: Identity,
    options: WatchConnectionOptions,
    onClosed: () => void,
  ) {
    this.#server = server;
    this.#fingerprint = identity.tlsFingerprint;
    this.#options = options;
    this.#session = connectHttp2(server, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: 4 << 20 },
      maxSessionMemory: 256,
    });
    this.#session.setLocalWindowSize(16 << 20);
    const pings = setInterval(() => this.#ping(), options.pingIntervalMs).unref();
    this.#session.on('goaway', () => {
      this.#isLeaving = true;
      this.#closeWhenUnused();
    });
    // The streams report the error; without a stream it affects no caller.
    this.#session.on('error', () => onClosed());
    this.#session.on('close', () => {
      clearInterval(pings);
      clearTimeout(this.#linger);
      onClosed();
    });
    this.#closeWhenUnused();
  }

  hasRoomFor(identity: Identity): boolean {
    const { closed, destroyed, remoteSettings } = this.#session;
    const room = Math.min(watchesPerConnection, remoteSettings.maxConcurrentStreams ?? watchesPerConnection);
    return (
      !this.#isLeaving && !closed && !destroyed && this.#fingerprint === identity.tlsFingerprint && this.#streams < room
    );
  }

  async send(request: HttpRequest, identity: Identity): Promise<HttpResponse> {
    const what = `${request.method} ${this.#server}${request.path.replace(/\?.*/, '')}`;
    const stream = this.#open(request, identity, what);
    const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
    const timer = setTimeout(
      () => stream.destroy(new ConnectionError(`${what}: no answer`, { code: 'ETIMEDOUT', sent: true })),
      request.timeoutMs,
    );
    let failure: unknown;
    stream.on('response', (head) => {
      clearTimeout(timer);
      const { ':status': status, ...headers } = head;
      resolve({
        status: Number(status),
        headers: headers as Record<string, string>,
        body: this.#bodyOf(stream, what, explain),
      });
    });
    stream.on('error', (error) => {
      failure = error;
    });
    stream.on('close', () => {
      clearTimeout(timer);
      reject(explain(failure));
    });
    const explain = (error: unknown): unknown => {
      if (request.signal?.aborted) {
        return request.signal.reason;
      }
      return connectionError(what, failure ?? error ?? closedEarly(what));
    };
    return promise;
  }

  destroy(error?: Error): void {
    this.#isLeaving = true;
    this.#session.destroy(error);
  }

  #open(request: HttpRequest, identity: Identity, what: string): ClientHttp2Stream {
    // An aborted signal emits no event: without this check the stream would stay open until its timeout.
    request.signal?.throwIfAborted();
    let stream: ClientHttp2Stream;
    try {
      stream = this.#session.request(
        { ...request.headers, ...identity.headers, ':method': request.method, ':path': request.path },
        { endStream: true },
      );
    } catch (error) {
      throw connectionError(what, error);
    }
    this.#streams++;
    clearTimeout(this.#linger);
    this.#session.ref();
    const unlisten = onAbort(request.signal, () => stream.close(constants.NGHTTP2_CANCEL));
    stream.on('close', () => {
      unlisten();
      this.#streams--;
      this.#closeWhenUnused();
    });
    return stream;
  }

  #bodyOf(stream: ClientHttp2Stream, what: string, explain: (error: unknown) => unknown): HttpBody {
    const received = () => {
      this.#receivedAt = performance.now();
    };
    const chunks = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
      try {
        for await (const chunk of stream as AsyncIterable<Uint8Array>) {
          received();
          yield chunk;
        }
        // A stream that we cancel, or whose connection goes away, ends without an error.
        if (stream.aborted || stream.rstCode) {
          throw closedEarly(what);
        }
      } catch (error) {
        throw explain(error);
      } finally {
        stream.close(constants.NGHTTP2_CANCEL);
      }
    };
    return {
      [Symbol.asyncIterator]: chunks,
      async text() {
        const parts: Uint8Array[] = [];
        for await (const part of chunks()) {
          parts.push(part);
        }
        return Buffer.concat(parts).toString('utf8');
      },
      async discard() {
        stream.close(constants.NGHTTP2_CANCEL);
      },
    };
  }

  #closeWhenUnused(): void {
    if (this.#streams > 0 || this.#session.destroyed) {
      return;
    }
    this.#session.unref();
    clearTimeout(this.#linger);
    // A watch that ends is usually followed by the next one at once.
    this.#linger = setTimeout(() => this.#session.close(), this.#isLeaving ? 0 : lingerMs).unref();
  }

  #ping(): void {
    if (this.#session.destroyed || this.#session.connecting) {
      return;
    }
    const sentAt = performance.now();
    let timer: NodeJS.Timeout | undefined;
    const wait = (since: number) => {
      timer = setTimeout(() => {
        const lateMs = performance.now() - since - this.#options.pingTimeoutMs;
        // When this process was busy, the response may be unread in the socket: it gets one more period.
        if (lateMs > this.#options.pingTimeoutMs / 2) {
          wait(performance.now());
        } else {
          setImmediate(() => this.#judge(sentAt));
        }
      }, this.#options.pingTimeoutMs).unref();
    };
    wait(sentAt);
    const isSent = this.#session.ping((error) => {
      clearTimeout(timer);
      if (!error) {
        this.#receivedAt = performance.now();
      }
    });
    if (!isSent) {
      clearTimeout(timer); // too many pings on the way: an earlier one is being timed
    }
  }

  #judge(pingSentAt: number): void {
    if (this.#session.destroyed || this.#receivedAt >= pingSentAt) {
      return;
    }
    const silentMs = Math.round(performance.now() - this.#receivedAt);
    const reason = new ConnectionError(
      `connection to ${this.#server} is dead: silent for ${silentMs} ms, ping unanswered`,
      { code: 'DEAD', sent: true },
    );
    this.destroy(reason);
    this.#options.onDead(reason);
  }
}

function closedEarly(what: string): ConnectionError {
  return new ConnectionError(`${what}: the connection was closed`, { code: 'ECONNRESET', sent: true });
}

async function openTls(server: string, identity: Identity): Promise<TLSSocket> {
  const url = new URL(server);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const { servername, ...tls } = identity.tls;
  const socket = connectTls({
    ...tls,
    host,
    port: Number(url.port || 443),
    ...(servername ? { servername } : {}),
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['h2', 'http/1.1'],
    timeout: connectTimeoutMs,
  });
  socket.setNoDelay(true);
  // Finds a vanished peer in about 15 s where the server speaks no HTTP/2 and cannot be pinged.
  socket.setKeepAlive(true, 5_000);
  socket.once('secureConnect', () => {
    socket.setTimeout(0);
    resolve(socket);
  });
  socket.once('timeout', () =>
    socket.destroy(new ConnectionError(`${server}: no answer`, { code: 'ETIMEDOUT', sent: false })),
  );
  socket.once('error', (error) => reject(connectionError(server, error)));
  return promise;
}
