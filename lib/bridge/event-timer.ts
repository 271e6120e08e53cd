import { BoundedMap } from '../base/index.ts';
import { isAcknowledgement, targets, type WireEvent } from '../wire/index.ts';

/** Events in progress that are remembered; older ones are not measured. */
const remembered = 10_000;
/** Clocks differ: a longer latency than this is no measurement. */
const longestMs = 24 * 3_600_000;

const known: ReadonlySet<string> = new Set(Object.values(targets));

/** What an event is about, as a metric's label: the targets of the protocol, everything else is `unknown`. */
export function resourceTypeOf({ target }: Pick<WireEvent, 'target'>): string {
  return known.has(target) ? target : 'unknown';
}

/** How the processing of an event ended. */
export type EventOutcome = 'success' | 'failure';

/** Receives the measurements; times in seconds. */
export interface EventObserver {
  /** Time from sending to receiving an event, by the clocks of both sides. */
  arrived(resourceType: string, seconds: number): void;
  /** The event was acknowledged. */
  done(resourceType: string, seconds: number, outcome: EventOutcome): void;
}

interface Work {
  readonly type: string;
  /** By `performance.now()`. */
  readonly since: number;
  outcome: EventOutcome;
}

/**
 * Measures the events of one connection: how long each was on its way (extension `sentat`), and how
 * long it took until we acknowledged it.
 */
export class EventTimer {
  readonly #observer: EventObserver;
  readonly #working = new BoundedMap<string, Work>(remembered);

  constructor(observer: EventObserver) {
    this.#observer = observer;
  }

  received(event: WireEvent): void {
    if (isAcknowledgement(event)) {
      return;
    }
    const type = resourceTypeOf(event);
    const wayMs = Date.now() - Date.parse(event.extensions.sentat ?? '');
    if (wayMs > -longestMs && wayMs < longestMs) {
      this.#observer.arrived(type, Math.max(0, wayMs) / 1_000);
    }
    const key = keyOf(event);
    if (this.#working.has(key)) {
      return;
    }
    this.#working.set(key, { type, since: performance.now(), outcome: 'success' });
  }

  /** The event could not be processed. It is acknowledged all the same, so that it is not repeated. */
  failed(event: WireEvent): void {
    const work = this.#working.get(keyOf(event));
    if (work !== undefined) {
      work.outcome = 'failure';
    }
  }

  sent(event: WireEvent): void {
    if (!isAcknowledgement(event)) {
      return;
    }
    const key = keyOf(event);
    const work = this.#working.get(key);
    if (work === undefined) {
      return;
    }
    this.#working.delete(key);
    this.#observer.done(work.type, (performance.now() - work.since) / 1_000, work.outcome);
  }
}

function keyOf({ resourceId, eventId }: WireEvent): string {
  return `${resourceId}\n${eventId}`;
}
