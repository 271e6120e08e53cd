import { X509Certificate } from 'node:crypto';
import type { ClientTls } from '../tls.ts';
import type { LoginLife } from './login.ts';

/** How often it is looked whether something is near its end. */
const lookMs = 60_000;
/** Share of a life before its end in which it is renewed. */
const lastShare = 0.1;

/**
 * Looks, near the end of the certificate that a connection was opened with, for a renewed one, and for the end of its login. A
 * principal ends the connection with either, one of argocd-agent refuses further calls: to change over in time is better.
 */
export class RenewalWatch {
  readonly #timer: NodeJS.Timeout | undefined;

  /** @param renew is called with the reason, every minute until {@link stop} */
  constructor(
    watched: {
      readonly used: ClientTls | 'plaintext';
      readonly current: () => ClientTls | 'plaintext';
      readonly life?: LoginLife | undefined;
    },
    renew: (why: string) => void,
  ) {
    const { used, current, life } = watched;
    const cert = used === 'plaintext' ? undefined : used.cert;
    const certificateFrom = cert === undefined ? Number.POSITIVE_INFINITY : lastTenth(lifeOf(cert));
    const loginFrom = life === undefined ? Number.POSITIVE_INFINITY : lastTenth(life);
    if (Math.min(certificateFrom, loginFrom) === Number.POSITIVE_INFINITY) {
      return;
    }
    this.#timer = setInterval(() => {
      if (Date.now() >= loginFrom) {
        renew('Our login ends soon');
      } else if (Date.now() >= certificateFrom) {
        const now = current();
        if (now !== 'plaintext' && now.cert !== cert) {
          renew('Our client certificate was renewed');
        }
      }
    }, lookMs).unref();
  }

  /** The connection has ended. */
  stop(): void {
    clearInterval(this.#timer);
  }
}

function lifeOf(cert: string): LoginLife {
  const { validFromDate, validToDate } = new X509Certificate(cert);
  return { since: validFromDate.getTime(), until: validToDate.getTime() };
}

function lastTenth({ since, until }: LoginLife): number {
  return until - (until - since) * lastShare;
}
