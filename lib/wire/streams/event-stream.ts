import { Event } from '../../../proto/gen/eventstreamapi/eventstream.ts';
import type { Logger } from '../../base/index.ts';
import { WireError } from '../errors.ts';
import { decodeEvent, encodeEvent } from '../events/codec.ts';
import { targets, type WireEvent } from '../events/event.ts';
import { checkEventFields } from '../events/event-fields.ts';
import { sentAt } from '../events/ids.ts';
import type { EventStream, PauseReason, SessionHandlers } from './stream.ts';

/** What messages come from, and can be made to wait. */
export interface MessageSource {
  pause(): void;
  resume(): void;
}

/** A call in either role, as an event stream needs it. */
export interface MessageChannel extends MessageSource {
  send(message: Uint8Array): boolean;
  onDrain(listener: () => void): void;
  readonly isOver: boolean;
}

/** Share of the message limit from which a sent message is worth a warning. */
const warnFromShare = 0.8;

/** Events that are sent once and forgotten carry no time of sending. */
const untimed: ReadonlySet<string> = new Set([targets.eventProcessed, targets.heartbeat]);

/**
 * The event stream on top of a call: turns events into messages and back, stamps the time of sending, and informs the
 * handlers of each event of the stream once.
 *
 * An invalid message is logged and skipped: its sender gets no acknowledgement; other messages are not affected.
 */
export class CallEventStream implements EventStream {
  readonly #channel: MessageChannel;
  readonly #maxMessageBytes: number;
  readonly #logger: Logger;
  readonly #about: object;
  readonly #end: (reason: string | undefined) => void;
  /** What messages come from: the call, and others beside it. */
  readonly #sources: Set<MessageSource>;
  readonly #pausedFor = new Set<PauseReason>();
  #handlers: SessionHandlers | undefined;
  #waiting: WireEvent[] = [];
  #ended = false;
  #endError: Error | undefined;

  /** @param end ends the call when this side wants to; `closed` follows when it has ended */
  constructor(
    channel: MessageChannel,
    options: {
      readonly maxMessageBytes: number;
      readonly logger: Logger;
      /** Log fields that identify the stream. */
      readonly about: object;
      end(reason: string | undefined): void;
    },
  ) {
    this.#channel = channel;
    this.#sources = new Set([channel]);
    this.#maxMessageBytes = options.maxMessageBytes;
    this.#logger = options.logger;
    this.#about = options.about;
    this.#end = options.end;
  }

  get ended(): boolean {
    return this.#ended || this.#channel.isOver;
  }

  send(event: WireEvent): boolean {
    if (this.ended) {
      return false;
    }
    const message = encodeEvent(event);
    if (!untimed.has(event.target) && event.extensions.sentat === undefined) {
      message.attributes.sentat = { ceString: sentAt(new Date()) };
    }
    const bytes = Event.encode({ event: message }).finish();
    const fields = {
      ...this.#about,
      target: event.target,
      type: event.type,
      subject: event.subject,
      bytes: bytes.length,
    };
    if (bytes.length > this.#maxMessageBytes) {
      throw new WireError(
        'too-large',
        `The ${event.target} event for ${event.subject ?? event.resourceId} has ${bytes.length} bytes; ` +
          `the limit is ${this.#maxMessageBytes}`,
        { hint: 'Make the resource smaller, or raise --grpc-max-message-size on both sides.' },
      );
    }
    if (bytes.length > warnFromShare * this.#maxMessageBytes) {
      this.#logger.warn(fields, 'An event is close to the limit of the message size');
    }
    return this.#channel.send(bytes);
  }

  onDrain(listener: () => void): void {
    this.#channel.onDrain(listener);
  }

  pause(reason: PauseReason): void {
    this.#pausedFor.add(reason);
    for (const source of this.#sources) {
      source.pause();
    }
  }

  resume(reason: PauseReason): void {
    if (!this.#pausedFor.delete(reason) || this.#pausedFor.size > 0) {
      return;
    }
    for (const source of this.#sources) {
      source.resume();
    }
  }

  /** Messages come from there too, from now on: whoever pauses the stream pauses it. Returns what to call when it has ended. */
  receiveFrom(source: MessageSource): () => void {
    this.#sources.add(source);
    if (this.#pausedFor.size > 0) {
      source.pause();
    }
    return () => void this.#sources.delete(source);
  }

  close(reason?: string): void {
    if (!this.ended) {
      this.#end(reason);
    }
  }

  /** Names the receiver of events; what arrived before goes to it first. */
  attach(handlers: SessionHandlers): void {
    this.#handlers = handlers;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const event of waiting) {
      this.#deliver(handlers, event);
    }
    if (this.#ended) {
      this.#tellClosed(handlers);
    }
  }

  /** Takes a message from the call. */
  received(bytes: Uint8Array): void {
    if (this.#ended) {
      return;
    }
    let event: WireEvent;
    try {
      event = decodeEvent(decodeMessage(bytes));
    } catch (error) {
      if (!(error instanceof WireError)) {
        throw error;
      }
      this.#logger.warn(
        { ...this.#about, code: error.code, bytes: bytes.length },
        `A message was left out: ${error.message}`,
      );
      this.#handlers?.unreadable?.();
      return;
    }
    if (this.#handlers === undefined) {
      this.#waiting.push(event);
    } else {
      this.#deliver(this.#handlers, event);
    }
  }

  /** The call has ended. */
  finished(error: Error | undefined): void {
    if (this.#ended) {
      return;
    }
    this.#ended = true;
    this.#endError = error;
    if (this.#handlers !== undefined) {
      this.#tellClosed(this.#handlers);
    }
  }

  #deliver(handlers: SessionHandlers, event: WireEvent): void {
    try {
      handlers.event(event);
    } catch (error) {
      this.#logger.error(
        { ...this.#about, error, target: event.target, type: event.type },
        'Receiving an event failed, the stream ends',
      );
      this.close('receiving an event failed');
    }
  }

  #tellClosed(handlers: SessionHandlers): void {
    try {
      handlers.closed(this.#endError);
    } catch (error) {
      this.#logger.error({ ...this.#about, error }, 'Cleaning up after a stream failed');
    }
  }
}

function decodeMessage(bytes: Uint8Array) {
  try {
    checkEventFields(bytes);
    return Event.decode(bytes).event;
  } catch (cause) {
    if (cause instanceof WireError) {
      throw cause;
    }
    throw new WireError('invalid-event', 'The message is no protobuf Event', { cause });
  }
}
