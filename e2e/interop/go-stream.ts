import { GoEventWriter, type Pace } from './event-writer.ts';
import { acknowledgementOf, extensionOf, type GoEvent, readEvent, targetOf, typeOf, writeEvent } from './go-event.ts';

/** Both halves of a call, as a stream of events needs them. */
interface Call {
  send(bytes: Uint8Array): void;
}

/**
 * The event stream of an original, on either side: events are handled one after the other and acknowledged through the same
 * writer as everything else, except those whose handling fails in a way that a repetition may mend.
 */
export class GoStream {
  readonly writer: GoEventWriter;
  /** Everything that arrived, acknowledgements and repetitions included, in order. */
  readonly received: GoEvent[] = [];
  /** Everything that was sent, repetitions included. */
  readonly sent: GoEvent[] = [];
  /** What was acknowledged without effect, and the original's reason. */
  readonly refused: { readonly event: GoEvent; readonly reason: string }[] = [];
  readonly #source: string;
  readonly #handle: (event: GoEvent) => string | undefined;
  readonly #story: string[] = [];

  /** @param options.handle takes an event; the reason if it is refused */
  constructor(options: {
    readonly source: string;
    readonly pace: Pace;
    readonly random: () => number;
    readonly handle: (event: GoEvent) => string | undefined;
  }) {
    this.#source = options.source;
    this.#handle = options.handle;
    this.writer = new GoEventWriter(options);
  }

  /** Takes what came over the wire. */
  take(bytes: Buffer): void {
    const event = readEvent(bytes);
    this.received.push(event);
    this.#tell('<', event);
    if (targetOf(event) === 'eventProcessed') {
      this.writer.remove(event);
      return;
    }
    const reason = this.#handle(event);
    if (reason !== undefined) {
      this.refused.push({ event, reason });
    }
    this.writer.add(acknowledgementOf(event, this.#source));
  }

  /** Sends over this call from now on. */
  start(call: Call): void {
    this.writer.start((event) => {
      this.sent.push(event);
      this.#tell('>', event);
      call.send(writeEvent(event));
    });
  }

  /** The last that was sent and received, for whoever has to find out what went wrong. */
  get story(): string {
    return this.#story.slice(-40).join('\n');
  }

  /** The events that arrived, without acknowledgements. */
  events(target?: string): GoEvent[] {
    return this.received.filter((event) =>
      target === undefined ? targetOf(event) !== 'eventProcessed' : targetOf(event) === target,
    );
  }

  #tell(direction: string, event: GoEvent): void {
    const id = extensionOf(event, 'eventid');
    this.#story.push(`${new Date().toISOString()} ${direction} ${targetOf(event)} ${typeOf(event)} ${id}`);
  }
}
