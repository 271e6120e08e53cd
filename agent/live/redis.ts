import { type RedisRequest, type RedisResponse, redisRequest } from '../../lib/live/index.ts';
import type { Logger } from '../../lib/ops/index.ts';
import type { RedisLink } from '../../lib/redis/index.ts';
import { agentSource, dataOf, eventTypes, messageEvent, targets, type WireEvent } from '../../lib/wire/index.ts';
import type { RequestContext } from './requests.ts';

/** What {@link RedisRequests} works with. */
export interface RedisRequestsOptions {
  readonly link: Pick<RedisLink, 'get' | 'subscribe'>;
  /** Whether keys are the same on the hub (`--destination-based-mapping`). */
  readonly hasSameKeys: boolean;
  /** Counts requests and failures, by command. */
  readonly metrics: { request(command: string): void; failed(command: string): void };
  readonly logger: Logger;
}

/** Channels that one principal may follow at the same time: those of Applications that are looked at. */
const mostSubscriptions = 10_000;
/** A connection to the principal of which nothing was heard for so long has ended, as in the original. */
const forgottenAfterMs = 10 * 60_000;

interface Subscription {
  readonly end: () => void;
  heardAt: number;
}

/**
 * Reads the cache of this cluster's Argo CD for the principal: resource trees and managed resources of Applications, and news of
 * them.
 */
export class RedisRequests {
  readonly #options: RedisRequestsOptions;
  /** By connection and channel. */
  readonly #subscriptions = new Map<string, Subscription>();

  constructor(options: RedisRequestsOptions) {
    this.#options = options;
  }

  /** The connection to the principal has ended: it subscribes anew. */
  disconnected(): void {
    for (const { end } of this.#subscriptions.values()) end();
    this.#subscriptions.clear();
  }

  /** Answers one request. */
  async handle(event: WireEvent, context: RequestContext): Promise<void> {
    const request = dataOf(event, redisRequest);
    const { get, subscribe } = request.body;
    this.#forgetSilent(request.connectionUuid);
    if (get) answer(context, request, { get: await this.#get(get.key) });
    else if (subscribe) answer(context, request, { subscribeResponse: await this.#subscribe(request, context) });
    else answer(context, request, { pong: {} });
  }

  async #get(key: string): Promise<{ bytes: string | null; cacheHit: boolean; error: string }> {
    const { link, metrics } = this.#options;
    metrics.request('get');
    try {
      const value = await link.get(this.#localKey(key));
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
    if (this.#subscriptions.has(id)) return { error: '' };
    try {
      if (this.#subscriptions.size >= mostSubscriptions) throw new Error('too many channels are followed already');
      const end = link.subscribe(this.#localKey(channel), () => {
        answer(context, request, { pushFromSubscribe: { channelName: channel } });
      });
      this.#subscriptions.set(id, { end, heardAt: performance.now() });
      return { error: '' };
    } catch (error) {
      metrics.failed('subscribe');
      return { error: (error as Error).message };
    }
  }

  /** Every sign of a connection keeps its subscriptions; those of connections that fell silent end. */
  #forgetSilent(connection: string): void {
    const now = performance.now();
    for (const [id, subscription] of this.#subscriptions) {
      if (id.startsWith(`${connection}\n`)) subscription.heardAt = now;
      else if (now - subscription.heardAt > forgottenAfterMs) {
        subscription.end();
        this.#subscriptions.delete(id);
      }
    }
  }

  /**
   * The key under which this cluster's Argo CD keeps what the hub's Argo CD looks for: there the Application is in the namespace
   * of its agent, here in Argo CD's own.
   * @throws Error for a key that is none of these
   */
  #localKey(key: string): string {
    const fields = key.split('|');
    const [prefix = '', kind = '', instance = ''] = fields;
    const isKnown =
      prefix === 'app' && (kind === 'resources-tree' || kind === 'managed-resources') && fields.length >= 4;
    // Whatever else Argo CD keeps there, sessions above all, is nobody's business on the hub.
    if (!isKnown) throw new Error(`no key that may be read: ${key.slice(0, 100)}`);
    if (this.#options.hasSameKeys) return key;
    const split = instance.indexOf('_');
    if (split < 0) throw new Error(`the key names no namespace: ${key.slice(0, 100)}`);
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
