/**
 * The kind of an error, for programs.
 *
 * | code | meaning |
 * |---|---|
 * | `invalid-event` | a message that is not an event of this protocol |
 * | `invalid-data` | an event whose payload does not have the expected form |
 * | `too-large` | a message or field over its limit |
 * | `unreachable` | no connection: refused, timed out, unknown host |
 * | `certificate-rejected` | the server did not accept the client certificate, or got none |
 * | `server-untrusted` | the client did not accept the server's certificate |
 * | `unauthenticated` | the connection stands, the credentials or the token were refused |
 * | `version-mismatch` | the principal insists on a version string that could not be found out |
 * | `not-accepting` | the principal is up and does not take agents now |
 * | `protocol` | the peer answered with something else than the protocol's answers |
 * | `closed` | the stream was ended on purpose |
 */
export type WireErrorCode =
  | 'invalid-event'
  | 'invalid-data'
  | 'too-large'
  | 'unreachable'
  | 'certificate-rejected'
  | 'server-untrusted'
  | 'unauthenticated'
  | 'version-mismatch'
  | 'not-accepting'
  | 'protocol'
  | 'closed';

/** An error of the protocol, with a message for the operator of the fleet. */
export class WireError extends Error {
  override readonly name = 'WireError';
  readonly code: WireErrorCode;
  /** What to do about it, where something can be done. */
  readonly hint?: string;

  constructor(code: WireErrorCode, message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    if (options.hint !== undefined) {
      this.hint = options.hint;
    }
  }
}
