import { Backoff, sleep } from '../../../lib/base/index.ts';

/** An agent that does not agree is asked again after 0.5 s to 1 s, at most after 60 s. */
const askBackoff = { initialMs: 1_000, maxMs: 60_000 };

/** Options of an {@link AgentChannel}. */
export interface AgentChannelOptions {
  readonly agent: string;
  /** Asks the agent to forward messages of the channel; false when it is away or refuses. Rejects only when aborted. */
  ask(signal: AbortSignal): Promise<boolean>;
  /** Sends a message on the channel to the client. */
  publish(): void;
}

/**
 * A channel of an agent's Redis that a client of the Redis proxy follows. The agent is asked until it agrees. Each time that it
 * agrees, one message stands for those that were missed before.
 */
export class AgentChannel {
  readonly agent: string;
  readonly #options: AgentChannelOptions;
  #asking = new AbortController();

  constructor(options: AgentChannelOptions) {
    this.agent = options.agent;
    this.#options = options;
  }

  /** Asks the agent, until it agrees or the client leaves. Ends an earlier attempt. Never rejects. */
  async follow(): Promise<void> {
    this.#asking.abort();
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    const backoff = new Backoff(askBackoff);
    while (!(await this.#ask(signal))) {
      if (!signal.aborted) {
        await sleep(backoff.next(), signal);
      }
      if (signal.aborted) {
        return;
      }
    }
    if (!signal.aborted) {
      this.#options.publish();
    }
  }

  /** The client does not follow the channel any more. */
  leave(): void {
    this.#asking.abort();
  }

  /** False also when asking was aborted. */
  #ask(signal: AbortSignal): Promise<boolean> {
    return this.#options.ask(signal).catch(() => false);
  }
}
