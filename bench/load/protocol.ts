/** What the process of a load generator is started with, as JSON in its only argument. */
export interface LoadSetting {
  /** `host:port` of the principal. */
  readonly server: string;
  /** Folder with the authority of the agents' certificates; see `agentCertificates`. */
  readonly pki: string;
  /** The names of the agents. Each needs a cluster Secret on the hub. */
  readonly agents: readonly string[];
  /** Applications of each agent: it counts as in sync when it has them. */
  readonly applications: number;
  /** The version that agents say they have. */
  readonly version: string;
}

/** What it is told. It ends when its parent is gone. */
export type LoadCommand =
  /** Connect all agents at once. */
  | { readonly do: 'connect' }
  /** Say how things stand. */
  | { readonly do: 'count'; readonly id: number };

/** What it tells. Times are milliseconds since the epoch, with fractions. */
export type LoadReport =
  /** Certificates are there; `connect` may come. */
  | { readonly is: 'ready' }
  | { readonly is: 'in-sync'; readonly agent: string; readonly at: number }
  | { readonly is: 'lost'; readonly agent: string; readonly why: string }
  | ({ readonly is: 'counted'; readonly id: number } & Counts);

/** How things stand at a moment. */
export interface Counts {
  readonly connected: number;
  readonly inSync: number;
  readonly applications: number;
  /** Events that made or changed an object, since the start. */
  readonly changesReceived: number;
  readonly losses: number;
  readonly cpuSeconds: number;
}
