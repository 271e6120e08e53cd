/** Figures for metrics. */
export interface SyncStats {
  /** Resources whose state is to be sent, or is not acknowledged yet. */
  readonly pending: number;
  readonly inFlight: number;
  /** Messages of the peer that are not worked off yet. */
  readonly queued: number;
  /** Resources whose last write failed and is tried again. */
  readonly retrying: number;
}
