import type { X509Certificate } from 'node:crypto';
import { networkOf } from '../../../base/index.ts';

const strangerMark = 'stranger ';

/**
 * The client that a connection belongs to, as far as that is known: who shares the server's time with whom. The connections of a
 * network that have shown neither a certificate nor a login are one client, a stranger: otherwise each would be one of its own.
 */
export function clientOf({
  certificate,
  address,
  isAuthenticated,
}: {
  readonly certificate?: X509Certificate;
  readonly address: string;
  readonly isAuthenticated: boolean;
}): string {
  if (certificate !== undefined) {
    return certificate.fingerprint256;
  }
  return isAuthenticated ? address : `${strangerMark}${networkOf(address.slice(0, address.lastIndexOf(':')))}`;
}

/** Whether a client of {@link clientOf} is one that has shown nothing. */
export function isStranger(client: string): boolean {
  return client.startsWith(strangerMark);
}
