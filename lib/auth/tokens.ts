import { createPrivateKey, createPublicKey, type KeyObject, randomUUID } from 'node:crypto';
import { errors as joseErrors, jwtVerify, SignJWT } from 'jose';
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
const refreshSeconds = 24 * 60 * 60;
/** A refresh token with less than this left is replaced when it is used. */
const renewRefreshBelowSeconds = 10 * 60;

/** Keys that count beside the present one; more changes than that within 5 minutes are a mistake. */
const maxFormerKeys = 3;

const subjectSchema = z.object({ clientID: z.string().min(1), mode: z.enum(['managed', 'autonomous']) });

/** The two tokens of an agent; `refreshToken` is absent when the one in use lives on. */
export interface TokenPair {
  readonly accessToken: string;
  readonly refreshToken?: string;
}

/**
 * Issues and checks the tokens of argocd-agent: RS512, issuer `argocd-agent-server`, one audience per purpose, `sub` a
 * JSON text with client ID and mode. Access tokens live 5 minutes, refresh tokens 24 hours, resource-proxy tokens
 * have no end. Times are checked without leeway, as Go peers do.
 */
export class TokenAuthority {
  #privateKey: KeyObject;
  #publicKey: KeyObject;
  /** Keys that were replaced, and until when, in seconds, what they signed counts. */
  #former: { readonly publicKey: KeyObject; readonly until: number }[] = [];
  /** Public keys that are named as former ones: what they signed counts until it expires. */
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
   * Signs with another key from now on. What the keys named as former signed counts until it expires, or until they are no
   * longer named. If the key that was in use is not among them, what it signed counts for 5 more minutes, the life of an
   * access token, so that agents in the midst of something notice nothing; within that time they should be made to log in
   * anew. A key that leaked is better replaced by a restart, after which its tokens are worth nothing.
   *
   * @param former public keys, PEM
   * @returns whether agents should log in anew
   * @throws AuthError `configuration` when the key cannot be used; the present one stays
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
    // A key that comes back is no former one.
    this.#former = [...this.#formerKeys(), { publicKey: this.#publicKey, until }]
      .filter((former) => !former.publicKey.equals(publicKey))
      .slice(-maxFormerKeys);
    this.#privateKey = key;
    this.#publicKey = publicKey;
    return true;
  }

  /** Both tokens for an agent that has proved who it is. */
  async issue(identity: AgentIdentity): Promise<Required<TokenPair>> {
    const [accessToken, refreshToken] = await Promise.all([
      this.#sign(audiences.access, subjectOf(identity), accessSeconds),
      this.#sign(audiences.refresh, subjectOf(identity), refreshSeconds),
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
   * @param allow looks at the agent once more (removed, revoked); it throws to refuse
   * @throws AuthError `bad-token`, or what `allow` throws
   */
  async refresh(token: string, allow?: (identity: AgentIdentity) => void | Promise<void>): Promise<TokenPair> {
    const { identity, expires } = await this.#verify(audiences.refresh, token);
    await allow?.(identity);
    if (expires - this.#seconds() < renewRefreshBelowSeconds) {
      return this.issue(identity);
    }
    return { accessToken: await this.#sign(audiences.access, subjectOf(identity), accessSeconds) };
  }

  /** The token with which Argo CD reaches an agent's live resources through the principal; it never expires. */
  async issueResourceProxy(agent: string): Promise<string> {
    return this.#sign(audiences.resourceProxy, agent, undefined);
  }

  /** The agent that a resource-proxy token is for. @throws AuthError `bad-token` */
  async verifyResourceProxy(token: string): Promise<string> {
    const { payload } = await this.#check(audiences.resourceProxy, token);
    if (!payload.sub) {
      throw new AuthError('bad-token', 'The token names no agent');
    }
    return payload.sub;
  }

  /** Whether a resource-proxy token is for this agent and of the key in use: one of a former key counts only for a while. */
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
    return { identity: { agent: parsed.data.clientID, mode: parsed.data.mode }, expires: payload.exp };
  }

  async #check(audience: string, token: string) {
    const rules = this.#rules(audience);
    let problem: unknown;
    const former = this.#formerKeys().map(({ publicKey }) => publicKey);
    for (const key of [this.#publicKey, ...this.#named, ...former]) {
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
    return { algorithms: [algorithm], issuer: tokenIssuer, audience, currentDate: this.#now() };
  }

  #formerKeys() {
    const now = this.#seconds();
    return this.#former.filter((former) => former.until > now);
  }

  async #sign(audience: string, subject: string, seconds: number | undefined): Promise<string> {
    const now = this.#seconds();
    const token = new SignJWT()
      .setProtectedHeader({ alg: algorithm, typ: 'JWT' })
      .setIssuer(tokenIssuer)
      .setSubject(subject)
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
    // The cause is left out: OpenSSL's messages may quote the input.
    throw new AuthError('configuration', 'The JWT signing key is not a private key in PEM form (PKCS#8)');
  }
  const bits = key.asymmetricKeyDetails?.modulusLength;
  if (key.asymmetricKeyType !== 'rsa' || bits === undefined || bits < 2048) {
    throw new AuthError('configuration', 'The JWT signing key must be an RSA key of at least 2048 bits');
  }
  return key;
}

function subjectOf(identity: AgentIdentity): string {
  return JSON.stringify({ clientID: identity.agent, mode: identity.mode });
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
