import type { X509Certificate } from 'node:crypto';

/** Longest SPIFFE ID, in bytes; its characters are ASCII. */
const longestId = 2_048;

/** The trust domain of a SPIFFE ID, as its specification writes one; undefined for a text that is none. */
export function trustDomainOf(id: string): string | undefined {
  const [, domain, path = ''] = /^spiffe:\/\/([a-z0-9._-]{1,255})((?:\/[A-Za-z0-9._-]+)*)$/.exec(id) ?? [];
  const isRelative = path.split('/').some((segment) => segment === '.' || segment === '..');
  return id.length > longestId || isRelative ? undefined : domain;
}

/** The SPIFFE ID in a certificate: its only URI. Undefined when it has another number of them, or another URI. */
export function spiffeIdOf({ subjectAltName }: X509Certificate): string | undefined {
  // Node quotes a name with a comma, which a SPIFFE ID cannot have.
  const uris = (subjectAltName ?? '').split(', ').filter((name) => name.startsWith('URI:'));
  const id = uris[0]?.slice('URI:'.length) ?? '';
  return uris.length === 1 && trustDomainOf(id) !== undefined ? id : undefined;
}
