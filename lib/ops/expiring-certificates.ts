import { sleep } from '../base/index.ts';
import type { FleetReporter } from './fleet-events.ts';

/** What only time tells: it has to be looked at. */
const everyMs = 60_000;
const expiresWithinMs = 7 * 86_400_000;

/** A certificate, by what it is. */
export interface WatchedCertificate {
  readonly certificate: string;
  readonly notAfter: Date;
}

/** Reports certificates that end within 7 days, each once, until aborted. One that is not there any more is forgotten. */
export async function watchCertificates(
  events: FleetReporter,
  certificates: () => Iterable<WatchedCertificate>,
  signal: AbortSignal,
  intervalMs = everyMs,
): Promise<void> {
  let ending = new Set<string>();
  for (await sleep(intervalMs, signal); !signal.aborted; await sleep(intervalMs, signal)) {
    const now = new Set<string>();
    for (const { certificate, notAfter } of certificates()) {
      if (notAfter.getTime() - Date.now() >= expiresWithinMs) {
        continue;
      }
      const end = notAfter.toISOString();
      const key = `${certificate} ${end}`;
      now.add(key);
      if (!ending.has(key)) {
        events.report('certificate-expiring', `certificates/${certificate}`, { certificate, notAfter: end });
      }
    }
    ending = now;
  }
}
