import type { SharedCluster } from '../testbed/index.ts';

/** OCM on one hub. */
export interface Ocm {
  /** Makes a cluster a ManagedCluster of the hub, with these labels, and starts its agents. */
  join(cluster: SharedCluster, labels?: Record<string, string>): Promise<Membership>;
  /** Ends every controller and agent; what they wrote stays. */
  stop(): Promise<void>;
}

/** One managed cluster's agents. */
export interface Membership {
  readonly name: string;
  /** Ends the cluster's agents, as if the cluster had lost its network; its lease goes stale. */
  disconnect(): Promise<void>;
  /** Starts the agents again. */
  reconnect(): Promise<void>;
}

/** How OCM is set up. */
export interface OcmOptions {
  /** How often the work agents read feedback that is not watched; 10 s as in OCM unless set. */
  statusSyncIntervalMs?: number;
  /** How long the work agents keep the copies of a work that they miss on the hub; an hour as in OCM unless set. */
  evictionGraceMs?: number;
  /** Seconds between lease renewals of a cluster; 60 as in OCM unless set. */
  leaseDurationSeconds?: number;
  signal?: AbortSignal;
  /**
   * Gets an error with the end of the log when one of OCM's programs ends by itself. Default: the error is thrown where
   * nobody catches it, which fails a test run.
   */
  crashed?: (error: Error) => void;
}
