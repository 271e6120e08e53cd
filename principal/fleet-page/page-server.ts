import type { IncomingMessage, ServerResponse } from 'node:http';
import { Server as TlsServer } from 'node:tls';
import { promisify } from 'node:util';
import { gzip, gzipSync } from 'node:zlib';
import { type Logger, plainAddress } from '../../lib/base/index.ts';
import { type CertifiedPort, certifySockets, type SocketCertificate } from '../../lib/credentials/index.ts';
import { boundedServer, type HttpLimits } from '../../lib/http/index.ts';
import { FatalError } from '../../lib/ops/index.ts';
import { type ServerTls, secureContextOptions, useTls } from '../../lib/wire/index.ts';
import type { ExtensionHeader } from './access/extension-callers.ts';
import type { PageCaller } from './access/page-viewers.ts';

/** An answer with a body. */
export interface PageAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: string | Buffer;
  /** The body as gzip, if it is at hand. */
  readonly zipped?: Buffer | undefined;
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

const limits: HttpLimits = {
  connections: 1_000,
  // A browser has six. All viewers behind one proxy may have one address.
  connectionsPerNetwork: 500,
  requestsUnderWay: 2,
  headersMs: 10_000,
  requestMs: 15_000,
  idleMs: 10_000,
  // Streams send something every 20 s.
  stallMs: 30_000,
};
/** Bodies up to this size are sent as they are. */
const smallBytes = 2_000;
const zip = promisify(gzip);

/** An answer that is given again and again, with its gzip made once. */
export function readyAnswer(answer: PageAnswer): PageAnswer {
  const body = Buffer.from(answer.body);
  return { ...answer, body, zipped: body.length > smallBytes ? gzipSync(body, { level: 9 }) : undefined };
}

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
  /** Watches the certificates of proxies. */
  certified: CertifiedPort;
  logger: Logger;
}): Promise<PageServer> {
  const { address, path, tls, handler, certified, logger } = options;
  let certificateOf: (socket: object) => SocketCertificate | undefined = () => undefined;
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const caller = callerOf(request, certificateOf(request.socket));
    answer(request, response, path, caller, handler).catch((error: unknown) => {
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
  // Who has no certificate says who they are by a token.
  const secure = tls !== 'plaintext' && {
    ...secureContextOptions(tls),
    requestCert: tls.clientCa !== undefined,
    rejectUnauthorized: false,
  };
  const bounded = boundedServer({ what: 'the fleet page', limits, tls: secure || undefined, logger }, listener);
  const { server } = bounded;
  const use = (next: ServerTls) => {
    if (server instanceof TlsServer) {
      useTls(server, next);
      certified.trust(next.clientCa);
    }
  };
  if (server instanceof TlsServer && tls !== 'plaintext') {
    use(tls);
    certificateOf = certifySockets(server, certified);
  }
  const port = await bounded.listen(address).catch((cause: Error) => {
    const problem = `cannot serve the fleet page (--fleet-page-listen) on port ${address.port}: ${cause.message}`;
    throw new FatalError(problem, { cause });
  });
  return { port, setTls: use, close: () => bounded.close() };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  root: string,
  caller: PageCaller,
  handler: PageHandler,
): Promise<void> {
  for (const [name, value] of Object.entries(headers)) {
    response.setHeader(name, value);
  }
  const send = async ({ status, type, body, zipped, headers: own = {} }: PageAnswer) => {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body);
    const isZipped = bytes.length > smallBytes && /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
    const sent = isZipped ? (zipped ?? (await zip(bytes, { level: 4 }))) : bytes;
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
    { path: path.slice(root.length - 1), search, caller, header: (name) => textOf(request, name) },
    response,
  );
  if (made !== undefined && !response.destroyed) {
    await send(made);
  }
}

function callerOf(request: IncomingMessage, certified: SocketCertificate | undefined): PageCaller {
  return {
    address: plainAddress(request.socket.remoteAddress ?? ''),
    certificate: certified?.problem() === undefined ? certified?.certificate : undefined,
    header: (name) => textOf(request, name),
  };
}

/** A header that comes more than once is none: two proxies, or a client before one, may mean different people. */
function textOf(request: IncomingMessage, name: string): string | undefined {
  const all = request.headersDistinct[name] ?? [];
  return all.length === 1 ? all[0] : undefined;
}
