import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { type Dispatcher, EnvHttpProxyAgent, request } from 'undici';
import { ToolError } from './error.ts';

/** An answer to a GET, after redirects. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}

/** What is sent with a GET, and how long an answer may take. */
export interface GetOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** The longest time without anything from the server, in milliseconds. Default 20,000. */
  readonly silenceMs?: number | undefined;
  /** Whether to follow redirects, of which there may be five, and none from HTTPS to HTTP. Default true. */
  readonly follow?: boolean;
}

/**
 * Sends a GET, through the proxy that `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` name, and closes the connection when `use`
 * has done with the answer. Bodies come as they were sent, never decompressed.
 * @throws Error when nothing comes from the server for too long, ToolError for a proxy that is no URL, and what `use` throws
 */
export async function httpGet<T>(
  url: string,
  options: GetOptions,
  use: (answer: HttpAnswer) => Promise<T>,
): Promise<T> {
  const { headers, signal, silenceMs = 20_000, follow = true } = options;
  refuseWrongProxies();
  const agent = new EnvHttpProxyAgent({
    connectTimeout: silenceMs,
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
  });
  try {
    for (let at = url, redirects = 0; ; redirects++) {
      const answer = await request(at, {
        dispatcher: agent,
        headers: { 'user-agent': 'argocd-fleet', 'accept-encoding': 'identity', ...headers },
        ...(signal && { signal }),
      });
      // A body that nobody reads to its end fails when the connection is closed.
      answer.body.on('error', () => undefined);
      const next = follow ? redirectOf(answer, at) : undefined;
      if (next === undefined) {
        return await use({ status: answer.statusCode, headers: answer.headers, body: answer.body });
      }
      if (redirects === mostRedirects) {
        throw new Error('it redirects again and again');
      }
      // It may never end.
      answer.body.destroy();
      at = next;
    }
  } finally {
    await agent.destroy();
  }
}

const mostRedirects = 5;

/** Where an answer redirects to; undefined when it does not. @throws Error when that is no place to ask */
function redirectOf({ statusCode, headers }: Dispatcher.ResponseData, from: string): string | undefined {
  const { location } = headers;
  if (![301, 302, 303, 307, 308].includes(statusCode) || typeof location !== 'string') {
    return undefined;
  }
  const to = URL.parse(location, from);
  if (to?.protocol === 'http:' && from.startsWith('https:')) {
    // There, somebody on the way may answer.
    throw new Error('it redirects from HTTPS to HTTP');
  }
  if (to?.protocol !== 'http:' && to?.protocol !== 'https:') {
    throw new Error('its redirect leads nowhere');
  }
  return to.href;
}

/** @throws ToolError for a proxy that is no URL, such as one without `http://` */
function refuseWrongProxies(): void {
  for (const name of ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY']) {
    const proxy = process.env[name];
    if (proxy && !/^(https?|socks5?):$/.test(URL.parse(proxy)?.protocol ?? '')) {
      throw new ToolError('WrongSetting', `The proxy (${name}) is not a URL such as http://proxy.example:3128`);
    }
  }
}

const untrusted =
  'its certificate is not trusted here (NODE_EXTRA_CA_CERTS names a file with the certificate of a proxy that opens connections)';

const plainWords: Readonly<Record<string, string>> = {
  ENOTFOUND: 'no address is known for this name',
  EAI_AGAIN: 'no address is known for this name',
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was closed',
  UND_ERR_SOCKET: 'the connection was closed',
  UND_ERR_CONNECT_TIMEOUT: 'no answer',
  UND_ERR_HEADERS_TIMEOUT: 'no answer',
  UND_ERR_BODY_TIMEOUT: 'nothing more came',
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
};

/** Why {@link httpGet} failed, for people: in plain words, and as the system says it. */
export function networkReason(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  // Of several addresses of a name, the first one tells.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  const said = (error.message || (first instanceof Error ? first.message : error.name)).replace(/\s+/g, ' ').trim();
  const { code = '' } = error as NodeJS.ErrnoException;
  const words = plainWords[code];
  // The host is known to whom this is told.
  return words === undefined ? said : `${words} (${said.startsWith('getaddrinfo ') ? code : said})`;
}
