/** What the load generator is told on standard input, one JSON object per line (`--remote`). */
export type LoadCommand =
  /** Connect all agents at once. */
  | { readonly do: 'connect' }
  /** Change the status of Applications, spread evenly over agents and time. */
  | { readonly do: 'change'; readonly perSecond: number; readonly seconds: number }
  /** Begin, or with 0 stop, to report the cluster cache every so often. */
  | { readonly do: 'cache-info'; readonly everySeconds: number }
  /** Say how things stand. */
  | { readonly do: 'count'; readonly id: number };

/** What it tells on standard output. Times are milliseconds since the epoch, with fractions. */
export type LoadReport =
  /** Certificates are there; `connect` may come. */
  | { readonly is: 'ready' }
  | { readonly is: 'in-sync'; readonly agent: string; readonly at: number }
  | { readonly is: 'lost'; readonly agent: string; readonly why: string }
  /** All status changes of a `change` were made and acknowledged or superseded. */
  | ({ readonly is: 'changes-done' } & Changes)
  | ({ readonly is: 'counted'; readonly id: number } & Counts);

/** What became of a run of status changes. */
export interface Changes {
  readonly made: number;
  /** Never sent, because a newer one came first. */
  readonly superseded: number;
  readonly sent: number;
  /** Milliseconds from sending to acknowledgement: p50, p90, p99, greatest. */
  readonly acknowledgedMs: readonly number[];
}

/** How things stand at a moment. */
export interface Counts {
  readonly connected: number;
  readonly inSync: number;
  readonly applications: number;
  /** Events that made or changed an object, since the start. */
  readonly changesReceived: number;
  readonly losses: number;
  readonly cpuSeconds: number;
  readonly rssBytes: number;
}
