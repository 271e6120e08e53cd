import type { X509Certificate } from 'node:crypto';

/** How a certificate comes from a trusted authority. */
export interface TrustPath {
  /** The trusted authority at its end. */
  readonly authority: X509Certificate;
  /** When the first of the certificates on it expires. */
  readonly ends: Date;
}

/** Certificates of a chain that are looked at: whoever shows a chain decides how long it is. */
const longestChain = 10;

/**
 * The path that lasts longest from the first certificate, by way of the others, to one of the authorities; undefined when there is
 * none. It is the judgement of TLS with `trusting`, but for the validity periods: compare `ends` with the clock.
 */
export function trustPath(
  chain: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
): TrustPath | undefined {
  const [leaf, ...others] = chain.slice(0, longestChain);
  if (leaf === undefined) {
    return undefined;
  }
  let longest: TrustPath | undefined;
  const found = (authority: X509Certificate, ends: Date) => {
    if (longest === undefined || ends > longest.ends) {
      longest = { authority, ends };
    }
  };
  const open = [{ certificate: leaf, ends: leaf.validToDate }];
  const between = new Map(others.filter(({ ca }) => ca).map((other) => [other.fingerprint256, other]));
  // The longest first: no certificate has to be looked at twice.
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    const { certificate, ends } = next;
    for (const authority of authorities) {
      if (isIssuedBy(certificate, authority)) {
        found(authority, earlier(ends, authority.validToDate));
      }
    }
    for (const issuer of [...between.values()].filter((one) => isIssuedBy(certificate, one))) {
      between.delete(issuer.fingerprint256);
      open.push({ certificate: issuer, ends: earlier(ends, issuer.validToDate) });
    }
    open.sort((a, b) => b.ends.getTime() - a.ends.getTime());
  }
  return longest;
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function earlier(one: Date, other: Date): Date {
  return one < other ? one : other;
}
