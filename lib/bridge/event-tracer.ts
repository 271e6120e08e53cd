import { BoundedMap } from '../base/index.ts';
import { type AttributeValue, parseTraceparent, type Span, type Tracer, traceparentOf } from '../tracing/index.ts';
import { eventTypes, isAcknowledgement, targets, type WireEvent } from '../wire/index.ts';
import { resourceTypeOf } from './event-timer.ts';

/** Most open spans of each direction; the oldest is ended to make room. */
const maxOpen = 10_000;

/** The names of the kinds in argocd-agent's spans. */
const kinds: Readonly<Record<string, string>> = {
  application: 'Application',
  appproject: 'AppProject',
  repository: 'Repository',
  gpgkey: 'GPGKey',
};
const operations: Readonly<Record<string, string>> = {
  [eventTypes.create]: 'create',
  [eventTypes.delete]: 'delete',
};

/** Requests for live data and their answers. The spans of the requests cover them, on both sides. */
const live: ReadonlySet<string> = new Set([targets.resource, targets.containerLog, targets.terminal, targets.redis]);

/**
 * Traces the events of one connection, except those of live access. An event that is sent is a span until the peer has acknowledged it; extension
 * `traceparent` names it, so that what the peer does about it becomes part of the trace. An event that is received is a
 * span until it is acknowledged, under the peer's. Names and attributes are argocd-agent's.
 */
export class EventTracer {
  readonly #tracer: Tracer;
  readonly #attributes: Readonly<Record<string, AttributeValue>>;
  readonly #sent = openSpans();
  readonly #received = openSpans();

  /** `attributes`: of every span of this connection. */
  constructor(tracer: Tracer, attributes: Readonly<Record<string, AttributeValue>>) {
    this.#tracer = tracer;
    this.#attributes = attributes;
  }

  /** The event as it is to be sent: with the context of its span. A repetition keeps the first one's. */
  outgoing(event: WireEvent): WireEvent {
    const key = keyOf(event);
    let span = this.#sent.get(key);
    if (span === undefined) {
      const kind = kinds[event.target];
      const name =
        kind === undefined ? `${event.target}.${event.type}` : `${kind}.${operations[event.type] ?? 'update'}`;
      const attributes = { ...this.#describe(event), ...(kind === undefined ? {} : { 'k8s.resource.kind': kind }) };
      span = this.#tracer.start(name, { kind: 'producer', attributes });
      this.#sent.set(key, span);
    }
    return { ...event, extensions: { ...event.extensions, traceparent: traceparentOf(span.context) } };
  }

  received(event: WireEvent): void {
    const key = keyOf(event);
    if (isAcknowledgement(event)) {
      this.#end(this.#sent, key);
      return;
    }
    if (live.has(event.target) || this.#received.has(key)) {
      return;
    }
    const { traceparent, tracestate } = event.extensions;
    const span = this.#tracer.start(`${resourceTypeOf(event)}.${event.type.slice(0, 100)}`, {
      kind: 'consumer',
      parent: parseTraceparent(traceparent, tracestate),
      attributes: this.#describe(event),
    });
    this.#received.set(key, span);
  }

  /** Does what an event that was received asks for, as part of its span. */
  within(event: WireEvent, work: () => void): void {
    const span = this.#received.get(keyOf(event));
    if (span === undefined) {
      work();
    } else {
      this.#tracer.within(span, work);
    }
  }

  /** The event could not be processed. */
  failed(event: WireEvent, error: string): void {
    this.#end(this.#received, keyOf(event), error);
  }

  /** Call it for every event that is sent: an acknowledgement ends the span of the event it answers. */
  sent(event: WireEvent): void {
    if (isAcknowledgement(event)) {
      this.#end(this.#received, keyOf(event));
    }
  }

  /** The connection is gone. */
  close(): void {
    for (const spans of [this.#sent, this.#received]) {
      for (const key of [...spans.keys()]) {
        this.#end(spans, key, 'the connection has ended');
      }
    }
  }

  #describe(event: WireEvent): Record<string, AttributeValue> {
    return {
      ...this.#attributes,
      'argocd.event.type': event.type.slice(0, 100),
      'argocd.event.target': resourceTypeOf(event),
      'argocd.event.id': event.eventId.slice(0, 300),
      'k8s.resource.uid': event.resourceId.slice(0, 300),
      ...(event.subject === undefined ? {} : { 'k8s.resource.name': event.subject.slice(0, 300) }),
    };
  }

  #end(spans: BoundedMap<string, Span>, key: string, error?: string): void {
    spans.get(key)?.end(error);
    spans.delete(key);
  }
}

function openSpans(): BoundedMap<string, Span> {
  return new BoundedMap(maxOpen, (_, span) => span.end('too many open spans'));
}

function keyOf({ resourceId, eventId }: WireEvent): string {
  return `${resourceId}\n${eventId}`;
}
