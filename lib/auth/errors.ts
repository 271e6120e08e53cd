/**
 * Why somebody was not let in.
 *
 * | code | meaning |
 * |---|---|
 * | `configuration` | the authentication method itself is set up wrongly (a flag, a file, a key) |
 * | `unknown-method` | the agent uses a method that is not configured here |
 * | `no-credentials` | nothing was presented that the method could check |
 * | `bad-credentials` | what was presented does not hold |
 * | `bad-name` | the identity found is not acceptable as an agent name |
 * | `revoked` | the certificate is on the blocklist |
 * | `bad-token` | the token is malformed, forged, expired, for another purpose or from another issuer |
 * | `wrong-certificate` | the token is good, the connection (its certificate, its proxy's header) is somebody else's |
 */
export type AuthErrorCode =
  | 'configuration'
  | 'unknown-method'
  | 'no-credentials'
  | 'bad-credentials'
  | 'bad-name'
  | 'revoked'
  | 'bad-token'
  | 'wrong-certificate';

/** A refusal, in words for the operator of the principal. Never holds a secret. */
export class AuthError extends Error {
  override readonly name = 'AuthError';
  readonly code: AuthErrorCode;
  /** The name that was claimed, where there was one. */
  readonly agent?: string;

  constructor(code: AuthErrorCode, message: string, options: { agent?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    if (options.agent !== undefined) this.agent = options.agent;
  }
}
