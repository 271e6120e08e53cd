import type { Logger } from '../../lib/base/index.ts';
import { type RedisRequest, type RedisResponse, redisRequest } from '../../lib/live/index.ts';
import { prefixedValue, type RedisLink, type Subscription } from '../../lib/redis/index.ts';
import { agentSource, dataOf, eventTypes, messageEvent, targets, type WireEvent } from '../../lib/wire/index.ts';
import type { RequestContext } from './requests.ts';

/** What {@link RedisRequests} works with. */
export interface RedisRequestsOptions {
  readonly link: Pick<RedisLink, 'get' | 'subscribe'>;
  /** Whether keys are the same on the hub (`--destination-based-mapping`). */
  readonly hasSameKeys: boolean;
  /** What the keys of Argo CD's cache begin with on this cluster; its channels do not. */
  readonly keyPrefix: string;
  /** Counts requests and failures, by command. */
  readonly metrics: { request(command: string): void; failed(command: string): void };
  readonly logger: Logger;
}

/** Channels that one principal may follow at the same time: those of Applications that are looked at. */
const mostSubscriptions = 10_000;
/** A client's connection without a sign for this time counts as ended, as in the original. */
const forgottenAfterMs = 10 * 60_000;

interface Followed {
  readonly subscription: Subscription;
  heardAt: number;
}

/**
 * Reads the cache of this cluster's Argo CD for the principal: resource trees and managed resources of Applications, and their
 * change notifications.
 */
export class RedisRequests {
  readonly #options: RedisRequestsOptions;
  /** By connection and channel. */
  readonly #subscriptions = new Map<string, Followed>();

  constructor(options: RedisRequestsOptions) {
    this.#options = options;
  }

  /** The connection to the principal has ended; the principal will subscribe again. */
  disconnected(): void {
    for (const { subscription } of this.#subscriptions.values()) {
      subscription.end();
    }
    this.#subscriptions.clear();
  }

  /** Answers one request. */
  async handle(event: WireEvent, context: RequestContext): Promise<void> {
    const request = dataOf(event, redisRequest);
    const { get, subscribe } = request.body;
    this.#forgetSilent(request.connectionUuid);
    if (get) {
      answer(context, request, { get: await this.#get(get.key) });
    } else if (subscribe) {
      answer(context, request, { subscribeResponse: await this.#subscribe(request, context) });
    } else {
      answer(context, request, { pong: {} });
    }
  }

  async #get(key: string): Promise<{ bytes: string | null; cacheHit: boolean; error: string }> {
    const { link, keyPrefix, metrics } = this.#options;
    metrics.request('get');
    try {
      const value = await prefixedValue(link, keyPrefix, this.#localKey(key));
      return { bytes: value?.toString('base64') ?? null, cacheHit: value !== undefined, error: '' };
    } catch (error) {
      metrics.failed('get');
      return { bytes: null, cacheHit: false, error: (error as Error).message };
    }
  }

  async #subscribe(request: RedisRequest, context: RequestContext): Promise<{ error: string }> {
    const { link, metrics } = this.#options;
    metrics.request('subscribe');
    const channel = request.body.subscribe?.channel ?? '';
    const id = `${request.connectionUuid}\n${channel}`;
    let followed = this.#subscriptions.get(id);
    try {
      if (followed === undefined) {
        if (this.#subscriptions.size >= mostSubscriptions) {
          throw new Error('too many channels are followed already');
        }
        const subscription = link.subscribe(this.#localKey(channel), () => {
          answer(context, request, { pushFromSubscribe: { channelName: channel } });
        });
        followed = { subscription, heardAt: performance.now() };
        this.#subscriptions.set(id, followed);
      }
      // Only then no message after the answer can be missed.
      await followed.subscription.followed;
      return { error: '' };
    } catch (error) {
      metrics.failed('subscribe');
      followed?.subscription.end();
      if (this.#subscriptions.get(id) === followed) {
        this.#subscriptions.delete(id);
      }
      return { error: (error as Error).message };
    }
  }

  /** Every request of a connection keeps its subscriptions. Subscriptions of connections without requests end after a time. */
  #forgetSilent(connection: string): void {
    const now = performance.now();
    for (const [id, followed] of this.#subscriptions) {
      if (id.startsWith(`${connection}\n`)) {
        followed.heardAt = now;
      } else if (now - followed.heardAt > forgottenAfterMs) {
        followed.subscription.end();
        this.#subscriptions.delete(id);
      }
    }
  }

  /**
   * This cluster's key for a key of the hub's Argo CD: on the hub the Application is in the namespace
   * of its agent, here in Argo CD's own.
   * @throws Error for a key that is none of these
   */
  #localKey(key: string): string {
    const fields = key.split('|');
    const [prefix = '', kind = '', instance = ''] = fields;
    const isKnown =
      prefix === 'app' && (kind === 'resources-tree' || kind === 'managed-resources') && fields.length >= 4;
    // The hub may not read other keys of Argo CD, above all sessions.
    if (!isKnown) {
      throw new Error(`this key may not be read: ${key.slice(0, 100)}`);
    }
    if (this.#options.hasSameKeys) {
      return key;
    }
    const split = instance.indexOf('_');
    if (split < 0) {
      throw new Error(`the key names no namespace: ${key.slice(0, 100)}`);
    }
    return [prefix, kind, instance.slice(split + 1), ...fields.slice(3)].join('|');
  }
}

function answer(context: RequestContext, { uuid, connectionUuid }: RedisRequest, body: Body): void {
  const payload = { uuid, connectionUuid, body };
  context.answer(
    messageEvent(targets.redis, eventTypes.redisResponse, payload, { source: agentSource }, { eventId: uuid }),
  );
}

type Body = {
  readonly [key in keyof RedisResponse['body']]?: object;
};
