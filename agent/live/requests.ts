import { BoundedSet, type Logger } from '../../lib/base/index.ts';
import { parseTraceparent, type Tracer } from '../../lib/tracing/index.ts';
import type { LiveCalls, WireEvent } from '../../lib/wire/index.ts';

/** The means to answer a request for live data, and the signal that ends it. */
export interface RequestContext {
  /** Sends an event to the principal; does nothing once the connection has ended. */
  answer(event: WireEvent): void;
  readonly live: LiveCalls;
  /** Aborts when the connection ends or the request is cancelled. */
  readonly signal: AbortSignal;
  /** Cancels the request: aborts the signal. */
  abandon(): void;
}

/** Executes one kind of request and answers it. Its errors are logged. */
export type RequestHandler = (event: WireEvent, context: RequestContext) => Promise<void>;

/** Most requests at the same time; `overloaded` refuses others. */
const mostAtOnce = 1_000;
/** Remembered requests: a principal of the original repeats unacknowledged ones. */
const mostRemembered = 10_000;

/** One connection to the principal, as live requests need it. */
export interface LiveConnection {
  readonly live: LiveCalls;
  send(event: WireEvent): void;
}

/**
 * Requests of the principal for live data. Each runs by itself: a slow one delays neither others nor
 * synchronisation. A repeated request is executed once.
 */
export class LiveRequests {
  readonly #handlers: Readonly<Record<string, RequestHandler>>;
  readonly #overloaded: (event: WireEvent, context: RequestContext) => void;
  readonly #ended: () => void;
  readonly #tracer: Tracer | undefined;
  readonly #logger: Logger;
  readonly #seen = new BoundedSet<string>(mostRemembered);
  readonly #running = new Map<string, AbortController>();
  #connection: LiveConnection | undefined;

  /** @param handlers by target. `overloaded` answers requests over the limit */
  constructor(options: {
    handlers: Readonly<Record<string, RequestHandler>>;
    overloaded: (event: WireEvent, context: RequestContext) => void;
    /** Called when the connection has ended. */
    ended?: () => void;
    /** Traces requests, as parts of the principal's. Default: none are traced. */
    tracer?: Tracer | undefined;
    logger: Logger;
  }) {
    this.#handlers = options.handlers;
    this.#overloaded = options.overloaded;
    this.#ended = options.ended ?? (() => undefined);
    this.#tracer = options.tracer;
    this.#logger = options.logger;
  }

  /** The number of running requests. */
  get running(): number {
    return this.#running.size;
  }

  connected(connection: LiveConnection): void {
    this.#connection = connection;
  }

  /** The connection has ended, and with it the requests on it. */
  disconnected(): void {
    this.#connection = undefined;
    this.#ended();
    for (const controller of this.#running.values()) {
      controller.abort(new Error('the connection to the principal ended'));
    }
  }

  /** Takes an event; false when it is not a request for live data. The event is to be acknowledged at once. */
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
    void this.#traced(handler, event, context);
    return true;
  }

  /** Cancels a request. */
  cancel(eventId: string): void {
    this.#running.get(eventId)?.abort(new Error('nobody waits for the answer any more'));
  }

  async #traced(handler: RequestHandler, event: WireEvent, context: RequestContext): Promise<void> {
    const tracer = this.#tracer;
    if (tracer === undefined) {
      await this.#run(handler, event, context);
      return;
    }
    const { target, eventId, extensions } = event;
    const type = event.type.slice(0, 100);
    const span = tracer.start(`${target}.${type}`, {
      kind: 'consumer',
      parent: parseTraceparent(extensions.traceparent, extensions.tracestate),
      attributes: {
        'argocd.event.target': target,
        'argocd.event.type': type,
        'argocd.event.id': eventId.slice(0, 300),
      },
    });
    span.end(await tracer.within(span, () => this.#run(handler, event, context)));
  }

  /** @returns why the request failed */
  async #run(handler: RequestHandler, event: WireEvent, context: RequestContext): Promise<string | undefined> {
    try {
      await handler(event, context);
      return undefined;
    } catch (error) {
      if (context.signal.aborted) {
        return undefined;
      }
      const { target, type, eventId } = event;
      this.#logger.warn({ event_target: target, event_type: type, eventId, error }, 'a request for live data failed');
      return 'the request failed';
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
