import { X509Certificate } from 'node:crypto';
import type { ClientTls } from '../tls.ts';

/** How often a renewed certificate is looked for. */
const lookMs = 60_000;
/** Share of a certificate's life before its end in which it is looked for. */
const lastShare = 0.1;

/**
 * Looks, near the end of the certificate that a connection was opened with, for a renewed one. A stream may outlive its
 * certificate; to change over in time is better than to be found without a valid one when the connection breaks.
 */
export class CertificateWatch {
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(used: ClientTls | 'plaintext', current: () => ClientTls | 'plaintext', renewed: () => void) {
    if (used === 'plaintext' || used.cert === undefined) {
      return;
    }
    const { validFromDate, validToDate } = new X509Certificate(used.cert);
    const from = validFromDate.getTime();
    const lookFrom = validToDate.getTime() - (validToDate.getTime() - from) * lastShare;
    this.#timer = setInterval(() => {
      if (Date.now() < lookFrom) {
        return;
      }
      const now = current();
      if (now !== 'plaintext' && now.cert !== used.cert) {
        renewed();
      }
    }, lookMs).unref();
  }

  /** The connection has ended. */
  stop(): void {
    clearInterval(this.#timer);
  }
}
