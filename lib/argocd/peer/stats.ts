/** Figures for metrics. */
export interface SyncStats {
  /** Resources whose state is not sent or not acknowledged yet. */
  readonly pending: number;
  readonly inFlight: number;
  /** Messages of the peer that are not processed yet. */
  readonly queued: number;
  /** Resources whose last write failed and is tried again. */
  readonly retrying: number;
}
