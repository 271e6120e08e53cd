/** Figures for metrics. */
export interface SyncStats {
  /** Resources that the peer has to hear of, or has not acknowledged yet. */
  readonly pending: number;
  readonly inFlight: number;
  /** Messages of the peer that are not worked off yet. */
  readonly queued: number;
  /** Resources whose last write failed and is tried again. */
  readonly retrying: number;
}
