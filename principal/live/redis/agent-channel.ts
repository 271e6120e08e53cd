import { Backoff, sleep } from '../../../lib/base/index.ts';

/** An agent that does not agree is asked again after 0.5 s to 1 s, at most after 60 s. */
const askBackoff = { initialMs: 1_000, maxMs: 60_000 };

/** Options of an {@link AgentChannel}. */
export interface AgentChannelOptions {
  readonly agent: string;
  /** Asks the agent to forward messages of the channel; false when it is away or refuses. Rejects only when aborted. */
  ask(signal: AbortSignal): Promise<boolean>;
  /** Sends a message on the channel to the client. */
  tell(): void;
}

/** A channel of an agent's Redis that a client of the Redis proxy follows. */
export class AgentChannel {
  readonly agent: string;
  readonly #options: AgentChannelOptions;
  #asking = new AbortController();
  #isConfirmed = false;
  #hasNews = false;

  constructor(options: AgentChannelOptions) {
    this.agent = options.agent;
    this.#options = options;
  }

  /** Asks the agent, and repeats this until it agrees. Resolves with its first answer. */
  async follow(): Promise<boolean> {
    this.#asking.abort();
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    const agrees = await this.#ask(signal);
    if (!agrees && !signal.aborted) {
      void this.#askAgain(signal);
    }
    return agrees;
  }

  /** The agent is back: it is asked again, and one message stands for those that were missed. */
  async agentConnected(): Promise<void> {
    if (await this.follow()) {
      this.news();
    }
  }

  /** The client's subscription was confirmed. Before that it must not receive messages. */
  confirmed(): void {
    this.#isConfirmed = true;
    if (this.#hasNews) {
      this.#options.tell();
    }
  }

  /** The channel has a new message. */
  news(): void {
    if (this.#isConfirmed) {
      this.#options.tell();
    } else {
      this.#hasNews = true;
    }
  }

  /** The client does not follow the channel any more. */
  leave(): void {
    this.#asking.abort();
  }

  #ask(signal: AbortSignal): Promise<boolean> {
    // Nothing but the end of asking rejects.
    return this.#options.ask(signal).catch(() => false);
  }

  async #askAgain(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(askBackoff);
    let agrees = false;
    while (!agrees) {
      await sleep(backoff.next(), signal);
      if (signal.aborted) {
        return;
      }
      agrees = await this.#ask(signal);
    }
    this.news();
  }
}
