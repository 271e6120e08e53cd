/** Options of a TLS context, as `node:tls` takes them. */
interface TrustOptions<A> {
  readonly ca?: A;
  readonly allowPartialTrustChain?: true;
}

/**
 * The TLS options that trust these authorities and no others; undefined: those that Node trusts. As in Go, an issuing authority
 * is enough: the root that signed it need not be among them.
 */
export function trusting<A>(ca: A | undefined): TrustOptions<A> {
  return ca === undefined ? {} : { ca, allowPartialTrustChain: true };
}
