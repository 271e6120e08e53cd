/** A percentile of samples, by the nearest rank. */
export function percentile(samples: readonly number[], percent: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}

/** One row of a latency table: p50, p90, p99 and the greatest, in milliseconds. */
export function latencies(what: string, samples: readonly number[]): string {
  const cells = [50, 90, 99, 100].map((p) => percentile(samples, p).toFixed(1).padStart(9));
  return ` ${what.padEnd(52)}${cells.join('')}   n=${samples.length}`;
}

/** The heading of {@link latencies}. */
export const latencyHeading = ` ${'ms'.padEnd(52)}${['p50', 'p90', 'p99', 'max'].map((h) => h.padStart(9)).join('')}`;
