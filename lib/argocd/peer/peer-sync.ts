import type { Clock, Runtime, Tuning } from '../../sync/index.ts';
import type { ConnectedPrincipal, CopySync, LateObject, ObjectMessage, SourceSync } from './kind-sync.ts';
import type { Message, PeerConnection, ResyncKind, ResyncMessage, UnreadableMessage } from './messages.ts';
import { ReliableMessages } from './reliable-messages.ts';
import type { SyncStats } from './stats.ts';
import { Warnings } from './warnings.ts';

/** The resync protocol for all kinds together, from one of the two sides. */
export interface Resync {
  /** The peer connected, and the kinds already know it. */
  connected(): void;
  disconnected(): void;
  /** This side's objects are in an earlier state than before. */
  restored?(isConnected: boolean): void;
  /** The peer acknowledged a reliable message. */
  delivered(): void;
  /** `later`: this acknowledges the message itself. `refused`: this side does not accept such a message. */
  receive(message: ResyncMessage): 'done' | 'later' | 'refused';
  close(): void;
}

/** The dependencies of a {@link Resync}. */
export interface ResyncContext<P> {
  readonly kinds: readonly P[];
  readonly messages: ReliableMessages;
  readonly clock: Clock;
  /** For a message that was to be acknowledged later. */
  readonly acknowledge: (message: ResyncMessage) => void;
}

/** The dependencies of a {@link PeerSync} besides its kinds. */
export interface PeerSyncOptions {
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
  /** Stands in every log line about the peer. */
  readonly peer: object;
  /** Called for each message that the peer may not send in this mode. */
  readonly refused?: ((message: Message) => void) | undefined;
}

/** Resync messages of a connection that are remembered. A forgotten one that comes again costs a comparison. */
const remembered = 4_096;

const kindOf = {
  application: 'Application',
  appproject: 'AppProject',
  repository: 'Repository',
  gpgkey: 'GPGKey',
} as const;

/** All kinds that are synchronised with one peer over one connection. */
export class PeerSync<P extends SourceSync | CopySync> {
  readonly #kinds: readonly P[];
  readonly #resync: Resync;
  readonly #messages: ReliableMessages;
  readonly #warnings: Warnings;
  readonly #peer: object;
  readonly #refused: ((message: Message) => void) | undefined;
  /** Event ids of this connection's resync messages: a repeated one may describe an older state. */
  readonly #received = new Set<string>();
  /** Those that are acknowledged later: a copy is acknowledged with the first. */
  readonly #later = new Set<string>();
  #connection: PeerConnection | undefined;

  constructor(kinds: readonly P[], resync: (context: ResyncContext<P>) => Resync, options: PeerSyncOptions) {
    const { clock, log } = options.runtime;
    this.#kinds = kinds;
    this.#peer = options.peer;
    this.#refused = options.refused;
    this.#messages = new ReliableMessages(options.runtime, options.tuning);
    this.#warnings = new Warnings(log, clock);
    this.#resync = resync({
      kinds,
      messages: this.#messages,
      clock,
      acknowledge: (message) => {
        this.#later.delete(message.eventId);
        this.#connection?.acknowledge(message);
      },
    });
  }

  /** The peer connected; a newer connection replaces an older one. */
  connected(connection: PeerConnection, peer: ConnectedPrincipal): void {
    if (this.#connection !== undefined) {
      this.disconnected(this.#connection);
    }
    this.#connection = connection;
    this.#received.clear();
    this.#later.clear();
    this.#messages.connected(connection);
    for (const sync of this.#kinds) {
      sync.connected(connection, peer);
    }
    this.#resync.connected();
  }

  /** The connection is gone; ignored when a newer one has taken its place. */
  disconnected(connection: PeerConnection): void {
    if (this.#connection !== connection) {
      return;
    }
    this.#connection = undefined;
    this.#resync.disconnected();
    this.#messages.disconnected();
    for (const sync of this.#kinds) {
      sync.disconnected();
    }
  }

  /** This side's API server was restored from a backup, and the kinds already know it. */
  restored(): void {
    this.#resync.restored?.(this.#connection !== undefined);
  }

  /** The connection takes more after it had refused. */
  writable(): void {
    if (this.#connection === undefined) {
      return;
    }
    this.#messages.writable();
    // Messages withdrawn while the connection was full are dropped only now, without an acknowledgement.
    this.#resync.delivered();
    for (const sync of this.#kinds) {
      sync.writable();
    }
  }

  /** The peer processed an event of ours. */
  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): void {
    if (this.#messages.acknowledged(event.resourceId, event.eventId)) {
      this.#resync.delivered();
    } else {
      this.#kinds.some((sync) => sync.acknowledged(event));
    }
  }

  /** Takes a message of the peer. It is acknowledged when it is done, once for all kinds that it concerns. */
  receive(message: Message): void {
    if (message.target === 'resourceResync') {
      this.#takeResync(message);
    } else if (!this.#takeObject(message)) {
      this.#refuse(message);
    }
  }

  /** The peer sent something about an object that cannot be read. It is refused by the caller. */
  unreadable(message: UnreadableMessage): void {
    this.#kinds.find(({ kind }) => kind === kindOf[message.target])?.unreadable?.(message);
  }

  stats(): SyncStats {
    const sum = { pending: this.#messages.pending, inFlight: 0, queued: 0, retrying: 0 };
    for (const sync of this.#kinds) {
      const { pending, inFlight, queued, retrying } = sync.stats();
      sum.pending += pending;
      sum.inFlight += inFlight;
      sum.queued += queued;
      sum.retrying += retrying;
    }
    return sum;
  }

  /** For how long, in milliseconds, the oldest state that the peer has not acknowledged has waited; 0 without any. */
  oldestMs(): number {
    return Math.max(0, ...this.#kinds.map((sync) => sync.oldestMs?.() ?? 0));
  }

  /** Some objects of a kind whose states have waited for longer than `afterMs`, at most `most`. */
  late(kind: ResyncKind, afterMs: number, most: number): readonly LateObject[] {
    return this.#kinds.find((sync) => sync.kind === kind)?.late?.(afterMs, most) ?? [];
  }

  /** Stops all timers. It must not be used afterwards. */
  close(): void {
    this.#connection = undefined;
    this.#resync.close();
    this.#messages.close();
    for (const sync of this.#kinds) {
      sync.close();
    }
  }

  #takeResync(message: ResyncMessage): void {
    const { eventId } = message;
    if (this.#later.has(eventId)) {
      return;
    }
    if (this.#received.has(eventId)) {
      this.#connection?.acknowledge(message);
      return;
    }
    this.#remember(eventId);
    this.#later.add(eventId);
    const outcome = this.#resync.receive(message);
    if (outcome === 'later') {
      return;
    }
    this.#later.delete(eventId);
    if (outcome === 'refused') {
      this.#refuse(message);
    } else {
      this.#connection?.acknowledge(message);
    }
  }

  #takeObject(message: ObjectMessage): boolean {
    const kind = kindOf[message.target];
    return this.#kinds.some((sync) => sync.kind === kind && sync.receive(message));
  }

  /** Acknowledged, so that it does not come again. */
  #refuse(message: Message): void {
    const { target, type } = message;
    this.#warnings.warn({ ...this.#peer, target, type }, 'the peer sent what it may not send in this mode');
    this.#refused?.(message);
    this.#connection?.acknowledge(message);
  }

  #remember(eventId: string): void {
    this.#received.add(eventId);
    if (this.#received.size > remembered) {
      for (const oldest of this.#received) {
        this.#received.delete(oldest);
        break;
      }
    }
  }
}
