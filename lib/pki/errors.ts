/** Key or certificate material cannot be used. `what` names it (a file, a Secret's key, …), the message says why. */
export class PkiError extends Error {
  override readonly name = 'PkiError';
  readonly code: 'BAD_CERTIFICATE' | 'BAD_KEY' | 'KEY_MISMATCH' | 'NOT_AN_AUTHORITY' | 'BAD_REQUEST';
  readonly what: string;

  constructor(code: PkiError['code'], what: string, message: string, options?: { cause?: unknown }) {
    super(`${what}: ${message}`, options);
    this.code = code;
    this.what = what;
  }
}
