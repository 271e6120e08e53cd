import type { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import { remoteAddressOf } from '../base/index.ts';

/** Knows which connections of a server of HTTP have no request under way, to be made when the server has its listeners. */
export class IdleConnections {
  readonly #open = new Map<string, Socket>();
  /** Those that have been idle for longest come first. */
  readonly #idle = new Set<string>();

  constructor(server: Server) {
    const busy = (request: IncomingMessage, ending: EventEmitter) => {
      const key = remoteAddressOf(request.socket);
      this.#idle.delete(key);
      ending.once('close', () => {
        if (this.#open.has(key)) {
          this.#idle.add(key);
        }
      });
    };
    // A listener of an event that had none would change what Node does.
    for (const event of ['request', 'checkContinue', 'checkExpectation', 'upgrade']) {
      if (server.listenerCount(event) > 0) {
        server.prependListener(event, (request: IncomingMessage, ending: ServerResponse | Socket) =>
          busy(request, ending),
        );
      }
    }
  }

  /** A connection has been opened. */
  add(socket: Socket): void {
    const key = remoteAddressOf(socket);
    this.#open.set(key, socket);
    this.#idle.add(key);
    socket.once('close', () => {
      // The address and port may be in use again.
      if (this.#open.get(key) === socket) {
        this.#open.delete(key);
        this.#idle.delete(key);
      }
    });
  }

  /** The connection that has been idle for longest. */
  get first(): Socket | undefined {
    const [key = ''] = this.#idle;
    return this.#open.get(key);
  }
}
