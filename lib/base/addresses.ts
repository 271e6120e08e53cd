import { isIP } from 'node:net';

/** `host:port`, with brackets around an IPv6 address. */
export function hostPort(host: string, port: number): string {
  return `${bracketed(host)}:${port}`;
}

/** A host as URLs have it: an IPv6 address in brackets. */
export function bracketed(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host;
}

/** A host as sockets take it: an IPv6 address without the brackets that URLs and `host:port` need. */
export function withoutBrackets(host: string): string {
  const inner = /^\[(.*)\]$/.exec(host)?.[1];
  return inner !== undefined && isIP(inner) === 6 ? inner : host;
}

/** Splits `host:port`; an IPv6 address must be in brackets, and comes without them. Undefined for any other text. */
export function splitHostPort(text: string): { readonly host: string; readonly port: number } | undefined {
  const [, inBrackets, name = '', port = ''] = /^(?:\[([^[\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(text) ?? [];
  if (port === '' || Number(port) > 65_535 || (inBrackets !== undefined && isIP(inBrackets) !== 6)) {
    return undefined;
  }
  return { host: inBrackets ?? name, port: Number(port) };
}

/**
 * What to listen on for a host in a flag: undefined means all addresses of IPv4 and IPv6, where the machine has both.
 * `0.0.0.0` means the same, as with Go's `net.Listen`, which the originals use.
 */
export function listenHost(host: string): string | undefined {
  const plain = withoutBrackets(host);
  return ['', '0.0.0.0', '::'].includes(plain) ? undefined : plain;
}

/** An address of a peer as people write it: a listener for IPv4 and IPv6 shows IPv4 addresses as `::ffff:10.0.0.1`. */
export function plainAddress(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
}

/** `address:port` of the other end of a socket; an IPv6 address is in brackets. */
export function remoteAddressOf(socket: {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}): string {
  return hostPort(plainAddress(socket.remoteAddress ?? 'unknown'), socket.remotePort ?? 0);
}

/** The network whose addresses usually belong to one peer: of IPv6 the /64, of IPv4 the address itself. */
export function networkOf(address: string): string {
  const plain = plainAddress(withoutBrackets(address));
  if (isIP(plain) !== 6) {
    return plain;
  }
  const [head = '', tail] = plain.split('::');
  const groups = head === '' ? [] : head.split(':');
  const rest = tail === undefined || tail === '' ? [] : tail.split(':');
  const missing = tail === undefined ? 0 : Math.max(0, 8 - groups.length - rest.length);
  const all = [...groups, ...Array<string>(missing).fill('0'), ...rest];
  return all.slice(0, 4).join(':');
}
