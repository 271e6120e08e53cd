import type { ServerResponse } from 'node:http';
import type { BodyReader, ExpectedBody } from '../agent-bodies.ts';

/** Most buffered bytes of a response that arrives faster than it is read. */
const mostQueuedBytes = 256 * 1024;

/** How much a body may have, and what happens when it has more. */
export interface BodyLimit {
  readonly bytes: number;
  exceeded(): void;
}

/** The body of a streamed response. Bytes that arrive before the response's head wait. */
export class ResponseBody implements BodyReader {
  readonly #response: ServerResponse;
  readonly #limit: BodyLimit | undefined;
  #bytes = 0;
  #expected: ExpectedBody | undefined;
  #early: (() => void)[] | undefined = [];

  /** @param limit undefined for a body without end, such as a watch */
  constructor(response: ServerResponse, limit: BodyLimit | undefined) {
    this.#response = response;
    this.#limit = limit;
    response.on('drain', () => this.#expected?.resume());
  }

  attach(expected: ExpectedBody): void {
    this.#expected = expected;
  }

  /** The head is out. */
  start(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const step of early) {
      step();
    }
    this.#expected?.resume();
  }

  data(bytes: Buffer): boolean {
    this.#bytes += bytes.length;
    if (this.#limit !== undefined && this.#bytes > this.#limit.bytes) {
      this.#expected?.cancel();
      this.ended('it is larger than the limit');
      this.#limit.exceeded();
      return true;
    }
    // Waiting for each piece to be sent would stop the agent each time.
    if (this.#early === undefined) {
      return this.#response.write(bytes) || this.#response.writableLength < mostQueuedBytes;
    }
    this.#early.push(() => this.#response.write(bytes));
    return false;
  }

  ended(error?: string): void {
    const end = () => {
      // A body that breaks off must not look whole.
      if (error === undefined) {
        this.#response.end();
      } else {
        breakOff(this.#response);
      }
    };
    if (this.#early === undefined) {
      end();
    } else {
      this.#early.push(end);
    }
  }

  lost(): void {
    this.ended('the connection to the agent ended');
    this.#expected?.cancel();
  }
}

/**
 * Ends a response, and its connection, so that the client sees that it is incomplete. Node ends the connection only for a
 * response whose turn it is: one that waits for the response before it would stay open for ever.
 */
export function breakOff(response: ServerResponse): void {
  response.destroy();
  response.req.socket.destroy();
}
