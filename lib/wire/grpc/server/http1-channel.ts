import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ChannelListener, ServerChannel } from './server-channel.ts';

/** How long a client may go on sending after its call has ended. */
const lingerMs = 1000;

/**
 * A call over a request of HTTP/1.1: the bodies are the frames, the status is in the trailers of a chunked response.
 */
export class Http1ServerChannel implements ServerChannel {
  readonly path: string;
  readonly maxMessageBytes = Number.POSITIVE_INFINITY;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.path = (request.url ?? '').replace(/\?.*/, '');
    this.#request = request;
    this.#response = response;
    request.on('error', () => undefined);
    response.on('error', () => undefined);
  }

  get isGone(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  header(name: string): string | undefined {
    return this.#request.headersDistinct[name]?.[0];
  }

  onGone(listener: () => void): void {
    this.#request.on('aborted', listener);
    this.#response.on('close', listener);
  }

  read(listener: ChannelListener): void {
    this.#response.on('drain', () => listener.drain());
    this.#request.on('data', (chunk: Buffer) => listener.data(chunk));
    this.#request.on('end', () => listener.end());
  }

  pause(): void {
    this.#request.pause();
  }

  resume(): void {
    this.#request.resume();
  }

  respond(headers: Readonly<Record<string, string>>): void {
    this.#response.writeHead(200, {
      ...headers,
      trailer: 'Grpc-Status, Grpc-Message',
      // A request without an end cannot be followed by another one.
      ...(this.#request.complete ? undefined : { connection: 'close' }),
    });
    this.#response.flushHeaders();
  }

  write(frame: Buffer): boolean {
    return this.#response.write(frame);
  }

  finish(trailers: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> | undefined): void {
    if (headers !== undefined) {
      this.respond(headers);
    }
    this.#response.addTrailers(trailers);
    this.#response.end();
    const { socket } = this.#request;
    this.#request.resume();
    if (this.#request.complete) {
      return;
    }
    const linger = setTimeout(() => socket.destroy(), lingerMs).unref();
    this.#request.once('close', () => clearTimeout(linger));
  }
}
