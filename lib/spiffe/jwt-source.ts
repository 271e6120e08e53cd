import { JWTBundlesResponse, JWTSVIDRequest, JWTSVIDResponse } from '../../proto/gen/workloadapi/workload.ts';
import type { SvidJudge } from '../auth/index.ts';
import type { Logger } from '../base/index.ts';
import { Reloadable } from '../ops/index.ts';
import { type JwtBundle, parseJwtBundle } from './jwt-bundle.ts';
import { judgeJwtSvid } from './jwt-svid.ts';
import { trustDomainOf } from './spiffe-id.ts';
import { callWorkload, followCall } from './workload-call.ts';

/** How long a JWT-SVID may take to come, ms. */
const svidTimeoutMs = 5_000;

/** The keys by which JWT-SVIDs are judged, kept up to date. */
export interface JwtSource extends SvidJudge {
  /** By trust domain: the workload's own, and those that it is federated with. */
  readonly bundles: Reloadable<ReadonlyMap<string, JwtBundle>>;
}

/**
 * Follows the workload's JWT bundles until aborted. A bundle that cannot be read is left out: then no JWT-SVID of its trust domain
 * counts.
 * @param options.endpoint an address without `endpointProblem`
 */
export function jwtSource(options: {
  readonly endpoint: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): JwtSource {
  const { endpoint, logger, signal } = options;
  const bundles = new Reloadable<ReadonlyMap<string, JwtBundle>>({
    origin: `SPIFFE Workload API ${endpoint}, JWT bundles`,
    parse: (fields) => readBundles(fields, logger),
    logger,
  });
  const answered = (answer: Uint8Array) => {
    const given = Object.entries(JWTBundlesResponse.decode(answer).bundles);
    bundles.offer(Object.fromEntries(given.map(([id, bundle]) => [id, bundle.toString('utf8')])));
  };
  void followCall({ endpoint, call: 'FetchJWTBundles', answered, logger, signal });
  const known = () => bundles.value ?? new Map<string, JwtBundle>();
  return {
    bundles,
    judge: (token, audience) => judgeJwtSvid(token, { audience, bundles: known() }),
    trusts: (digest) => hasKey(known(), digest),
  };
}

/** Asked for each open session again and again: nothing is copied. */
function hasKey(bundles: ReadonlyMap<string, JwtBundle>, digest: string): boolean {
  for (const bundle of bundles.values()) {
    for (const authority of bundle.values()) {
      if (authority.digest === digest) {
        return true;
      }
    }
  }
  return false;
}

function readBundles(texts: Readonly<Record<string, string>>, logger: Logger): ReadonlyMap<string, JwtBundle> {
  const read = new Map<string, JwtBundle>();
  for (const [id, text] of Object.entries(texts)) {
    try {
      // Some endpoints name the trust domain itself.
      const domain = trustDomainOf(id) ?? trustDomainOf(`spiffe://${id}`);
      if (domain === undefined) {
        throw new Error('it has no SPIFFE ID of a trust domain');
      }
      read.set(domain, parseJwtBundle(domain, text));
    } catch (error) {
      const about = { trustDomain: id, reason: (error as Error).message };
      logger.warn(about, 'the JWT bundle of a trust domain cannot be read: it is not trusted');
    }
  }
  if (read.size === 0) {
    throw new Error('has no JWT bundle');
  }
  return read;
}

/**
 * A new JWT-SVID of the workload's default identity.
 * @returns the token
 * @throws Error that says why there is none
 */
export async function fetchJwtSvid(
  endpoint: string,
  options: { readonly audience: string; readonly signal: AbortSignal },
): Promise<string> {
  const { audience, signal } = options;
  const request = JWTSVIDRequest.encode({ audience: [audience], spiffeId: '' }).finish();
  const timeout = AbortSignal.timeout(svidTimeoutMs);
  let token: string | undefined;
  const why = await callWorkload(
    endpoint,
    { call: 'FetchJWTSVID', request, signal: AbortSignal.any([signal, timeout]) },
    (answer) => {
      token ??= JWTSVIDResponse.decode(answer).svids[0]?.svid;
    },
  );
  if (token === undefined || token === '') {
    const reason = timeout.aborted ? `it did not answer within ${svidTimeoutMs / 1_000} s` : why;
    throw new Error(`the SPIFFE Workload API ${endpoint} gives no JWT-SVID: ${reason}`);
  }
  return token;
}
