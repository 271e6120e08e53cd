const hour = 3_600_000;

/** Milliseconds until a renewal, from 1 s to 12 h. Timers cannot exceed 24 days, so the caller checks twice a day. */
export function untilRenewal(renewAt: number, now: Date): number {
  return Math.max(1_000, Math.min(renewAt - now.getTime(), 12 * hour));
}
