import type { AgentMode, Message, PeerConnection } from '../../lib/argocd/index.ts';
import type { EngineListener, StreamAdapter } from '../../lib/bridge/index.ts';
import type { EventStream, Session, SessionHandlers, WireEvent } from '../../lib/wire/index.ts';
import type { Machine, PrincipalProgram } from '../index.ts';

interface Arrived {
  readonly is: 'event' | 'ack';
  readonly message: Message;
}

/**
 * A stream of an agent at a simulated principal: for the network what a principal is, for the principal's {@link Session}s a stream.
 * Messages that arrive while reading is paused wait.
 */
export class SimulatedSession implements PrincipalProgram, EventStream {
  readonly #machine: Machine;
  readonly #subscribe: (session: Session) => SessionHandlers;
  readonly #hangUp: () => void;
  #connection: PeerConnection | undefined;
  #handlers: SessionHandlers | undefined;
  #listener: EngineListener | undefined;
  #waiting: Arrived[] | undefined;
  #isClosed = false;
  #hasEnded = false;

  /** @param hangUp ends the connection */
  constructor(machine: Machine, subscribe: (session: Session) => SessionHandlers, hangUp: () => void) {
    this.#machine = machine;
    this.#subscribe = subscribe;
    this.#hangUp = hangUp;
  }

  get ended(): boolean {
    return this.#isClosed;
  }

  /** In the place of `adaptStream`. */
  adapt(listener: EngineListener): StreamAdapter {
    this.#listener = listener;
    return {
      connection: this.#connection as PeerConnection,
      event: (event) => {
        const { is, message } = event as unknown as Arrived;
        if (is === 'event') {
          listener.receive(message);
        } else {
          listener.acknowledged(message);
        }
      },
    };
  }

  connected(agent: string, mode: AgentMode, connection: PeerConnection): void {
    this.#connection = connection;
    const session = { agent, mode, stream: this, peer: {} } as unknown as Session;
    this.#handlers = this.#subscribe(session);
  }

  disconnected(): void {
    this.#isClosed = true;
    if (!this.#hasEnded) {
      this.#hasEnded = true;
      this.#handlers?.closed();
    }
  }

  writable(): void {
    if (!this.#isClosed) {
      this.#listener?.writable();
    }
  }

  acknowledged(_agent: string, message: Message): void {
    this.#take({ is: 'ack', message });
  }

  receive(_agent: string, message: Message): void {
    this.#take({ is: 'event', message });
  }

  stats(): never {
    throw new Error('a session has none');
  }

  send(): boolean {
    return true;
  }

  onDrain(): void {
    // The network calls `writable`.
  }

  pause(): void {
    this.#waiting ??= [];
  }

  resume(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const arrived of waiting) {
      this.#machine.after(0, () => this.#take(arrived));
    }
  }

  close(): void {
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.#hangUp();
      this.#machine.after(0, () => this.disconnected());
    }
  }

  #take(arrived: Arrived): void {
    if (this.#isClosed) {
      return;
    }
    if (this.#waiting !== undefined) {
      this.#waiting.push(arrived);
      return;
    }
    this.#handlers?.event(arrived as unknown as WireEvent);
  }
}
