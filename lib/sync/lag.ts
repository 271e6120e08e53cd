import type { Entry, FlightOutcome } from './decision.ts';
import type { ResourceKey } from './resource.ts';

/** A resource that differs at the peer. */
export interface LateEntry {
  readonly key: ResourceKey;
  /** For how long, in milliseconds. */
  readonly ms: number;
}

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

/** Some resources, at most `most`, that may have differed at the peer for longer than `afterMs` milliseconds. */
export function lateEntries(
  groups: readonly Iterable<Entry>[],
  now: number,
  afterMs: number,
  most: number,
): LateEntry[] {
  const found: LateEntry[] = [];
  for (const entries of groups) {
    for (const { key, behindSince = now } of entries) {
      if (found.length >= most) {
        return found;
      }
      if (now - behindSince > afterMs) {
        found.push({ key, ms: now - behindSince });
      }
    }
  }
  return found;
}
