import { KeyedMutex, type Logger } from '../../../lib/base/index.ts';
import { type RedisRequest, redisResponse } from '../../../lib/live/index.ts';
import type { RedisLink } from '../../../lib/redis/index.ts';
import type { Tracer } from '../../../lib/tracing/index.ts';
import { dataOf } from '../../../lib/wire/index.ts';
import { NoAnswerError } from '../agent-requests.ts';
import type { RedisProxyMetrics } from '../metrics.ts';
import type { AskRedis } from './ask-redis.ts';
import { applicationText, withMirroredChildren } from './child-applications.ts';
import { emptyValue } from './keys.ts';
import { LastValues } from './last-values.ts';
import { checkValue, ValueRefusal } from './value-check.ts';

/** What {@link AgentCache} works with. */
export interface AgentCacheOptions {
  readonly ask: AskRedis;
  /** Whether the hub has mirrors of the agent's Applications. */
  readonly isAutonomous: (agent: string) => boolean;
  /** Where the last values are kept. */
  readonly link: Pick<RedisLink, 'get' | 'set' | 'delete' | 'sizes' | 'onReady'>;
  readonly metrics: RedisProxyMetrics;
  /** Undefined when nothing is traced. */
  readonly tracer?: Tracer | undefined;
  readonly logger: Logger;
}

/** The cache of agents' Argo CDs, as the hub's Argo CD reads it. While an agent is away, its last values are served. */
export class AgentCache {
  readonly #options: AgentCacheOptions;
  readonly #lastValues: LastValues;
  /** One value of an agent is unpacked at a time: one that costs much keeps only its own agent's waiting. */
  readonly #turns = new KeyedMutex();

  constructor(options: AgentCacheOptions) {
    this.#options = options;
    this.#lastValues = new LastValues(options.link, options.logger);
  }

  /**
   * The value of a key; undefined when the agent's Argo CD has none. Unknown values are empty.
   * @throws ValueRefusal, which says what is wrong, for a value that Argo CD must not get
   */
  async get(agent: string, connectionUuid: string, key: string, signal: AbortSignal): Promise<Buffer | undefined> {
    const { metrics, logger } = this.#options;
    metrics.request(agent, 'get');
    try {
      const { get } = await this.#ask(agent, connectionUuid, { get: { key } }, signal);
      if (get?.error !== '') {
        throw new Error(get?.error.slice(0, 1_000) ?? 'the agent sent the answer to another command');
      }
      const value = get.cacheHit ? (get.bytes ?? Buffer.alloc(0)) : undefined;
      if (value !== undefined) {
        const served = await this.#served(agent, key, value, signal);
        this.#lastValues.keep(agent, key, value);
        return served;
      }
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      metrics.failed(agent, 'get');
      if (error instanceof ValueRefusal) {
        logger.warn({ agent, key, error }, "a value of an agent's cache is not passed on to Argo CD");
        throw error;
      }
      if (!(error instanceof NoAnswerError)) {
        logger.warn({ agent, error }, "the cache of an agent's Argo CD cannot be read");
      }
      return (await this.#lastValue(agent, key, signal)) ?? emptyValue(key);
    }
  }

  /** What was kept may be from a version that did not check it. */
  async #lastValue(agent: string, key: string, signal: AbortSignal): Promise<Buffer | undefined> {
    const value = await this.#lastValues.get(agent, key);
    return value && this.#served(agent, key, value, signal);
  }

  /** A value as the hub's Argo CD gets it. @throws ValueRefusal */
  async #served(agent: string, key: string, value: Buffer, signal: AbortSignal): Promise<Buffer> {
    const sought = this.#options.isAutonomous(agent) ? applicationText : undefined;
    return this.#turns.run(agent, async () => {
      signal.throwIfAborted();
      const hasApplications = await checkValue(key, value, signal, sought);
      return hasApplications ? withMirroredChildren(key, value, agent) : value;
    });
  }

  /** Asks the agent to forward messages of a channel, under the same connection UUID. False when the request failed. */
  async subscribe(agent: string, connectionUuid: string, channel: string, signal: AbortSignal): Promise<boolean> {
    const { metrics, logger } = this.#options;
    metrics.request(agent, 'subscribe');
    try {
      const { subscribeResponse } = await this.#ask(agent, connectionUuid, { subscribe: { channel } }, signal);
      if (subscribeResponse?.error) {
        throw new Error(subscribeResponse.error.slice(0, 1_000));
      }
      return true;
    } catch (error) {
      signal.throwIfAborted();
      metrics.failed(agent, 'subscribe');
      if (!(error instanceof NoAnswerError)) {
        logger.warn({ agent, error }, 'an agent refuses to forward messages of a channel');
      }
      return false;
    }
  }

  /** Confirms to the agent that the connection is open, so that it keeps the subscriptions. */
  async ping(agent: string, connectionUuid: string, signal: AbortSignal): Promise<void> {
    await this.#ask(agent, connectionUuid, { ping: {} }, signal);
  }

  async #ask(agent: string, connectionUuid: string, body: RedisRequest['body'], signal: AbortSignal) {
    const { ask, tracer } = this.#options;
    const asked = async () => dataOf(await ask(agent, { connectionUuid, body }, signal), redisResponse).body;
    if (tracer === undefined) {
      return asked();
    }
    const [operation = ''] = Object.keys(body);
    const span = tracer.start(`redis-proxy ${operation}`, {
      kind: 'client',
      parent: tracer.active,
      attributes: { 'db.system.name': 'redis', 'db.operation.name': operation, 'argocd.agent.name': agent },
    });
    try {
      const answer = await tracer.within(span, asked);
      span.end();
      return answer;
    } catch (error) {
      span.end((error as Error).message.slice(0, 300));
      throw error;
    }
  }
}
