import { BoundedSet, type Logger } from '../../lib/base/index.ts';
import type { LiveCalls, WireEvent } from '../../lib/wire/index.ts';

/** What a request for live data is answered with, and how long its asker waits. */
export interface RequestContext {
  /** Sends an event to who asked; nothing happens once the connection has ended. */
  answer(event: WireEvent): void;
  readonly live: LiveCalls;
  /** Aborts when the connection ends, or nobody wants the answer any more. */
  readonly signal: AbortSignal;
  /** Nobody wants the answer any more: aborts the signal. */
  abandon(): void;
}

/** Carries out one kind of request. What it throws is logged; an answer is its own business. */
export type RequestHandler = (event: WireEvent, context: RequestContext) => Promise<void>;

/** Requests that are carried out at the same time; who asks for more is refused by `overloaded`. */
const mostAtOnce = 1_000;
/** Requests that are remembered: a principal of the original repeats what it finds unacknowledged. */
const mostRemembered = 10_000;

/** One connection to the principal, as live requests need it. */
export interface LiveConnection {
  readonly live: LiveCalls;
  send(event: WireEvent): void;
}

/**
 * Requests of the principal for live data. Each runs by itself: a slow one holds up neither others nor the resources that are kept
 * in step. A request that comes twice is carried out once.
 */
export class LiveRequests {
  readonly #handlers: Readonly<Record<string, RequestHandler>>;
  readonly #overloaded: (event: WireEvent, context: RequestContext) => void;
  readonly #ended: () => void;
  readonly #logger: Logger;
  readonly #seen = new BoundedSet<string>(mostRemembered);
  readonly #running = new Map<string, AbortController>();
  #connection: LiveConnection | undefined;

  /** @param handlers by target. `overloaded` answers what cannot be carried out now */
  constructor(options: {
    handlers: Readonly<Record<string, RequestHandler>>;
    overloaded: (event: WireEvent, context: RequestContext) => void;
    /** Hears that the connection has ended. */
    ended?: () => void;
    logger: Logger;
  }) {
    this.#handlers = options.handlers;
    this.#overloaded = options.overloaded;
    this.#ended = options.ended ?? (() => undefined);
    this.#logger = options.logger;
  }

  /** Requests that are being carried out. */
  get running(): number {
    return this.#running.size;
  }

  connected(connection: LiveConnection): void {
    this.#connection = connection;
  }

  /** The connection has ended, and with it everything that was asked for on it. */
  disconnected(): void {
    this.#connection = undefined;
    this.#ended();
    for (const controller of this.#running.values()) {
      controller.abort(new Error('the connection to the principal ended'));
    }
  }

  /** Takes an event; false when it is no request for live data. The event is to be acknowledged at once. */
  take(event: WireEvent): boolean {
    const handler = this.#handlers[event.target];
    const connection = this.#connection;
    if (handler === undefined || connection === undefined) {
      return false;
    }
    if (this.#isRepeated(event.eventId)) {
      return true;
    }
    const controller = new AbortController();
    const context: RequestContext = {
      live: connection.live,
      signal: controller.signal,
      abandon: () => controller.abort(new Error('nobody waits for the answer any more')),
      answer: (answer) => {
        if (this.#connection === connection) {
          connection.send(answer);
        }
      },
    };
    if (this.#running.size >= mostAtOnce) {
      this.#overloaded(event, context);
      return true;
    }
    this.#running.set(event.eventId, controller);
    void this.#run(handler, event, context);
    return true;
  }

  /** Nobody wants the answer to this request any more. */
  cancel(eventId: string): void {
    this.#running.get(eventId)?.abort(new Error('nobody waits for the answer any more'));
  }

  async #run(handler: RequestHandler, event: WireEvent, context: RequestContext): Promise<void> {
    try {
      await handler(event, context);
    } catch (error) {
      if (context.signal.aborted) {
        return;
      }
      const { target, type, eventId } = event;
      this.#logger.warn({ event_target: target, event_type: type, eventId, error }, 'a request for live data failed');
    } finally {
      this.#running.delete(event.eventId);
    }
  }

  #isRepeated(eventId: string): boolean {
    if (this.#seen.has(eventId)) {
      return true;
    }
    this.#seen.add(eventId);
    return false;
  }
}
