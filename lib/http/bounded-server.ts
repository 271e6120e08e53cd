import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions as TlsServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { type Logger, listenHost } from '../base/index.ts';
import { type ConnectionCaps, limitConnections } from './limit-connections.ts';
import { limitHandshakeBytes } from './limit-handshake-bytes.ts';
import { limitHandshakes } from './limit-handshakes.ts';
import { limitRequests, type RequestCaps } from './limit-requests.ts';
import { RefusalLog } from './refusal-log.ts';

/** What clients of a server may use up; times in ms. */
export interface HttpLimits extends ConnectionCaps, RequestCaps {
  /** How long a request may take to arrive without its body; a TLS handshake too. */
  readonly headersMs: number;
  /** The same with its body; 0: no limit. */
  readonly requestMs: number;
  /** How long a connection is kept without a request. */
  readonly idleMs: number;
}

/** What {@link boundedServer} makes. */
export interface BoundedServerOptions {
  /** What it serves, for log lines: `metrics`. */
  readonly what: string;
  readonly limits: HttpLimits;
  /** Undefined: plaintext. */
  readonly tls?: TlsServerOptions | undefined;
  readonly http?: Pick<ServerOptions, 'requireHostHeader' | 'insecureHTTPParser' | 'shouldUpgradeCallback'>;
  readonly logger: Pick<Logger, 'warn'>;
}

/** A server of HTTP/1.1 whose clients cannot use it up. */
export interface BoundedServer {
  /** For what only some servers need, set before {@link listen}. */
  readonly server: Server;
  /** Takes a port and returns it; the real one for 0. Rejects with Node's error. */
  listen(address: { readonly port: number; readonly host: string }): Promise<number>;
  /** Ends all connections, except those that were upgraded. */
  close(): Promise<void>;
}

/** Every server of HTTP is made here, so that none lacks a limit. */
export function boundedServer(
  { what, limits, tls, http = {}, logger }: BoundedServerOptions,
  serve: (request: IncomingMessage, response: ServerResponse) => void,
): BoundedServer {
  const options: ServerOptions = {
    ...http,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.headersMs,
    keepAliveTimeout: limits.idleMs,
    noDelay: true,
  };
  const server: Server =
    tls === undefined
      ? createServer(options, serve)
      : createTlsServer({ handshakeTimeout: limits.headersMs, ...options, ...tls }, serve);
  const endHandshakes = server instanceof TlsServer ? limitHandshakes(server) : undefined;
  return {
    server,
    async listen({ port, host }) {
      const refusals = new RefusalLog(what, logger);
      // Last, when the server has all its listeners.
      limitConnections(server, limits, refusals);
      limitRequests(server, limits, refusals);
      if (server instanceof TlsServer && tls?.requestCert) {
        limitHandshakeBytes(server, refusals);
      }
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, listenHost(host), () => {
          server.off('error', reject);
          resolve();
        });
      });
      return (server.address() as AddressInfo).port;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        endHandshakes?.();
        server.closeAllConnections();
      }),
  };
}
