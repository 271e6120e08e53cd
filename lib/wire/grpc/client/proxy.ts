import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { BlockList, isIP, type Socket } from 'node:net';
import { domainToASCII } from 'node:url';
import { onAbort } from '../../../base/index.ts';

/** Where a connection goes to. */
export interface ProxyTarget {
  /** Which of `HTTPS_PROXY` and `HTTP_PROXY` counts. */
  readonly scheme: 'https' | 'http';
  readonly host: string;
  readonly port: number;
}

/**
 * The proxy that the environment names for a target, by the rules of Go's `httpproxy`: `HTTPS_PROXY` or `HTTP_PROXY` (upper
 * case first), a missing scheme means `http`; none for localhost and loopback addresses and for what `NO_PROXY` lists
 * (`*`, CIDR, addresses, domains with their subdomains, each with an optional port).
 *
 * @throws Error with code `ERR_PROXY` when the proxy's URL cannot be used
 */
export function proxyFromEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  target: ProxyTarget,
): URL | undefined {
  const name = target.scheme === 'https' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const text = environment[name] || environment[name.toLowerCase()];
  if (!text || isExempt(environment.NO_PROXY || environment.no_proxy || '', target)) {
    return undefined;
  }
  const url = URL.parse(text.includes('://') ? text : `http://${text}`);
  // The text may hold a password.
  if (url === null) {
    throw proxyError(`${name} holds no URL`);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw proxyError(`${name} names a proxy of the kind ${url.protocol.slice(0, -1)}; http and https can be used`);
  }
  return url;
}

/**
 * A connection to `target` through an HTTP proxy (CONNECT).
 * @throws Error with code `ERR_PROXY`, or the reason of `signal`
 */
export async function connectThroughProxy(
  proxy: URL,
  target: { readonly host: string; readonly port: number },
  signal: AbortSignal,
): Promise<Socket> {
  const path = `${isIP(target.host) === 6 ? `[${target.host}]` : target.host}:${target.port}`;
  const credentials = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  const isEncrypted = proxy.protocol === 'https:';
  const request = (isEncrypted ? httpsRequest : httpRequest)({
    method: 'CONNECT',
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: proxy.port || (isEncrypted ? 443 : 80),
    path,
    agent: false,
    headers: {
      host: path,
      ...(proxy.username === ''
        ? undefined
        : { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }),
    },
  });
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const fail = (error: Error) => {
    request.destroy();
    reject(error);
  };
  request.on('error', (cause) =>
    fail(proxyError(`the proxy ${proxy.host} cannot be reached: ${cause.message}`, cause)),
  );
  const refused = ({ statusCode, statusMessage }: IncomingMessage) =>
    fail(proxyError(`the proxy ${proxy.host} refuses to connect to ${path}: ${statusCode} ${statusMessage}`));
  request.on('response', refused);
  request.on('connect', (response: IncomingMessage, socket: Socket, head: Buffer) => {
    if (response.statusCode !== 200) {
      refused(response);
      socket.destroy();
      return;
    }
    socket.on('error', () => undefined);
    if (head.length > 0) {
      socket.unshift(head);
    }
    unlisten();
    resolve(socket);
  });
  request.end();
  const unlisten = onAbort(signal, () => fail(signal.reason instanceof Error ? signal.reason : new Error('aborted')));
  try {
    return await promise;
  } finally {
    unlisten();
  }
}

function isExempt(list: string, { host, port }: ProxyTarget): boolean {
  const name = host.toLowerCase();
  const version = isIP(name);
  if (name === 'localhost' || (version !== 0 && contains(loopback, name))) {
    return true;
  }
  return list.split(',').some((entry) => matches(entry.trim().toLowerCase(), name, version, String(port)));
}

function matches(entry: string, host: string, version: number, port: string): boolean {
  if (entry === '') {
    return false;
  }
  if (entry === '*') {
    return true;
  }
  const [, network = '', bits = ''] = /^([^/]+)\/(\d+)$/.exec(entry) ?? [];
  if (isIP(network) !== 0) {
    return version !== 0 && contains(subnet(network, Number(bits)), host);
  }
  const [, name = entry, wantedPort = ''] =
    isIP(entry) === 0 ? (/^\[?([^[\]]*?)\]?:(\d*)$/.exec(entry) ?? []) : ['', entry, ''];
  if (name === '' || (wantedPort !== '' && wantedPort !== port)) {
    return false;
  }
  if (isIP(name) !== 0) {
    return version !== 0 && contains(subnet(name, isIP(name) === 4 ? 32 : 128), host);
  }
  const domain = name.replace(/^\*\./, '.');
  const suffix = domain.startsWith('.') ? domain : `.${domainToASCII(domain) || domain}`;
  return host.endsWith(suffix) || (!domain.startsWith('.') && `.${host}` === suffix);
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

function subnet(network: string, bits: number): BlockList {
  const list = new BlockList();
  const isV4 = isIP(network) === 4;
  if (bits <= (isV4 ? 32 : 128)) {
    list.addSubnet(network, bits, isV4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

function contains(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
}

function proxyError(message: string, cause?: Error): Error {
  return Object.assign(new Error(message, cause === undefined ? undefined : { cause }), { code: 'ERR_PROXY' });
}
