import type { X509Certificate } from 'node:crypto';
import type { Logger } from '../base/index.ts';
import { parseKeyPair, parseTrust, Reloadable, type TlsKeyPair } from '../ops/index.ts';
import { parseCertificates, trustPath } from '../pki/index.ts';
import { spiffeIdOf, trustDomainOf } from './spiffe-id.ts';
import { followWorkload, type WorkloadIdentity } from './workload.ts';

/** What the Workload API gives for TLS, kept up to date. */
export interface X509Source {
  /** The workload's own certificate and key. */
  readonly identity: Reloadable<TlsKeyPair>;
  /** The authorities of its own trust domain, PEM. */
  readonly trust: Reloadable<string>;
  /** The authorities of its own trust domain and of those that it is federated with, PEM. */
  readonly federatedTrust: Reloadable<string>;
  /**
   * The SPIFFE ID that a certificate proves, by way of the others that came with it: an authority of the ID's own trust domain
   * vouches for it now. An authority of one trust domain never vouches for an ID of another.
   * @param chain the certificate first
   * @throws Error that says why it proves none
   */
  idOf(chain: readonly X509Certificate[]): string;
}

/**
 * Follows the workload's X.509-SVID and bundles until aborted.
 * @param options.endpoint an address without `endpointProblem`
 */
export function x509Source(options: {
  readonly endpoint: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): X509Source {
  const { endpoint, logger, signal } = options;
  const origin = `SPIFFE Workload API ${endpoint}`;
  const trustOf = () =>
    new Reloadable<string>({ origin: `${origin}, bundles`, parse: (fields) => parseTrust(fields), logger });
  const identity = new Reloadable<TlsKeyPair>({ origin, parse: parseKeyPair, logger });
  const [trust, federatedTrust] = [trustOf(), trustOf()];
  let authorities: ReadonlyMap<string, readonly X509Certificate[]> = new Map();
  const offer = ({ domain, certificate, key, bundles }: WorkloadIdentity) => {
    authorities = new Map(Object.entries(bundles).map(([name, pem]) => [name, parseCertificates(pem)]));
    identity.offer({ 'tls.crt': certificate, 'tls.key': key });
    trust.offer({ 'ca.crt': bundles[domain] ?? '' });
    federatedTrust.offer(bundles);
  };
  void followWorkload({ endpoint, offer, logger, signal });
  return { identity, trust, federatedTrust, idOf: (chain) => provedId(chain, authorities) };
}

function provedId(
  chain: readonly X509Certificate[],
  authorities: ReadonlyMap<string, readonly X509Certificate[]>,
): string {
  const [leaf] = chain;
  const id = leaf === undefined ? undefined : spiffeIdOf(leaf);
  const domain = trustDomainOf(id ?? '');
  if (leaf === undefined || id === undefined || domain === undefined) {
    throw new Error('it has not exactly one URI that is a SPIFFE ID');
  }
  const bundle = authorities.get(domain);
  if (bundle === undefined) {
    throw new Error(`no bundle of the trust domain of ${id} is known`);
  }
  const path = trustPath(chain, bundle);
  if (path === undefined || path.ends.getTime() <= Date.now()) {
    throw new Error(`no authority of the trust domain vouches for ${id}`);
  }
  return id;
}
