import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';

/** What signs JWT-SVIDs of a trust domain. */
export interface JwtSigner {
  /** The public half, with its ID. */
  readonly jwk: JWK;
  /** @param options.seconds how long the JWT-SVID lives; default 300 */
  sign(options: { id: string; audience: readonly string[]; seconds?: number; kid?: string }): Promise<string>;
}

/** Makes a signing key with this ID. */
export async function createJwtSigner(kid: string): Promise<JwtSigner> {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  return {
    jwk: { ...(await exportJWK(publicKey)), kid, use: 'jwt-svid' },
    sign({ id, audience, seconds = 300, kid: named = kid }) {
      const now = Math.floor(Date.now() / 1_000);
      return new SignJWT({})
        .setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid: named })
        .setSubject(id)
        .setAudience([...audience])
        .setIssuedAt(now)
        .setExpirationTime(now + seconds)
        .sign(privateKey);
    },
  };
}
