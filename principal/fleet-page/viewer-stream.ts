import type { ServerResponse } from 'node:http';
import { onAbort } from '../../lib/base/index.ts';

/** What a viewer is to be told next; undefined when there is nothing. */
export interface ViewerNews {
  readonly revision: number;
  readonly body: object;
}

/** Longest time for which a viewer may take nothing; then it is cut off, and comes back when it can. */
const patienceMs = 30_000;
const heartbeatMs = 20_000;

/**
 * A stream of Server-Sent Events to one viewer. It keeps nothing but one message: what is new is asked for when the viewer can
 * take it, so a slow one gets fewer and newer messages.
 */
export class ViewerStream {
  readonly #response: ServerResponse;
  readonly #next: () => ViewerNews | undefined;
  readonly #heartbeat: NodeJS.Timeout;
  #patience: NodeJS.Timeout | undefined;
  #hasEnded = false;
  #closed: (() => void) | undefined;

  /** @param next gives what is new since it was asked last */
  constructor(response: ServerResponse, next: () => ViewerNews | undefined, signal: AbortSignal) {
    this.#response = response;
    this.#next = next;
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
    response.write('retry: 2000\n\n');
    this.#heartbeat = setInterval(() => this.#patience === undefined && this.#write(': still here\n\n'), heartbeatMs);
    const forget = onAbort(signal, () => this.end());
    response.once('close', () => {
      this.#hasEnded = true;
      clearInterval(this.#heartbeat);
      clearTimeout(this.#patience);
      forget();
      this.#closed?.();
    });
    response.on('drain', () => {
      clearTimeout(this.#patience);
      this.#patience = undefined;
      this.offer();
    });
  }

  /** Calls back once when the stream has ended, by either side. */
  onClosed(listener: () => void): void {
    this.#closed = listener;
  }

  /** There may be something new. */
  offer(): void {
    while (!this.#hasEnded && this.#patience === undefined) {
      const news = this.#next();
      if (news === undefined) {
        return;
      }
      this.#write(`id: ${news.revision}\nevent: fleet\ndata: ${JSON.stringify(news.body)}\n\n`);
    }
  }

  /** Ends the stream; the viewer comes back by itself. `reload`: what it shows is to be loaded anew. */
  end(reload = false): void {
    if (this.#hasEnded) {
      return;
    }
    this.#hasEnded = true;
    this.#response.end(reload ? 'event: reload\ndata: {}\n\n' : undefined);
    // One that takes nothing does not keep the connection.
    this.#patience ??= setTimeout(() => this.#response.destroy(), patienceMs);
    this.#patience.unref();
  }

  #write(text: string): void {
    if (!this.#response.write(text)) {
      this.#patience ??= setTimeout(() => this.#response.destroy(), patienceMs);
    }
  }
}
