import { acknowledgement } from '../../lib/wire/index.ts';
import type { WireManners } from './wire-peer.ts';

/** What either side may do wrong. */
export interface PeerFaults {
  /** It acknowledges by the ids alone. */
  readonly bareAcknowledgements?: boolean;
  /** It does not acknowledge repetitions. */
  readonly deafToRepetitions?: boolean;
  /** It forgets what was not acknowledged. */
  readonly forgetful?: boolean;
}

/** The manners of a peer with faults. */
export function faulty(faults: PeerFaults, source: string): WireManners {
  const seen = new Set<string>();
  return {
    isForgetful: faults.forgetful ?? false,
    hears: ({ eventId }) => {
      const isNew = !seen.has(eventId);
      seen.add(eventId);
      return isNew || !faults.deafToRepetitions;
    },
    acknowledge: (event) => {
      const { resourceid = '', eventid = '' } = event.extensions;
      const done = acknowledgement(event, source);
      return faults.bareAcknowledgements ? { ...done, extensions: { resourceid, eventid } } : done;
    },
  };
}
