import { X509Certificate } from 'node:crypto';
import { sleep } from '../../lib/base/index.ts';
import type { FleetNotifications } from './fleet-events.ts';
import { eventSubject } from './presence.ts';

/** What only time tells: it has to be looked at. */
const everyMs = 60_000;
const expiresWithinMs = 7 * 86_400_000;

/** What {@link watchFleet} looks at. */
export interface WatchedFleet {
  /** The connected agents, and for how long the oldest change of each has waited, in milliseconds. */
  agents(): Iterable<{ readonly agent: string; readonly oldestMs: number }>;
  /** Certificates in PEM, by what they are. */
  certificates(): Iterable<{ readonly certificate: string; readonly pem: string | undefined }>;
  /** An agent whose oldest change has waited for longer is reported. */
  readonly outOfStepAfterMs: number;
}

/** Reports agents that stay out of step and certificates that are near their end, once each, until aborted. */
export async function watchFleet(
  events: Pick<FleetNotifications, 'report'>,
  fleet: WatchedFleet,
  signal: AbortSignal,
  intervalMs = everyMs,
): Promise<void> {
  let late = new Set<string>();
  let ending = new Set<string>();
  for (await sleep(intervalMs, signal); !signal.aborted; await sleep(intervalMs, signal)) {
    const lateNow = new Set<string>();
    for (const { agent, oldestMs } of fleet.agents()) {
      if (oldestMs > fleet.outOfStepAfterMs) {
        lateNow.add(agent);
        if (!late.has(agent)) {
          events.report('agent-out-of-step', eventSubject(agent), { agent, seconds: Math.round(oldestMs / 1_000) });
        }
      }
    }
    late = lateNow;
    const endingNow = new Set<string>();
    for (const { certificate, pem } of fleet.certificates()) {
      const end = pem === undefined ? undefined : new X509Certificate(pem).validToDate;
      if (end !== undefined && end.getTime() - Date.now() < expiresWithinMs) {
        const key = `${certificate} ${end.toISOString()}`;
        endingNow.add(key);
        if (!ending.has(key)) {
          events.report('certificate-expiring', `certificates/${certificate}`, {
            certificate,
            notAfter: end.toISOString(),
          });
        }
      }
    }
    ending = endingNow;
  }
}
