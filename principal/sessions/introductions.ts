import type { AgentIdentity, AuthRequest } from '../../lib/auth/index.ts';

/** An agent's own description from its last login, cut to a sensible length. */
export interface AgentIntroduction {
  readonly version: string;
  /** The namespace of Argo CD on the agent's cluster. */
  readonly namespace: string;
}

const longestVersion = 128;
const longestNamespace = 63;

/** How agents described themselves when they last authenticated. */
export class AgentIntroductions {
  readonly #byAgent = new Map<string, AgentIntroduction>();

  /** Records the description of an agent that has authenticated. */
  record({ agent }: Pick<AgentIdentity, 'agent'>, { version, agentNamespace }: AuthRequest): void {
    this.#byAgent.set(agent, {
      version: version.slice(0, longestVersion),
      namespace: agentNamespace.slice(0, longestNamespace),
    });
  }

  /** Undefined for an agent that has not authenticated since this process started. */
  of(agent: string): AgentIntroduction | undefined {
    return this.#byAgent.get(agent);
  }

  forget(agent: string): void {
    this.#byAgent.delete(agent);
  }
}
