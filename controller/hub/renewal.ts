const hour = 3_600_000;

/** Milliseconds until a renewal. Timers hold no more than 24 days, and nothing is lost by looking twice a day. */
export function untilRenewal(renewAt: number, now: Date): number {
  return Math.max(1_000, Math.min(renewAt - now.getTime(), 12 * hour));
}
