import type { ObjectRef } from '../../sync/index.ts';
import type { Message, PeerConnection, RequestUpdate, ResyncKind, ResyncMessage } from './messages.ts';
import type { SyncStats } from './stats.ts';

/** A message about objects of one kind: everything but the resync family. */
export type ObjectMessage = Exclude<Message, ResyncMessage>;

/** Who is at the other end of an agent's connection. */
export interface ConnectedPrincipal {
  /** What the principal calls this agent; empty when it does not say. */
  readonly agent: string;
  /** Where the principal keeps its objects; empty when it does not say. */
  readonly principalNamespace: string;
}

/**
 * One kind of object between this side and one peer. It has its own outbox and inbox; what concerns all kinds of a
 * connection together, the resync messages, is not its business (see {@link HubSync} and {@link AgentSync}).
 */
interface KindSync {
  readonly kind: ResyncKind;
  /** The connection is there; it may replace another one. A mirror part sends at once, a source part after `open`. */
  connected(connection: PeerConnection, peer: ConnectedPrincipal): void;
  /** The connection given last is gone. */
  disconnected(): void;
  /** The connection takes more after it had refused. */
  writable(): void;
  /** The peer processed an event; false when it was none of this part's. */
  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): boolean;
  /**
   * Takes a message about this kind, and acknowledges it on the connection when it is done. False: it is nothing that
   * this part takes from this peer; the caller says so and acknowledges it.
   */
  receive(message: ObjectMessage): boolean;
  stats(): SyncStats;
}

/** One of the objects that the peer should have. */
export interface Listed {
  /** Names the object within the part, whatever the two sides call it. */
  readonly id: string;
  /** Its name on the source. */
  readonly name: string;
  readonly namespace: string;
  /** UID of the source's object. */
  readonly uid: string;
}

/** A kind on the side that owns it: the principal's for a managed agent, the agent's in autonomous mode. */
export interface SourceSync extends KindSync {
  /**
   * The peer has said what it holds, or had its time to: sending begins, on this connection and on every later one as soon
   * as it is there.
   */
  open(): void;
  /**
   * The peer said what it holds of an object (protocol: `request-update`); an empty uid: nothing. Gives the id of the object
   * that it means, undefined when it should not have any such and nothing is remembered of that.
   */
  peerReported(update: RequestUpdate): string | undefined;
  /** The peer reported everything that it holds, and this object was not among it. */
  peerLacks(id: string): void;
  /** Everything that the peer should have. */
  list(): Iterable<Listed>;
  /** Stops all timers; the part is not used any more. */
  close(): void;
}

/** A copy of an object of the source. */
export interface Copy {
  /** What it is called here. */
  readonly ref: ObjectRef;
  /** What the source's object is called. */
  readonly name: string;
  /** UID of the source's object. */
  readonly uid: string;
}

/** A kind on the side that keeps copies: the agent's in managed mode, the principal's for an autonomous agent. */
export interface CopySync extends KindSync {
  /** The copies here. */
  copies(): Iterable<Copy>;
  /** The `request-update` that reports what is here under this name now; with an empty uid: nothing. */
  holding(ref: ObjectRef): RequestUpdate;
  /** What this side calls an object of the source. */
  localRef(told: { readonly name: string; readonly namespace: string }): ObjectRef;
  /** Registers how to send `request-update` for an object unasked: the source may have lost its memory since it sent it. */
  onDoubt?(requestUpdate: (ref: ObjectRef) => void): void;
  /** The source restarted and has lost every report: all of them are sent again. */
  sourceRestarted(): void;
  close(): void;
}

/** A kind on the principal, for all agents of one mode. */
export interface HubKind<P extends SourceSync | CopySync> {
  /** Follows the hub's objects until aborted. Called once, when the caches are filled. */
  start(signal: AbortSignal): void;
  /** The agent's part, made when it is first asked for. */
  syncFor(agent: string): P;
  /** The agent left the fleet: its part is closed and forgotten; objects stay. */
  forgetAgent(agent: string): void;
}

/** A kind on an agent. */
export type AgentKind<P extends SourceSync | CopySync> = P & {
  /** Follows the cluster's objects until aborted. Called once, when the caches are filled. */
  start(signal: AbortSignal): void;
};

/** Who owns what: in managed mode the principal is the source, in autonomous mode the agent. */
export type { AgentMode } from '../../auth/index.ts';
