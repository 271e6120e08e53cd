import type { Entry, FlightOutcome } from './decision.ts';

/** The peer may lack the present state of a resource from now on; while an event is in flight, also after that one. */
export function fallBehind(entry: Entry, now: number): void {
  if (entry.flight === undefined) {
    entry.behindSince ??= now;
  } else {
    entry.changedSince ??= now;
  }
}

/**
 * The peer acknowledged an event about a resource.
 * @returns for how long, in milliseconds, the peer lacked the state that it now has; undefined when it got no state
 */
export function catchUp(entry: Entry, outcome: FlightOutcome, now: number): number | undefined {
  const since = entry.behindSince;
  entry.behindSince = entry.changedSince;
  entry.changedSince = undefined;
  return outcome.is === 'intent' || since === undefined ? undefined : now - since;
}

/** Both sides are equal. */
export function beInStep(entry: Entry): void {
  entry.behindSince = undefined;
  entry.changedSince = undefined;
}

/** For how long, in milliseconds, the oldest of these resources may differ at the peer; 0 for none. */
export function oldestLag(entries: Iterable<Entry>, now: number): number {
  let oldest = now;
  for (const { behindSince = now } of entries) {
    oldest = Math.min(oldest, behindSince);
  }
  return now - oldest;
}
