import { createPrivateKey, createPublicKey, type KeyObject, randomUUID } from 'node:crypto';
import { compactVerify, errors as joseErrors, jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import { AuthError } from './errors.ts';
import type { AgentIdentity } from './identity.ts';

/** The issuer that argocd-agent's principal writes into every token. */
const tokenIssuer = 'argocd-agent-server';

const algorithm = 'RS512';
const audiences = {
  access: `${tokenIssuer}-access`,
  refresh: `${tokenIssuer}-refresh`,
  resourceProxy: `${tokenIssuer}-resource-proxy`,
} as const;

const accessSeconds = 5 * 60;
/** How long tokens of a replaced key count that is not listed as a former one, ms; see {@link TokenAuthority.rotate}. */
export const replacedKeyMs = accessSeconds * 1_000;
const refreshSeconds = 24 * 60 * 60;
/** How long tokens live, whatever they say, in seconds from their `iat`. Those of the resource proxy have no end. */
const lifetimes: ReadonlyMap<string, number> = new Map([
  [audiences.access, accessSeconds],
  [audiences.refresh, refreshSeconds],
]);
/** A refresh token with less than this left to live is replaced when it is used. */
const renewRefreshBelowSeconds = 10 * 60;

/** Former keys that are accepted beside the current one; more changes within 5 minutes are a mistake. */
const maxFormerKeys = 3;

const credentialSchema = z.string().min(1).max(128).optional();
const subjectSchema = z.object({ clientID: z.string().min(1), mode: z.enum(['managed', 'autonomous']) });

/** The two tokens of an agent; `refreshToken` is absent when the current one stays in use. */
export interface TokenPair {
  readonly accessToken: string;
  readonly refreshToken?: string;
}

/**
 * Issues and checks the tokens of argocd-agent: RS512, issuer `argocd-agent-server`, one audience per purpose, `sub` a
 * JSON text with client ID and mode. The claim `credential`, an addition to argocd-agent's, is the digest of the
 * credentials of the login, where there is one. Access tokens live 5 minutes, refresh tokens 24 hours; resource-proxy tokens
 * do not expire. Times are checked without leeway, as Go peers do. A token that was issued for longer, before the times became
 * shorter or by another program with this key, lives no longer than one that is issued now.
 */
export class TokenAuthority {
  #privateKey: KeyObject;
  #publicKey: KeyObject;
  /** Replaced keys, and until when, in seconds, their signatures are accepted. */
  #former: { readonly publicKey: KeyObject; readonly until: number }[] = [];
  /** Public keys that are configured as former ones: their tokens are accepted until they expire. */
  #named: readonly KeyObject[] = [];
  readonly #now: () => Date;

  private constructor(privateKey: KeyObject, now: () => Date) {
    this.#privateKey = privateKey;
    this.#publicKey = createPublicKey(privateKey);
    this.#now = now;
  }

  /**
   * An authority that signs with an RSA key in PKCS#8 PEM form (the field `jwt.key` of the Secret `argocd-agent-jwt`).
   *
   * @throws AuthError `configuration` when the text is no RSA private key of at least 2048 bits
   */
  static fromPem(
    pem: string,
    options: { readonly now?: () => Date; readonly former?: readonly string[] } = {},
  ): TokenAuthority {
    const authority = new TokenAuthority(parseKey(pem), options.now ?? (() => new Date()));
    authority.#named = (options.former ?? []).map((key) => createPublicKey(key));
    return authority;
  }

  /**
   * Signs with another key from now on. Tokens of the keys in `former` are accepted until they expire, or until the keys
   * are no longer listed. If the replaced key is not listed, its tokens are accepted for 5 more minutes, the life of an
   * access token, so that requests under way succeed; within that time agents should log in again. After a leak, restart
   * the program instead: then tokens of the old key are refused at once.
   *
   * @param former public keys, PEM
   * @returns whether agents should log in again
   * @throws AuthError `configuration` when the key cannot be used; the current one stays
   */
  rotate(pem: string, former: readonly string[] = []): boolean {
    const key = parseKey(pem);
    const publicKey = createPublicKey(key);
    this.#named = former.map((one) => createPublicKey(one));
    if (publicKey.equals(this.#publicKey)) {
      return false;
    }
    if (this.#named.some((one) => one.equals(this.#publicKey))) {
      this.#privateKey = key;
      this.#publicKey = publicKey;
      return false;
    }
    const until = this.#seconds() + accessSeconds;
    // A key that returns is not a former one.
    this.#former = [...this.#formerKeys(), { publicKey: this.#publicKey, until }]
      .filter((former) => !former.publicKey.equals(publicKey))
      .slice(-maxFormerKeys);
    this.#privateKey = key;
    this.#publicKey = publicKey;
    return true;
  }

  /** Both tokens for an agent that has proved its identity. */
  async issue(identity: AgentIdentity): Promise<Required<TokenPair>> {
    const [accessToken, refreshToken] = await Promise.all([
      this.#sign(audiences.access, claimsOf(identity), accessSeconds),
      this.#sign(audiences.refresh, claimsOf(identity), refreshSeconds),
    ]);
    return { accessToken, refreshToken };
  }

  /** @throws AuthError `bad-token` */
  async verifyAccess(token: string): Promise<AgentIdentity> {
    return (await this.#verify(audiences.access, token)).identity;
  }

  /**
   * A new access token for a refresh token, and a new refresh token if this one is near its end.
   *
   * @param allow checks the agent again (removed, revoked); it throws to refuse
   * @throws AuthError `bad-token`, or what `allow` throws
   */
  async refresh(token: string, allow?: (identity: AgentIdentity) => void | Promise<void>): Promise<TokenPair> {
    const { identity, expires } = await this.#verify(audiences.refresh, token);
    await allow?.(identity);
    if (expires - this.#seconds() < renewRefreshBelowSeconds) {
      return this.issue(identity);
    }
    return { accessToken: await this.#sign(audiences.access, claimsOf(identity), accessSeconds) };
  }

  /** The token by which Argo CD reads an agent's live resources through the principal; it never expires. */
  async issueResourceProxy(agent: string): Promise<string> {
    return this.#sign(audiences.resourceProxy, { sub: agent }, undefined);
  }

  /** The agent that a resource-proxy token is for. @throws AuthError `bad-token` */
  async verifyResourceProxy(token: string): Promise<string> {
    const { payload } = await this.#check(audiences.resourceProxy, token);
    if (!payload.sub) {
      throw new AuthError('bad-token', 'The token names no agent');
    }
    return payload.sub;
  }

  /** Whether a resource-proxy token is for this agent and of the current key: tokens of a former key expire. */
  async isLastingResourceProxy(token: string, agent: string): Promise<boolean> {
    try {
      const { payload } = await jwtVerify(token, this.#publicKey, this.#rules(audiences.resourceProxy));
      return payload.sub === agent && payload.exp === undefined;
    } catch (error) {
      if (error instanceof joseErrors.JOSEError) {
        return false;
      }
      throw error;
    }
  }

  /** Whether a token is signed by a key that counts now, whatever its age. */
  async isSigned(token: string): Promise<boolean> {
    for (const key of this.#keys()) {
      try {
        await compactVerify(token, key, { algorithms: [algorithm] });
        return true;
      } catch (error) {
        if (!(error instanceof joseErrors.JOSEError)) {
          throw error;
        }
      }
    }
    return false;
  }

  async #verify(audience: string, token: string): Promise<{ identity: AgentIdentity; expires: number }> {
    const { payload } = await this.#check(audience, token);
    let subject: unknown;
    try {
      subject = JSON.parse(payload.sub ?? '');
    } catch {
      subject = undefined;
    }
    const parsed = subjectSchema.safeParse(subject);
    if (!parsed.success) {
      throw new AuthError('bad-token', 'The subject of the token is not an agent and its mode');
    }
    if (payload.exp === undefined) {
      throw new AuthError('bad-token', 'The token has no end of validity');
    }
    const credential = credentialSchema.safeParse(payload.credential);
    if (!credential.success) {
      throw new AuthError('bad-token', 'The credential in the token is no digest');
    }
    const { clientID: agent, mode } = parsed.data;
    const identity = { agent, mode, ...(credential.data === undefined ? {} : { credential: credential.data }) };
    const age = lifetimes.get(audience) ?? Number.POSITIVE_INFINITY;
    return { identity, expires: Math.min(payload.exp, (payload.iat ?? 0) + age) };
  }

  async #check(audience: string, token: string) {
    const rules = this.#rules(audience);
    let problem: unknown;
    for (const key of this.#keys()) {
      try {
        return await jwtVerify(token, key, rules);
      } catch (error) {
        problem = error;
        if (!(error instanceof joseErrors.JWSSignatureVerificationFailed)) {
          break;
        }
      }
    }
    throw new AuthError('bad-token', `The token was refused: ${reasonOf(problem)}`);
  }

  #rules(audience: string) {
    const seconds = lifetimes.get(audience);
    return {
      algorithms: [algorithm],
      issuer: tokenIssuer,
      audience,
      currentDate: this.#now(),
      ...(seconds === undefined ? {} : { maxTokenAge: seconds }),
    };
  }

  #keys(): KeyObject[] {
    return [this.#publicKey, ...this.#named, ...this.#formerKeys().map(({ publicKey }) => publicKey)];
  }

  #formerKeys() {
    const now = this.#seconds();
    return this.#former.filter((former) => former.until > now);
  }

  async #sign(audience: string, claims: TokenClaims, seconds: number | undefined): Promise<string> {
    const now = this.#seconds();
    const token = new SignJWT({ ...claims })
      .setProtectedHeader({ alg: algorithm, typ: 'JWT' })
      .setIssuer(tokenIssuer)
      .setAudience([audience])
      .setNotBefore(now)
      .setIssuedAt(now)
      .setJti(randomUUID());
    if (seconds !== undefined) {
      token.setExpirationTime(now + seconds);
    }
    return token.sign(this.#privateKey);
  }

  #seconds(): number {
    return Math.floor(this.#now().getTime() / 1000);
  }
}

function parseKey(pem: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    // No cause: OpenSSL's messages may quote the input.
    throw new AuthError('configuration', 'The JWT signing key is not a private key in PEM form (PKCS#8)');
  }
  const bits = key.asymmetricKeyDetails?.modulusLength;
  if (key.asymmetricKeyType !== 'rsa' || bits === undefined || bits < 2048) {
    throw new AuthError('configuration', 'The JWT signing key must be an RSA key of at least 2048 bits');
  }
  return key;
}

interface TokenClaims {
  readonly sub: string;
  readonly credential?: string;
}

function claimsOf({ agent, mode, credential }: AgentIdentity): TokenClaims {
  const sub = JSON.stringify({ clientID: agent, mode });
  return credential === undefined ? { sub } : { sub, credential };
}

function reasonOf(error: unknown): string {
  if (error instanceof joseErrors.JWTExpired) {
    return 'it has expired';
  }
  if (error instanceof joseErrors.JWTClaimValidationFailed) {
    return `its claim "${error.claim}" does not fit`;
  }
  if (error instanceof joseErrors.JWSSignatureVerificationFailed) {
    return 'its signature is not of this principal';
  }
  return 'it is malformed';
}
