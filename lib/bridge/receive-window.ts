import type { WireEvent } from '../wire/index.ts';

/** How much a peer may send ahead of our acknowledgements. */
export interface ReceiveWindowLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
}

/**
 * The default for each peer: argocd-agent's queue has 1,000 events. A parsed event can take thirty times its length in memory.
 */
const defaultLimits: ReceiveWindowLimits = { maxEvents: 1_000, maxBytes: 4 * 1024 * 1024 };

/**
 * The limits that ARGOCD_AGENT_RECV_QUEUE_SIZE sets. ARGOCD_AGENT_SEND_QUEUE_SIZE has no effect: events are not queued for
 * sending, they are made from the cache when they can be sent.
 */
export function receiveWindowLimits(
  environment: Readonly<Record<string, string | undefined>>,
  warn: (message: string) => void,
): ReceiveWindowLimits {
  const name = 'ARGOCD_AGENT_RECV_QUEUE_SIZE';
  const text = environment[name];
  if (text === undefined) {
    return defaultLimits;
  }
  const maxEvents = Number(text);
  if (Number.isSafeInteger(maxEvents) && maxEvents > 0) {
    return { ...defaultLimits, maxEvents };
  }
  warn(`environment variable ${name} = ${JSON.stringify(text)} is ignored: it must be a whole number above 0`);
  return defaultLimits;
}

/** The events of a peer on one connection that we have not acknowledged yet. A repeated event counts once. */
export class ReceiveWindow {
  readonly #limits: ReceiveWindowLimits;
  readonly #unacknowledged = new Map<string, number>();
  #bytes = 0;

  constructor(limits: ReceiveWindowLimits) {
    this.#limits = limits;
  }

  /** Whether the peer should wait. One event may be larger than the limit. */
  get isFull(): boolean {
    return this.#unacknowledged.size >= this.#limits.maxEvents || this.#bytes >= this.#limits.maxBytes;
  }

  received(event: WireEvent): void {
    const key = keyOf(event);
    this.#forget(key);
    const bytes = sizeOf(event);
    this.#unacknowledged.set(key, bytes);
    this.#bytes += bytes;
  }

  acknowledged(event: Pick<WireEvent, 'resourceId' | 'eventId'>): void {
    this.#forget(keyOf(event));
  }

  #forget(key: string): void {
    this.#bytes -= this.#unacknowledged.get(key) ?? 0;
    this.#unacknowledged.delete(key);
  }
}

function keyOf({ resourceId, eventId }: Pick<WireEvent, 'resourceId' | 'eventId'>): string {
  return `${resourceId}\n${eventId}`;
}

/** What is kept until the acknowledgement: the data, and the attributes that it repeats. */
function sizeOf({ data, extensions }: WireEvent): number {
  let bytes = data.byteLength;
  for (const name in extensions) {
    bytes += name.length + (extensions[name]?.length ?? 0);
  }
  return bytes;
}
