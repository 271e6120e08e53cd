import { aborted, after } from '../../lib/base/index.ts';
import { acknowledgement, type GrpcError, isAcknowledgement, type WireEvent } from '../../lib/wire/index.ts';

/** How a {@link Conversation} speaks, and how long it waits. */
export interface ConversationOptions {
  /** Puts an event on the stream. */
  readonly send: (event: WireEvent) => void;
  /** Who acknowledges: the `source` of this side. */
  readonly source: string;
  /** How long to wait for one thing, in milliseconds. */
  readonly timeoutMs: number;
}

/** One side of an event stream: what came is kept, and acknowledged unless it is to keep silent about it. */
export class Conversation {
  /** Everything that came, acknowledgements too, in order. */
  readonly received: WireEvent[] = [];
  readonly #options: ConversationOptions;
  readonly #ended = Promise.withResolvers<GrpcError | Error | undefined>();
  #wake = Promise.withResolvers<void>();
  #isOver = false;
  #isSilentAbout: (event: WireEvent) => boolean = () => false;

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  /**
   * From now on such events are not acknowledged. A case names only its own: the peer may wait with what the case asks for
   * until something else is acknowledged, as ours does with everything until its first request of a resync is.
   */
  keepSilent(about: (event: WireEvent) => boolean): void {
    this.#isSilentAbout = about;
  }

  send(event: WireEvent): void {
    this.#options.send(event);
  }

  /** Waits for an event. @throws Error that says what was awaited, when it does not come or the stream ends */
  async expect(fits: (event: WireEvent) => boolean, what: string, from = 0): Promise<WireEvent> {
    const event = await this.next(fits, from, this.#options.timeoutMs);
    if (event !== undefined) {
      return event;
    }
    if (this.#isOver) {
      const error = await this.#ended.promise;
      throw new Error(`${what}: the stream ended (${error?.message ?? 'OK'})`);
    }
    throw new Error(`${what}: nothing came within ${this.#options.timeoutMs} ms`);
  }

  /** The first event from this place on; undefined when none comes within so many milliseconds, or the stream ends. */
  async next(fits: (event: WireEvent) => boolean, from: number, ms: number): Promise<WireEvent | undefined> {
    const late = new AbortController();
    const cancel = after(ms, () => late.abort());
    const over = aborted(late.signal);
    try {
      for (;;) {
        const event = this.received.slice(from).find(fits);
        if (event !== undefined || this.#isOver || late.signal.aborted) {
          return event;
        }
        await Promise.race([this.#wake.promise, over]);
      }
    } finally {
      cancel();
      late.abort();
    }
  }

  /** Sends an event and waits for its acknowledgement. */
  async exchange(event: WireEvent, what: string): Promise<WireEvent> {
    const from = this.received.length;
    this.send(event);
    return this.expect(
      (one) => isAcknowledgement(one) && one.eventId === event.eventId,
      `${what} is acknowledged`,
      from,
    );
  }

  /** How the stream ends; undefined: with OK. @throws Error when it does not in time */
  ending(): Promise<GrpcError | Error | undefined> {
    return within(this.#ended.promise, this.#options, 'the stream does not end');
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** An event has come. */
  take(event: WireEvent): void {
    this.received.push(event);
    if (!isAcknowledgement(event) && !this.#isSilentAbout(event)) {
      this.send(acknowledgement(event, this.#options.source));
    }
    this.#news();
  }

  /** The stream has ended. */
  end(error: GrpcError | Error | undefined): void {
    this.#isOver = true;
    this.#ended.resolve(error);
    this.#news();
  }

  #news(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }
}

/** Waits for so long. @throws Error with the problem when that is over */
export async function within<T>(promise: Promise<T>, options: { timeoutMs: number }, problem: string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const cancel = after(options.timeoutMs, () => reject(new Error(`${problem} within ${options.timeoutMs} ms`)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    cancel();
  }
}
