import type { Outbox } from '../../sync/index.ts';
import type { PeerConnection } from './messages.ts';

/**
 * The connection of a source to its peer. Sending starts when the peer is connected and has reported its copies, and again
 * on every later connection.
 */
export class SourceLink {
  readonly #outboxes: readonly Pick<Outbox<unknown>, 'disconnected'>[];
  readonly #start: (connection: PeerConnection) => void;
  #connection: PeerConnection | undefined;
  #isOpen = false;

  /** @param start connects the outboxes, each with its own messages */
  constructor(outboxes: readonly Pick<Outbox<unknown>, 'disconnected'>[], start: (connection: PeerConnection) => void) {
    this.#outboxes = outboxes;
    this.#start = start;
  }

  /** The connection while there is one, also before it is open. */
  get connection(): PeerConnection | undefined {
    return this.#connection;
  }

  /** The peer connected; events in flight on an earlier connection are sent again. */
  connected(connection: PeerConnection): void {
    this.disconnected();
    this.#connection = connection;
    this.#startIfOpen();
  }

  disconnected(): void {
    this.#connection = undefined;
    for (const outbox of this.#outboxes) {
      outbox.disconnected();
    }
  }

  /** The peer has reported its copies, or its time for that is over. */
  open(): void {
    this.#isOpen = true;
    this.#startIfOpen();
  }

  #startIfOpen(): void {
    if (this.#isOpen && this.#connection !== undefined) {
      this.#start(this.#connection);
    }
  }
}
