const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/**
 * Milliseconds of a duration in Go's syntax: `300ms`, `1h20m`, `-1.5s`, `0`. As in Go a number without a unit (other than
 * zero) is an error.
 * @throws RangeError with the text in the message
 */
export function parseDuration(text: string): number {
  const wrong = () => new RangeError(`invalid duration ${JSON.stringify(text)} (examples: 300ms, 30s, 1h20m)`);
  const sign = text.startsWith('-') ? -1 : 1;
  const body = text.replace(/^[+-]/, '');
  if (body === '0') {
    return 0;
  }
  if (!/^(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/u.test(body)) {
    throw wrong();
  }
  let total = 0;
  for (const [, number, unit] of body.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/gu)) {
    total += Number(number) * (unitMs[unit ?? ''] ?? Number.NaN);
  }
  if (!Number.isFinite(total)) {
    throw wrong();
  }
  return sign * total;
}

/** A duration as Go prints it: `0s`, `300ms`, `1m30s`, `1h0m0s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) {
    return '0s';
  }
  const sign = ms < 0 ? '-' : '';
  const rest = Math.abs(ms);
  if (rest < 1) {
    return `${sign}${rest * 1_000}µs`;
  }
  if (rest < 1_000) {
    return `${sign}${rest}ms`;
  }
  const hours = Math.floor(rest / 3_600_000);
  const minutes = Math.floor((rest % 3_600_000) / 60_000);
  const seconds = (rest % 60_000) / 1_000;
  const head = hours > 0 ? `${hours}h${minutes}m` : minutes > 0 ? `${minutes}m` : '';
  return `${sign}${head}${seconds}s`;
}
