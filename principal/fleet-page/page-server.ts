import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Logger, listenHost, plainAddress } from '../../lib/base/index.ts';
import { FatalError } from '../../lib/ops/index.ts';
import { type ServerTls, secureContextOptions, useTls } from '../../lib/wire/index.ts';
import { limitHandshakes } from '../live/handshakes.ts';
import type { ExtensionHeader } from './access/extension-callers.ts';
import type { PageCaller } from './access/page-viewers.ts';

/** An answer with a body. */
export interface PageAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request for a page; only GET and HEAD get this far. */
export interface PageRequest {
  /** Below the path that the page is served at, with a slash at its beginning. */
  readonly path: string;
  /** With the question mark, or empty. */
  readonly search: string;
  readonly caller: PageCaller;
  header(name: 'last-event-id' | ExtensionHeader): string | undefined;
}

/** Answers requests: with a body, or by itself. */
export type PageHandler = (request: PageRequest, response: ServerResponse) => Promise<PageAnswer | undefined>;

/**
 * On every answer. No script and no style but our own files, no frame around it, nothing kept by caches, nothing told to other
 * sites.
 */
const headers: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-store',
};

const mostConnections = 1_000;
const zip = promisify(gzip);

/** The page's server. */
export interface PageServer {
  readonly port: number;
  setTls(tls: ServerTls): void;
  close(): Promise<void>;
}

/**
 * Serves pages at a path.
 * @param options.path with slashes at both ends
 * @throws FatalError when the port cannot be had
 */
export async function servePages(options: {
  address: { readonly host: string; readonly port: number };
  path: string;
  tls: ServerTls | 'plaintext';
  handler: PageHandler;
  logger: Logger;
}): Promise<PageServer> {
  const { address, path, tls, handler, logger } = options;
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    answer(request, response, path, handler).catch((error: unknown) => {
      logger.error({ error }, 'a request for the fleet page failed');
      if (response.headersSent) {
        response.destroy();
      } else {
        response
          .writeHead(500, { ...headers, 'content-type': 'text/plain' })
          .end('this failed; the log of the principal says why\n');
      }
    });
  };
  const times = { headersTimeout: 10_000, requestTimeout: 15_000, keepAliveTimeout: 10_000 };
  const server: Server | TlsServer =
    tls === 'plaintext'
      ? createServer(times, listener)
      : createTlsServer(
          {
            ...times,
            ...secureContextOptions(tls),
            handshakeTimeout: 10_000,
            requestCert: tls.clientCa !== undefined,
            // Who has none says who they are by a token.
            rejectUnauthorized: false,
          },
          listener,
        );
  if (server instanceof TlsServer && tls !== 'plaintext') {
    useTls(server, tls);
  }
  server.maxConnections = mostConnections;
  const endHandshakes = server instanceof TlsServer ? limitHandshakes(server) : undefined;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new FatalError(`cannot serve the fleet page (--fleet-page-listen) on port ${address.port}: ${error.message}`, {
          cause: error,
        }),
      ),
    );
    server.listen(address.port, listenHost(address.host), resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    setTls: (next) => server instanceof TlsServer && useTls(server, next),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        endHandshakes?.();
        server.closeAllConnections();
      }),
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  root: string,
  handler: PageHandler,
): Promise<void> {
  for (const [name, value] of Object.entries(headers)) {
    response.setHeader(name, value);
  }
  const send = async ({ status, type, body, headers: own = {} }: PageAnswer) => {
    const bytes = Buffer.from(body);
    const isZipped = bytes.length > 2_000 && /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
    const sent = isZipped ? await zip(bytes, { level: 4 }) : bytes;
    response.writeHead(status, {
      ...own,
      'content-type': type,
      'content-length': sent.length,
      vary: 'accept-encoding, cookie, authorization',
      ...(isZipped ? { 'content-encoding': 'gzip' } : {}),
    });
    response.end(request.method === 'HEAD' ? undefined : sent);
  };
  const plain = (status: number, text: string, own?: Readonly<Record<string, string>>) =>
    send({
      status,
      type: 'text/plain; charset=utf-8',
      body: `${text}\n`,
      ...(own === undefined ? {} : { headers: own }),
    });
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    return plain(405, 'only GET and HEAD: this page changes nothing', { allow: 'GET, HEAD' });
  }
  // Not parsed as a URL: that throws for some of what a stranger may send.
  const [, path = '', search = ''] = /^([^?#]*)(\?[^#]*)?/.exec(request.url ?? '') ?? [];
  if (`${path}/` === root) {
    return plain(308, 'it is one slash further', { location: root });
  }
  if (!path.startsWith(root)) {
    return plain(404, 'there is nothing here');
  }
  const made = await handler(
    { path: path.slice(root.length - 1), search, caller: callerOf(request), header: (name) => textOf(request, name) },
    response,
  );
  if (made !== undefined && !response.destroyed) {
    await send(made);
  }
}

function callerOf(request: IncomingMessage): PageCaller {
  const { socket } = request;
  const certificate = socket instanceof TLSSocket && socket.authorized ? socket.getPeerX509Certificate() : undefined;
  return {
    address: plainAddress(socket.remoteAddress ?? ''),
    certificate,
    header: (name) => textOf(request, name),
  };
}

/** A header that comes more than once is none: two proxies, or a client before one, may mean different people. */
function textOf(request: IncomingMessage, name: string): string | undefined {
  const all = request.headersDistinct[name] ?? [];
  return all.length === 1 ? all[0] : undefined;
}
