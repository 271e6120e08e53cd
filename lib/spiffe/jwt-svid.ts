import { decodeJwt, decodeProtectedHeader, errors as joseErrors, jwtVerify } from 'jose';
import type { JudgedSvid } from '../auth/index.ts';
import type { JwtAuthority, JwtBundle } from './jwt-bundle.ts';
import { trustDomainOf } from './spiffe-id.ts';

/** Longest token that is read, in characters. Those of SPIRE have less than 1,000. */
const longestToken = 8_192;
/** Those of the specification: signatures by a private key, no shared secrets. */
const algorithms = ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'];

/**
 * Judges a JWT-SVID as its specification has it: signed by a key in the bundle of its own trust domain, for this audience, and not
 * expired. Times are checked without leeway.
 * @throws Error that says why it does not count; it never contains the token
 */
export async function judgeJwtSvid(
  token: string,
  options: {
    readonly audience: string;
    readonly bundles: ReadonlyMap<string, JwtBundle>;
    readonly now?: Date;
  },
): Promise<JudgedSvid> {
  const { audience, bundles, now = new Date() } = options;
  if (token.length > longestToken) {
    throw new Error(`it is longer than ${longestToken} characters`);
  }
  const { id, authority } = signerOf(token, bundles);
  try {
    const { payload } = await jwtVerify(token, authority.key, {
      algorithms,
      audience,
      currentDate: now,
      requiredClaims: ['exp'],
    });
    return { id, expires: payload.exp ?? 0, key: authority.digest };
  } catch (cause) {
    throw new Error(reasonOf(cause, id), { cause });
  }
}

/** Whose a token says that it is, and the key that must have signed it. */
function signerOf(token: string, bundles: ReadonlyMap<string, JwtBundle>): { id: string; authority: JwtAuthority } {
  const { header, sub } = partsOf(token);
  if (header.typ !== undefined && header.typ !== 'JWT' && header.typ !== 'JOSE') {
    throw new Error('its type is neither JWT nor JOSE');
  }
  const domain = trustDomainOf(sub);
  if (domain === undefined) {
    throw new Error('its subject is no SPIFFE ID');
  }
  const bundle = bundles.get(domain);
  if (bundle === undefined) {
    throw new Error(`no bundle of the trust domain of ${sub} is known`);
  }
  const authority = bundle.get(header.kid ?? '');
  if (authority === undefined) {
    throw new Error(`the bundle of the trust domain of ${sub} has no key with the ID that it names`);
  }
  return { id: sub, authority };
}

function partsOf(token: string) {
  try {
    const { sub } = decodeJwt(token);
    return { header: decodeProtectedHeader(token), sub: typeof sub === 'string' ? sub : '' };
  } catch (cause) {
    throw new Error('it is malformed', { cause });
  }
}

function reasonOf(error: unknown, id: string): string {
  if (error instanceof joseErrors.JWTExpired) {
    return `that of ${id} has expired`;
  }
  if (error instanceof joseErrors.JWTClaimValidationFailed) {
    return `the claim "${error.claim}" of that of ${id} does not fit`;
  }
  return `that of ${id} is not signed by the key that it names`;
}
