import type { ObjectRef } from '../../sync/index.ts';
import type {
  Message,
  PeerConnection,
  RequestUpdate,
  ResyncKind,
  ResyncMessage,
  UnreadableMessage,
} from './messages.ts';
import type { SyncStats } from './stats.ts';

/** A message about objects of one kind: everything but the resync family. */
export type ObjectMessage = Exclude<Message, ResyncMessage>;

/** Who is at the other end of an agent's connection. */
export interface ConnectedPrincipal {
  /** The principal's name of this agent; empty when the principal does not send it. */
  readonly agent: string;
  /** The principal's namespace for its objects; empty when the principal does not send it. */
  readonly principalNamespace: string;
}

/**
 * One kind of object between this side and one peer, with its own outbox and inbox. Resync messages concern all kinds of a
 * connection together; {@link HubSync} and {@link AgentSync} handle them.
 */
interface KindSync {
  readonly kind: ResyncKind;
  /** The peer connected; the connection may replace another one. A copy side sends at once, a source after `open`. */
  connected(connection: PeerConnection, peer: ConnectedPrincipal): void;
  /** The connection given last is gone. */
  disconnected(): void;
  /** The connection takes more after it had refused. */
  writable(): void;
  /** The peer processed an event; false when the event is not of this kind. */
  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): boolean;
  /**
   * Takes a message about this kind, and acknowledges it on the connection when it is done. False: this side does not
   * accept the message from this peer; the caller logs and acknowledges it.
   */
  receive(message: ObjectMessage): boolean;
  /** A message about an object of this kind cannot be read: this side shows it where people look. Absent: it cannot. */
  unreadable?(message: UnreadableMessage): void;
  stats(): SyncStats;
  /** For how long, in milliseconds, the oldest state that the peer has not acknowledged has waited. Absent: never any. */
  oldestMs?(): number;
  /** Some objects whose states have waited for longer than `afterMs`, at most `most`. Absent: never any. */
  late?(afterMs: number, most: number): readonly LateObject[];
}

/** An object whose state the peer has not acknowledged. */
export interface LateObject extends ObjectRef {
  /** For how long the state has waited, in milliseconds. */
  readonly ms: number;
}

/** One of the objects that the peer should have. */
export interface Listed {
  /** Identifies the object within its kind, whatever its names on the two sides. */
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
   * The peer has reported its copies, or its time for that is over: sending begins, on this connection and on every later
   * one as soon as it is there.
   * @param marksEnd the peer has said that its reports are complete, as argocd-agent's does not
   */
  open(marksEnd: boolean): void;
  /**
   * The peer reported its copy of an object (protocol: `request-update`); an empty uid: it has none. Returns the id of the
   * object; undefined when the peer should not have it and nothing is recorded about it.
   */
  peerReported(update: RequestUpdate): string | undefined;
  /** The peer reported all its copies, and this object was not among them. */
  peerLacks(id: string): void;
  /** Everything that the peer should have. */
  list(): Iterable<Listed>;
  /** Stops all timers; it must not be used afterwards. */
  close(): void;
}

/** A copy of an object of the source. */
export interface Copy {
  /** Its place on this side. */
  readonly ref: ObjectRef;
  /** Name of the source's object. */
  readonly name: string;
  /** UID of the source's object. */
  readonly uid: string;
}

/** A kind on the side that keeps copies: the agent's in managed mode, the principal's for an autonomous agent. */
export interface CopySync extends KindSync {
  /** The copies here. */
  copies(): Iterable<Copy>;
  /** The `request-update` that reports the copy of this name; with an empty uid when there is none. */
  reportOf(ref: ObjectRef): RequestUpdate;
  /** The place on this side of an object of the source. */
  localRef(source: { readonly name: string; readonly namespace: string }): ObjectRef;
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
  /** The agent's synchronisation of this kind, made on first use. */
  syncFor(agent: string): P;
  /** The agent was detached: its synchronisation is closed and dropped; objects stay. */
  forgetAgent(agent: string): void;
  /** Another principal serves the agent, or may: as {@link forgetAgent}, but it stays in the fleet. Default: the same. */
  releaseAgent?(agent: string): void;
}

/** A kind on an agent. */
export type AgentKind<P extends SourceSync | CopySync> = P & {
  /** Follows the cluster's objects until aborted. Called once, when the caches are filled. */
  start(signal: AbortSignal): void;
};

/** Who owns what: in managed mode the principal is the source, in autonomous mode the agent. */
export type { AgentMode } from '../../auth/index.ts';
