import { isStranger } from './client-of.ts';
import type { ServerCall } from './server-call.ts';

/** As many as one connection may have, on all connections of a client together. */
const mostWaiting = 1_000;

/**
 * Limits the calls of each client that wait for their turn to begin: each takes memory for its headers, and the client decides how many
 * connections it opens. Strangers are not limited here: their connections are, and the calls on each.
 */
export class WaitingCalls {
  readonly #byClient = new Map<string, number>();

  /** A call waits until it is over. @returns what to call when it begins; undefined when it may not wait */
  add(client: string, call: ServerCall): (() => void) | undefined {
    if (isStranger(client)) {
      return () => undefined;
    }
    const before = this.#byClient.get(client) ?? 0;
    if (before >= mostWaiting) {
      return undefined;
    }
    this.#byClient.set(client, before + 1);
    let isWaiting = true;
    const waitsNoMore = () => {
      if (isWaiting) {
        isWaiting = false;
        this.#remove(client);
      }
    };
    call.onOver(waitsNoMore);
    return waitsNoMore;
  }

  #remove(client: string): void {
    const left = (this.#byClient.get(client) ?? 0) - 1;
    if (left > 0) {
      this.#byClient.set(client, left);
    } else {
      this.#byClient.delete(client);
    }
  }
}
