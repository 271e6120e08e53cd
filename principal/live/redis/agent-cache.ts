import { randomUUID } from 'node:crypto';
import type { Logger } from '../../../lib/base/index.ts';
import { type RedisRequest, redisResponse } from '../../../lib/live/index.ts';
import type { RedisLink } from '../../../lib/redis/index.ts';
import { dataOf, eventTypes, messageEvent, principalSource, targets, type WireEvent } from '../../../lib/wire/index.ts';
import { type AgentRequests, NoAnswerError } from '../agent-requests.ts';
import type { RedisProxyMetrics } from '../metrics.ts';
import { emptyValue } from './keys.ts';

/** What {@link AgentCache} works with. */
export interface AgentCacheOptions {
  readonly exchange: AgentRequests;
  /** Where the last values are kept. */
  readonly link: Pick<RedisLink, 'get' | 'set'>;
  readonly metrics: RedisProxyMetrics;
  readonly logger: Logger;
}

/** Argo CD's client gives up after 5 s and comes again. */
const answerTimeoutMs = 4_000;
/** How long a value outlives the connection to its agent. */
const staleMs = 24 * 3_600_000;

/** The cache of agents' Argo CDs, as the hub's Argo CD reads it. While an agent is away, its last values are served. */
export class AgentCache {
  readonly #options: AgentCacheOptions;

  constructor(options: AgentCacheOptions) {
    this.#options = options;
  }

  /** The value of a key; undefined when the agent's Argo CD has none. Never fails: unknown values are empty. */
  async get(agent: string, connectionUuid: string, key: string, signal: AbortSignal): Promise<Buffer | undefined> {
    const { metrics, link, logger } = this.#options;
    metrics.request(agent, 'get');
    try {
      const { get } = await this.#ask(agent, connectionUuid, { get: { key } }, signal);
      if (get?.error !== '') {
        throw new Error(get?.error ?? 'the agent answers something else');
      }
      const value = get.cacheHit ? (get.bytes ?? Buffer.alloc(0)) : undefined;
      // The caller gets the value even if it cannot be stored for later.
      if (value !== undefined) {
        link.set(staleKey(agent, key), value, staleMs).catch(() => undefined);
      }
      return value;
    } catch (error) {
      signal.throwIfAborted();
      metrics.failed(agent, 'get');
      if (!(error instanceof NoAnswerError)) {
        logger.warn({ agent, error }, "an agent's cache cannot be read");
      }
      return (await link.get(staleKey(agent, key)).catch(() => undefined)) ?? emptyValue(key);
    }
  }

  /** Asks the agent to forward messages of a channel, under the same connection UUID. False when the request failed. */
  async subscribe(agent: string, connectionUuid: string, channel: string, signal: AbortSignal): Promise<boolean> {
    const { metrics, logger } = this.#options;
    metrics.request(agent, 'subscribe');
    try {
      const { subscribeResponse } = await this.#ask(agent, connectionUuid, { subscribe: { channel } }, signal);
      if (subscribeResponse?.error) {
        throw new Error(subscribeResponse.error);
      }
      return true;
    } catch (error) {
      signal.throwIfAborted();
      metrics.failed(agent, 'subscribe');
      if (!(error instanceof NoAnswerError)) {
        logger.warn({ agent, error }, 'an agent refuses a subscription');
      }
      return false;
    }
  }

  /** Confirms to the agent that the connection is open, so that it keeps the subscriptions. */
  async ping(agent: string, connectionUuid: string, signal: AbortSignal): Promise<void> {
    await this.#ask(agent, connectionUuid, { ping: {} }, signal);
  }

  async #ask(agent: string, connectionUuid: string, body: RedisRequest['body'], signal: AbortSignal) {
    const uuid = randomUUID();
    const payload = { uuid, connectionUuid, body };
    const ids = { resourceId: uuid, eventId: uuid };
    const request: WireEvent = messageEvent(
      targets.redis,
      eventTypes.redisRequest,
      payload,
      { source: principalSource },
      ids,
    );
    const answer = await this.#options.exchange.ask(agent, request, { timeoutMs: answerTimeoutMs, signal });
    return dataOf(answer, redisResponse).body;
  }
}

function staleKey(agent: string, key: string): string {
  return `argocd-agent|last|${agent}|${key}`;
}
