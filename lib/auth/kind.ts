import type { AuthMethod } from './method.ts';

/** What methods take from the program around them. */
export interface AuthSurroundings {
  /** Whether a client certificate is blocked, by its fingerprint (`fingerprintOf`). */
  isRevoked?(fingerprint: string): boolean;
  /** Receives problems of a user database. */
  warn?(message: string): void;
  /** Judges JWT-SVIDs. */
  readonly svids?: SvidJudge;
}

/** Judges SPIFFE's JWT-SVIDs by the keys of trust domains that are trusted now. */
export interface SvidJudge {
  /** @throws Error that says why the token proves no SPIFFE ID; it never contains the token */
  judge(token: string, audience: string): Promise<JudgedSvid>;
  /** Whether a key still counts. */
  trusts(key: string): boolean;
}

/** What a JWT-SVID proves. */
export interface JudgedSvid {
  readonly id: string;
  /** The end of its validity, in seconds of Unix time. */
  readonly expires: number;
  /** A digest of the key that has signed it, and of its trust domain: 43 characters of base64url. */
  readonly key: string;
}

/** A kind of authentication: what `--auth` says of it, and the method that it makes. */
export interface AuthKind<C extends { readonly method: string }> {
  /** Its forms in `--auth`. */
  readonly forms: string;
  /**
   * Parses what follows the method's name and a colon.
   * @throws AuthError `configuration`
   */
  parse(config: string): C;
  /** Why it does not fit how the principal listens; undefined when it does. */
  misfit?(listener: { readonly plaintext: boolean }): string | undefined;
  /** @throws AuthError `configuration` when something around it is missing */
  create(choice: C, surroundings: AuthSurroundings): AuthMethod | Promise<AuthMethod>;
}

/** A text up to its first colon, and what follows; undefined without a colon. */
export function splitOnce(text: string): [string, string | undefined] {
  const colon = text.indexOf(':');
  return colon < 0 ? [text, undefined] : [text.slice(0, colon), text.slice(colon + 1)];
}
