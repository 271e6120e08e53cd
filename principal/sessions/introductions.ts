import type { AgentIdentity, AuthRequest } from '../../lib/auth/index.ts';
import { BoundedMap } from '../../lib/base/index.ts';

/** An agent's own description from its last login, cut to a sensible length. */
export interface AgentIntroduction {
  readonly version: string;
  /** The namespace of Argo CD on the agent's cluster. */
  readonly namespace: string;
}

const longestVersion = 128;
const longestNamespace = 63;
/** Agents without a cluster Secret whose description waits for one. */
const mostWaiting = 1_000;

/** How agents described themselves when they last authenticated. */
export class AgentIntroductions {
  readonly #isMapped: (agent: string) => boolean;
  readonly #byAgent = new Map<string, AgentIntroduction>();
  readonly #waiting = new BoundedMap<string, AgentIntroduction>(mostWaiting);

  /** @param isMapped whether the agent has a cluster Secret */
  constructor(isMapped: (agent: string) => boolean) {
    this.#isMapped = isMapped;
  }

  /** Records the description of an agent that has authenticated. */
  record({ agent }: Pick<AgentIdentity, 'agent'>, { version, agentNamespace }: AuthRequest): void {
    this.forget(agent);
    const introductions = this.#isMapped(agent) ? this.#byAgent : this.#waiting;
    introductions.set(agent, {
      version: version.slice(0, longestVersion),
      namespace: agentNamespace.slice(0, longestNamespace),
    });
  }

  /** Undefined for an agent that has not authenticated since this process started, or has no cluster Secret. */
  of(agent: string): AgentIntroduction | undefined {
    if (!this.#isMapped(agent)) {
      return undefined;
    }
    const waiting = this.#waiting.get(agent);
    if (waiting !== undefined) {
      this.#waiting.delete(agent);
      this.#byAgent.set(agent, waiting);
    }
    return this.#byAgent.get(agent);
  }

  /** The agent has lost its cluster Secret. */
  forget(agent: string): void {
    this.#byAgent.delete(agent);
    this.#waiting.delete(agent);
  }
}
