import { BoundedMap, type RateLimit, TokenBucket } from '../../base/index.ts';

/**
 * How often an agent may log in, renew its token, and open a stream. Logins and renewals cost signatures, a stream the comparison of
 * all that both sides have. Agents that lose their connection again and again wait between their attempts.
 */
const limit: RateLimit = { burst: 100, perSecond: 2 };
/** Agents whose rate is known. One that is forgotten begins with a whole burst. */
const maxAgents = 10_000;

/** Limits how often each agent begins something. */
export class AgentRate {
  readonly #buckets = new BoundedMap<string, TokenBucket>(maxAgents);

  /** Whether the agent may begin now; it counts as begun then. */
  tryTake(agent: string): boolean {
    const bucket = this.#buckets.get(agent) ?? new TokenBucket(limit);
    this.#buckets.set(agent, bucket);
    return bucket.tryTake();
  }

  /** The limit, as text. */
  static readonly text = `${limit.perSecond} times a second, after ${limit.burst} times at once`;
}
