/** Another live replica of this principal. */
export interface Peer {
  readonly identity: string;
  /** `host:port`, with brackets around IPv6. */
  readonly address: string;
  /** SHA-256 of the certificate that it shows to peers, upper-case hex without colons. */
  readonly fingerprint: string;
}

/** Who serves which agent. All replicas come to the same answer, a little later than the API server. */
export interface ReplicaDirectory {
  /** This replica's name among its peers. */
  readonly identity: string;
  /** `here` when this replica holds the agent and may serve it, a peer when a live other one does; undefined: nobody does. */
  holderOf(agent: string): 'here' | Peer | undefined;
  /** The other live replicas. */
  peers(): readonly Peer[];
  /** Calls back when `holderOf(agent)` has changed. Returns the function that ends it. */
  subscribe(changed: (agent: string) => void): () => void;
}
