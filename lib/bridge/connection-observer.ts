import type { AttributeValue, Tracer } from '../tracing/index.ts';
import type { WireEvent } from '../wire/index.ts';
import { type EventObserver, EventTimer } from './event-timer.ts';
import { EventTracer } from './event-tracer.ts';

/** Counts the events of a connection. */
export interface EventCounter {
  eventReceived(): void;
  eventSent(): void;
}

/** Counts, times and, with a tracer, traces the events of one connection. */
export class ConnectionObserver {
  readonly #counter: EventCounter;
  readonly #timer: EventTimer;
  readonly #traces: EventTracer | undefined;

  constructor(options: {
    counter: EventCounter;
    times: EventObserver;
    tracer: Tracer | undefined;
    /** Of every span. */
    attributes: Readonly<Record<string, AttributeValue>>;
  }) {
    this.#counter = options.counter;
    this.#timer = new EventTimer(options.times);
    this.#traces = options.tracer && new EventTracer(options.tracer, options.attributes);
  }

  /** An event was received. */
  received(event: WireEvent): void {
    this.#counter.eventReceived();
    this.#timer.received(event);
    this.#traces?.received(event);
  }

  /** Does what an event that was received asks for. */
  within(event: WireEvent, work: () => void): void {
    if (this.#traces === undefined) {
      work();
    } else {
      this.#traces.within(event, work);
    }
  }

  /** The event as it is to be sent: with the context of its span when events are traced. */
  outgoing(event: WireEvent): WireEvent {
    return this.#traces?.outgoing(event) ?? event;
  }

  /** An event is being sent. */
  sent(event: WireEvent): void {
    this.#counter.eventSent();
    this.#timer.sent(event);
    this.#traces?.sent(event);
  }

  /** An event that was received cannot be processed. */
  failed(event: WireEvent): void {
    this.#timer.failed(event);
    this.#traces?.failed(event, 'the event cannot be used');
  }

  /** The connection has ended. */
  close(): void {
    this.#traces?.close();
  }
}
