import type { Dispatcher } from 'undici';
import { abortable } from '../../base/index.ts';
import { ConnectionError } from '../errors.ts';
import type { Credentials, Identity } from './credentials.ts';
import { Agent, ProxyAgent } from './undici.ts';

/** An HTTP request to the API server. */
export interface HttpRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS';
  /** Path and query, from `/`. */
  path: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  signal?: AbortSignal | undefined;
  /** Longest wait for the response's head, and between two parts of its body; 0 waits without limit. */
  timeoutMs: number;
}

/** The head of a response and its body as it arrives. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: HttpBody;
}

/** A body that is read once, whole or in parts. */
export interface HttpBody extends AsyncIterable<Uint8Array> {
  text(): Promise<string>;
  /** Discards the unread rest and frees the connection. */
  discard(): Promise<void>;
}

/**
 * Request/response traffic with one API server: a pool of keep-alive HTTP/1.1 connections.
 *
 * It uses HTTP/1.1 because HTTP/2 costs more per request in Node, and because a slow response delays no other. Connections
 * that the server might be about to close (it does after 90 s of silence) are not used again.
 */
export class ConnectionPool {
  readonly #credentials: Credentials;
  readonly #maxConnections: number;
  #dispatcher: Dispatcher | undefined;
  #fingerprint = '';
  #closed = false;

  constructor(credentials: Credentials, maxConnections: number) {
    this.#credentials = credentials;
    this.#maxConnections = maxConnections;
  }

  /** Sends one request. Throws ConnectionError, or the signal's reason. */
  async send(request: HttpRequest): Promise<HttpResponse> {
    request.signal?.throwIfAborted();
    const identity = await this.#credentials.current();
    try {
      const sent = this.#dispatcherFor(identity).request({
        origin: new URL(this.#credentials.server).origin,
        path: request.path,
        method: request.method,
        // A request may name another user to act as than the kubeconfig.
        headers: { ...identity.headers, ...request.headers },
        body: request.body ?? null,
        signal: request.signal ?? null,
        headersTimeout: request.timeoutMs,
        bodyTimeout: request.timeoutMs,
      });
      // The library hears of an abort only when it has a connection: up to 10 s later. It does not send the request then.
      const answer = await abortable(sent, request.signal);
      return {
        status: answer.statusCode,
        headers: answer.headers as Record<string, string>,
        body: bodyOf(answer.body, request),
      };
    } catch (error) {
      throw this.#explain(error, request);
    }
  }

  /** Stops using the connections that are open now; open requests on them may finish. */
  renew(): void {
    const old = this.#dispatcher;
    this.#dispatcher = undefined;
    old?.close().catch(ignoreLateError);
  }

  /** Closes the connections that are open now; their open requests fail. */
  abandon(reason: ConnectionError): void {
    const old = this.#dispatcher;
    this.#dispatcher = undefined;
    old?.destroy(reason).catch(ignoreLateError);
  }

  /** Closes all connections. Open requests fail. */
  async close(): Promise<void> {
    this.#closed = true;
    const old = this.#dispatcher;
    this.#dispatcher = undefined;
    await old?.destroy();
  }

  #dispatcherFor(identity: Identity): Dispatcher {
    if (this.#closed) {
      throw new ConnectionError('the client is closed', { code: 'CLOSED', sent: false });
    }
    if (identity.tlsFingerprint !== this.#fingerprint) {
      this.renew();
    }
    this.#fingerprint = identity.tlsFingerprint;
    this.#dispatcher ??= this.#open(identity);
    return this.#dispatcher;
  }

  #open(identity: Identity): Dispatcher {
    const tls = withoutUndefined({ ...identity.tls, minVersion: 'TLSv1.2' as const });
    const options = {
      allowH2: false,
      connections: this.#maxConnections,
      pipelining: 1,
      keepAliveTimeout: 50_000,
      keepAliveMaxTimeout: 80_000,
      connect: { ...tls, timeout: 10_000, keepAlive: true, keepAliveInitialDelay: 5_000 },
    };
    const { proxyUrl } = this.#credentials;
    return proxyUrl ? new ProxyAgent({ ...options, uri: proxyUrl, requestTls: tls }) : new Agent(options);
  }

  #explain(error: unknown, request: HttpRequest): unknown {
    if (request.signal?.aborted) {
      return request.signal.reason;
    }
    const failure = connectionError(`${request.method} ${this.#credentials.server}${pathOnly(request.path)}`, error);
    // When one connection is silent, the others of the pool are probably dead too.
    if (failure.sent) {
      this.renew();
    }
    return failure;
  }
}

/** Turns an error of the HTTP library into a ConnectionError. */
export function connectionError(what: string, error: unknown): ConnectionError {
  if (error instanceof ConnectionError) {
    return error;
  }
  const cause = error instanceof AggregateError ? error.errors[0] : error;
  const code = String((cause as { code?: unknown })?.code ?? (cause as Error)?.name ?? 'UNKNOWN');
  const text = (cause as Error)?.message || code;
  return new ConnectionError(`${what}: ${text}`, { code, sent: !neverSent.has(code), cause: error });
}

const neverSent = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'CLOSED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_HAS_EXPIRED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

function pathOnly(path: string): string {
  const query = path.indexOf('?');
  return query < 0 ? path : path.slice(0, query);
}

function withoutUndefined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

function bodyOf(body: Dispatcher.ResponseData['body'], request: HttpRequest): HttpBody {
  const explain = (error: unknown) =>
    request.signal?.aborted
      ? request.signal.reason
      : connectionError(`${request.method} ${pathOnly(request.path)}`, error);
  return {
    async text() {
      try {
        return await body.text();
      } catch (error) {
        throw explain(error);
      }
    },
    async discard() {
      body.on('error', ignoreLateError);
      await body.dump({ limit: 0 });
    },
    async *[Symbol.asyncIterator]() {
      try {
        yield* body as AsyncIterable<Uint8Array>;
      } catch (error) {
        throw explain(error);
      }
    },
  };
}

/** The user of the response no longer needs it: errors of the rest are ignored. */
function ignoreLateError(): undefined {
  return undefined;
}
