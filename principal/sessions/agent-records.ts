/** A connected agent, with its description of itself. */
export interface ConnectedAgent {
  readonly mode: string;
  readonly version: string;
}

/** What is recorded of the agents' connections, in Leases `argocd-agent-<agent>` of the principal's namespace. */
export interface AgentRecords {
  /**
   * The agent has a stream. True: it may be served at once. False: it may be served when the records' owner is told that this
   * principal holds it.
   */
  connected(agent: string, details: ConnectedAgent): boolean;
  /** The agent's stream is gone. */
  disconnected(agent: string): void;
  /** The mode in which the agent was last connected; undefined when it never was. */
  modeOf(agent: string): string | undefined;
  /** When a managed agent that is not connected was last; undefined when it never was. */
  managedLastSeen(agent: string): Date | undefined;
  /** When an agent that is not connected was last; undefined when it never was. A later process gives the same answer. */
  lastSeen(agent: string): Date | undefined;
  /** The agent has left the fleet: the mode of its last connection is not remembered. */
  forget(agent: string): void;
  /** Forgets the mode of agents that left the fleet while no principal ran. Call it when the cache is filled. */
  forgetAllBut(isMember: (agent: string) => boolean): void;
  /** Writes records until aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** Records the end of all connections of this process; for a clean shutdown, after `run` has ended. */
  close(): Promise<void>;
}
