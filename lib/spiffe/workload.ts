import { createPrivateKey, X509Certificate } from 'node:crypto';
import { X509SVIDResponse } from '../../proto/gen/workloadapi/workload.ts';
import type { Logger } from '../base/index.ts';
import { trustDomainOf } from './spiffe-id.ts';
import { followCall } from './workload-call.ts';

/** The default identity of a workload, PEM. */
export interface WorkloadIdentity {
  /** Its trust domain. */
  readonly domain: string;
  /** The X.509-SVID, and intermediate certificates. */
  readonly certificate: string;
  readonly key: string;
  /** The authorities of its trust domain, and of those that it is federated with, by trust domain. */
  readonly bundles: Readonly<Record<string, string>>;
}

/**
 * Gives the workload's default identity, now and whenever it changes, until aborted: the SPIFFE Workload API's
 * `FetchX509SVID`. An endpoint that does not answer, or ends the stream, is asked again; what it gave last stays good. The bundle
 * of another trust domain is left out when it cannot be read.
 * @param options.endpoint an address without `endpointProblem`
 */
export function followWorkload(options: {
  readonly endpoint: string;
  readonly offer: (identity: WorkloadIdentity) => void;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { offer, ...rest } = options;
  return followCall({ ...rest, call: 'FetchX509SVID', answered: (answer) => offer(identityOf(answer, rest.logger)) });
}

function identityOf(answer: Uint8Array, logger: Logger): WorkloadIdentity {
  const { svids, federatedBundles } = X509SVIDResponse.decode(answer);
  const [svid] = svids;
  if (svid === undefined) {
    throw new Error('its answer has no identity');
  }
  const domain = trustDomainOf(svid.spiffeId);
  if (domain === undefined) {
    throw new Error(`its identity cannot be read: ${JSON.stringify(svid.spiffeId)} is no SPIFFE ID`);
  }
  try {
    const key = createPrivateKey({ key: Buffer.from(svid.x509SvidKey), format: 'der', type: 'pkcs8' });
    return {
      domain,
      certificate: certificatesOf(svid.x509Svid),
      key: key.export({ format: 'pem', type: 'pkcs8' }).toString(),
      bundles: { ...federated(federatedBundles, logger), [domain]: certificatesOf(svid.bundle) },
    };
  } catch (error) {
    throw new Error(`its identity cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

function federated(bundles: Readonly<Record<string, Uint8Array>>, logger: Logger): Record<string, string> {
  const read: Record<string, string> = {};
  for (const [id, bundle] of Object.entries(bundles)) {
    const domain = trustDomainOf(id);
    try {
      if (domain === undefined) {
        throw new Error('it has no SPIFFE ID of a trust domain');
      }
      read[domain] = certificatesOf(bundle);
    } catch (error) {
      const about = { trustDomain: id, reason: (error as Error).message };
      logger.warn(about, 'the bundle of a federated trust domain cannot be read: it is not trusted');
    }
  }
  return read;
}

/** Certificates that stand one after the other as DER, as PEM. @throws Error when the bytes are none */
function certificatesOf(der: Uint8Array): string {
  let text = '';
  for (let at = 0; at < der.length; ) {
    const certificate = new X509Certificate(der.subarray(at));
    text += certificate.toString();
    at += certificate.raw.length;
  }
  return text;
}
