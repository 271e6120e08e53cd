import { X509Certificate } from 'node:crypto';
import type { ClientTls } from '../tls.ts';

/** How often a renewed certificate is looked for. */
const lookMs = 60_000;
/** Share of a certificate's life before its end in which it is looked for. */
const lastShare = 0.1;

/**
 * Looks, near the end of the certificate that a connection was opened with, for a renewed one. A principal ends
 * the connection with its certificate, one of argocd-agent refuses further calls: to change over in time is better.
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
