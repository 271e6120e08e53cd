import type { WireEvent } from '../wire/index.ts';

/** How much a peer may send before it must wait for what it sent to be worked off. */
export interface IntakeLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
}

/**
 * What a peer may send ahead unless told otherwise. What is read takes up to thirty times its length in memory, for each
 * peer that means no good.
 */
const defaultIntake: IntakeLimits = { maxEvents: 5_000, maxBytes: 16 * 1024 * 1024 };

/**
 * The limits that ARGOCD_AGENT_RECV_QUEUE_SIZE asks for. ARGOCD_AGENT_SEND_QUEUE_SIZE has nothing to limit here: what is to
 * be sent is not queued, but read when it can be sent.
 */
export function intakeLimits(
  environment: Readonly<Record<string, string | undefined>>,
  warn: (message: string) => void,
): IntakeLimits {
  const name = 'ARGOCD_AGENT_RECV_QUEUE_SIZE';
  const text = environment[name];
  if (text === undefined) {
    return defaultIntake;
  }
  const maxEvents = Number(text);
  if (Number.isSafeInteger(maxEvents) && maxEvents > 0) {
    return { ...defaultIntake, maxEvents };
  }
  warn(`environment variable ${name} = ${JSON.stringify(text)} is ignored: it must be a whole number above 0`);
  return defaultIntake;
}

/** What a peer has sent on a connection and we have not acknowledged yet. A copy of an event counts once. */
export class Intake {
  readonly #limits: IntakeLimits;
  readonly #unanswered = new Map<string, number>();
  #bytes = 0;

  constructor(limits: IntakeLimits) {
    this.#limits = limits;
  }

  /** Whether the peer should wait. One event may be larger than the limit. */
  get isFull(): boolean {
    return this.#unanswered.size >= this.#limits.maxEvents || this.#bytes >= this.#limits.maxBytes;
  }

  received(event: WireEvent): void {
    const key = keyOf(event);
    this.#forget(key);
    this.#unanswered.set(key, event.data.byteLength);
    this.#bytes += event.data.byteLength;
  }

  acknowledged(event: Pick<WireEvent, 'resourceId' | 'eventId'>): void {
    this.#forget(keyOf(event));
  }

  #forget(key: string): void {
    this.#bytes -= this.#unanswered.get(key) ?? 0;
    this.#unanswered.delete(key);
  }
}

function keyOf({ resourceId, eventId }: Pick<WireEvent, 'resourceId' | 'eventId'>): string {
  return `${resourceId}\n${eventId}`;
}
