import type { Server, Socket } from 'node:net';
import { networkOf } from '../base/index.ts';

/** Connections that begin in one turn of the event loop. */
const perTurn = 8;
/** The most time that a turn takes, in ms: none begins after it. Of usual handshakes 8 take less. */
const turnMs = 20;

/**
 * New connections begin a few in each turn of the event loop, each network in its turn. A handshake follows at once, from what has
 * been read already: those of a thousand that connect at the same moment would stop everybody else for their time. Handshakes that
 * are made to take long have half of the time at most.
 */
export class ConnectionTurns {
  /** By network, in the order of their turns. */
  readonly #waiting = new Map<string, Set<() => void>>();
  #begun = 0;
  #tookMs = 0;

  /**
   * Calls `begin`, at once or in a later turn.
   * @param address the client's
   * @returns takes the connection out of the queue
   */
  enter(address: string, begin: () => void): () => void {
    const network = networkOf(address);
    const own = this.#waiting.get(network) ?? new Set();
    this.#waiting.set(network, own.add(begin));
    this.#continue();
    return () => this.#remove(network, begin);
  }

  #continue(): void {
    for (const [network, [first]] of this.#waiting) {
      if (this.#begun >= perTurn || this.#tookMs >= turnMs || first === undefined) {
        return;
      }
      this.#begun++;
      if (this.#begun === 1) {
        setImmediate(() => this.#nextTurn());
      }
      const others = this.#remove(network, first);
      if (others !== undefined) {
        // Behind the other networks. This loop comes to it again.
        this.#waiting.delete(network);
        this.#waiting.set(network, others);
      }
      const since = performance.now();
      first();
      this.#tookMs += performance.now() - since;
    }
  }

  #nextTurn(): void {
    if (this.#tookMs >= turnMs) {
      setTimeout(() => this.#nextTurn(), this.#tookMs);
      this.#tookMs = 0;
      this.#begun = perTurn;
      return;
    }
    this.#tookMs = 0;
    this.#begun = 0;
    this.#continue();
  }

  /** @returns those of the network that still wait; undefined: there is none */
  #remove(network: string, begin: () => void): Set<() => void> | undefined {
    const own = this.#waiting.get(network);
    own?.delete(begin);
    if (own?.size === 0) {
      this.#waiting.delete(network);
      return undefined;
    }
    return own;
  }
}

/**
 * Lets what a server does with new sockets wait for their turns: all listeners that the event has so far. What comes meanwhile waits in
 * the socket.
 */
export function beginInTurns(server: Server, event: 'connection' | 'secureConnection'): void {
  const turns = new ConnectionTurns();
  const listeners = server.listeners(event) as ((socket: Socket) => void)[];
  server.removeAllListeners(event);
  server.on(event, (socket: Socket) => {
    const leave = turns.enter(socket.remoteAddress ?? '', () => {
      for (const listener of listeners) {
        listener.call(server, socket);
      }
    });
    socket.once('close', leave);
  });
}
