import type { EventReader, EventWriter, Manners } from './manners.ts';

/**
 * One side of an event stream, whichever events, connections and manners it has: it handles events one after the other,
 * and acknowledges them through the same writer as everything else that it says.
 */
export class ScriptedPeer<E, W extends EventWriter<E> = EventWriter<E>> {
  readonly writer: W;
  /** Everything that arrived, acknowledgements and repetitions included, in order. */
  readonly received: E[] = [];
  /** Everything that was sent, repetitions included. */
  readonly sent: E[] = [];
  /** What was acknowledged without effect, and the reason. */
  readonly refused: { readonly event: E; readonly reason: string }[] = [];
  readonly #reader: EventReader<E>;
  readonly #manners: Manners<E>;
  readonly #remembers: boolean;
  readonly #story: string[] = [];

  /** @param options.remembers whether it keeps what came and went. Default: it does */
  constructor(options: {
    readonly writer: W;
    readonly reader: EventReader<E>;
    readonly manners: Manners<E>;
    readonly remembers?: boolean;
  }) {
    this.writer = options.writer;
    this.#reader = options.reader;
    this.#manners = options.manners;
    this.#remembers = options.remembers ?? true;
  }

  /** Says something, until it is acknowledged. */
  say(...events: readonly E[]): void {
    for (const event of events) {
      this.writer.add(event);
    }
  }

  /** Takes what came over the connection. */
  take(event: E): void {
    this.#note('<', event, this.received);
    if (this.#reader.targetOf(event) === 'eventProcessed') {
      if (!this.writer.remove(event)) {
        this.#manners.stray?.(event);
      }
      return;
    }
    if (this.#manners.hears?.(event) === false) {
      return;
    }
    const reason = this.#manners.handle?.(event);
    if (reason !== undefined && this.#remembers) {
      this.refused.push({ event, reason });
    }
    this.writer.add(this.#manners.acknowledge(event));
  }

  /** Sends over this connection from now on. */
  start(send: (event: E) => void): void {
    this.writer.start((event) => {
      this.#note('>', event, this.sent);
      send(event);
    });
  }

  /** The last that was sent and received, for whoever has to find out what went wrong. */
  get story(): string {
    return this.#story.slice(-40).join('\n');
  }

  /** The events that arrived, without acknowledgements. */
  events(target?: string): E[] {
    const { targetOf } = this.#reader;
    return this.received.filter((event) =>
      target === undefined ? targetOf(event) !== 'eventProcessed' : targetOf(event) === target,
    );
  }

  #note(direction: string, event: E, list: E[]): void {
    if (this.#remembers) {
      list.push(event);
      this.#story.push(`${new Date().toISOString()} ${direction} ${this.#reader.describe(event)}`);
    }
  }
}
