import { createHash, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';

/** A key that signs JWT-SVIDs of a trust domain. */
export interface JwtAuthority {
  readonly key: KeyObject;
  /** SHA-256 of trust domain, key ID and key, in base64url: 43 characters. */
  readonly digest: string;
}

/** The keys of a trust domain by their IDs. */
export type JwtBundle = ReadonlyMap<string, JwtAuthority>;

const keySetSchema = z.object({ keys: z.array(z.record(z.string(), z.unknown())).max(1_000) });
const keySchema = z.object({ kid: z.string().min(1).max(256), use: z.string().optional() });

/**
 * Reads a JSON Web Key Set of the SPIFFE Workload API. Keys without an ID, secret ones and those of X.509-SVIDs are left out: no
 * JWT-SVID can be judged by them.
 * @throws Error that says what is wrong with the text
 */
export function parseJwtBundle(domain: string, text: string): JwtBundle {
  const { keys } = keySetSchema.parse(JSON.parse(text));
  const bundle = new Map<string, JwtAuthority>();
  for (const jwk of keys) {
    const { data } = keySchema.safeParse(jwk);
    const key = data === undefined || data.use === 'x509-svid' ? undefined : publicKeyOf(jwk);
    if (data !== undefined && key !== undefined) {
      const der = key.export({ type: 'spki', format: 'der' });
      const digest = createHash('sha256')
        .update(JSON.stringify([domain, data.kid]))
        .update(der)
        .digest('base64url');
      bundle.set(data.kid, { key, digest });
    }
  }
  return bundle;
}

/** Undefined for what is no public key. */
function publicKeyOf(jwk: Record<string, unknown>): KeyObject | undefined {
  if ('d' in jwk || jwk.kty === 'oct') {
    return undefined;
  }
  try {
    return createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' });
  } catch {
    return undefined;
  }
}
