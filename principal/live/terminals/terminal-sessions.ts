import {
  grpcStatus,
  type LiveStreamHandlers,
  type ServerLiveStream,
  type TerminalStreamData,
} from '../../../lib/wire/index.ts';
import { NoAnswerError } from '../agent-requests.ts';

/** The viewer's side of a terminal. */
export interface TerminalUser {
  /** The agent has opened the stream. */
  opened(stream: ServerLiveStream<TerminalStreamData>): void;
  message(message: TerminalStreamData): void;
  /** The stream has ended, or will not be opened. Called once, as the last call. */
  lost(): void;
  /** The principal stops. */
  stopped(): void;
}

interface Session {
  readonly agent: string;
  readonly user: TerminalUser;
  stream: ServerLiveStream<TerminalStreamData> | undefined;
}

/** Terminals of one agent that may be open at the same time. */
const mostPerAgent = 100;
/** Of all agents. */
const mostInAll = 2_000;

/**
 * Terminals that are open or requested, by UUID. Only the agent that got the request finds its session, and only once; an agent that
 * offers another stream gets `NotFound`.
 */
export class TerminalSessions {
  readonly #sessions = new Map<string, Session>();
  readonly #counts = new Map<string, number>();

  /** How many terminals of each agent there are. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /**
   * Expects a stream of this UUID from this agent. The returned function ends the expectation and removes the session.
   * @throws NoAnswerError when there are too many
   */
  open(agent: string, uuid: string, user: TerminalUser): () => void {
    this.requireRoom(agent);
    const session: Session = { agent, user, stream: undefined };
    this.#sessions.set(uuid, session);
    this.#counts.set(agent, (this.#counts.get(agent) ?? 0) + 1);
    return () => this.#forget(uuid, session);
  }

  /** @throws NoAnswerError when there are too many terminals, of this agent or in all */
  requireRoom(agent: string): void {
    if ((this.#counts.get(agent) ?? 0) >= mostPerAgent || this.#sessions.size >= mostInAll) {
      throw new NoAnswerError('busy', agent);
    }
  }

  /** Takes a stream that an agent has opened. */
  serve(stream: ServerLiveStream<TerminalStreamData>): LiveStreamHandlers<TerminalStreamData> {
    let uuid: string | undefined;
    let session: Session | undefined;
    return {
      message: (message) => {
        if (uuid === undefined) {
          uuid = message.requestUuid;
          const found = this.#sessions.get(uuid);
          if (found?.agent === stream.agent && found.stream === undefined) {
            found.stream = stream;
            session = found;
            found.user.opened(stream);
          }
        }
        if (session === undefined || message.requestUuid !== uuid) {
          stream.finish(grpcStatus.notFound, 'unknown session');
          return;
        }
        if (this.#sessions.get(uuid) === session) {
          session.user.message(message);
        }
      },
      halfClosed: () => stream.finish(),
      closed: () => {
        if (uuid === undefined || session === undefined || this.#sessions.get(uuid) !== session) {
          return;
        }
        this.#forget(uuid, session);
        session.user.lost();
      },
    };
  }

  /** The agent's event stream has ended, and with it the requests on it. */
  disconnected(agent: string): void {
    for (const [uuid, session] of this.#sessions) {
      if (session.agent !== agent) {
        continue;
      }
      this.#forget(uuid, session);
      session.user.lost();
    }
  }

  /** Ends all. */
  stop(): void {
    for (const { user } of [...this.#sessions.values()]) {
      user.stopped();
    }
  }

  #forget(uuid: string, session: Session): void {
    if (this.#sessions.get(uuid) !== session) {
      return;
    }
    this.#sessions.delete(uuid);
    const count = (this.#counts.get(session.agent) ?? 0) - 1;
    if (count > 0) {
      this.#counts.set(session.agent, count);
    } else {
      this.#counts.delete(session.agent);
    }
  }
}
