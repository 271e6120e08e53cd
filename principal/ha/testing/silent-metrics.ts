const nothing = () => undefined;

/** Metrics of a standby that are not looked at. */
export const silentMetrics = {
  rejected: nothing,
  forwarded: nothing,
  received: nothing,
  processed: nothing,
  failed: nothing,
  gap: nothing,
  reconciled: nothing,
  reconnected: nothing,
  snapshot: nothing,
  onlyHere: nothing,
};
