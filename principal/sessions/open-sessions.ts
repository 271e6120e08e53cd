import type { StreamAdapter } from '../../lib/bridge/index.ts';
import type { Session, WireEvent } from '../../lib/wire/index.ts';

/** An agent's open stream. */
export interface OpenSession {
  readonly session: Session;
  readonly adapter: StreamAdapter;
  readonly since: Date;
  /** Whether this principal holds the agent, and takes its messages. */
  isServed: boolean;
}

/** Learns which agents have got a session, also another one, or lost their last, whether they are of the fleet or not. */
export interface OpenSessionsListener {
  connected(agent: string, mode: string): void;
  disconnected(agent: string): void;
}

/** The newest open session of each agent. */
export class OpenSessions {
  readonly #isMapped: (agent: string) => boolean;
  readonly #byAgent = new Map<string, OpenSession>();
  readonly #listeners = new Set<OpenSessionsListener>();

  /** @param isMapped whether the agent has a cluster Secret */
  constructor(isMapped: (agent: string) => boolean) {
    this.#isMapped = isMapped;
  }

  get(agent: string): OpenSession | undefined {
    return this.#byAgent.get(agent);
  }

  /** Replaces the agent's older session, if there is one. */
  add(open: OpenSession): void {
    const { agent, mode } = open.session;
    this.#byAgent.set(agent, open);
    for (const listener of this.#listeners) {
      listener.connected(agent, mode);
    }
  }

  /** Returns false when a newer session of the agent has replaced this one. */
  remove(open: OpenSession): boolean {
    const { agent } = open.session;
    const isNewest = this.#byAgent.get(agent) === open && this.#byAgent.delete(agent);
    if (isNewest) {
      for (const listener of this.#listeners) {
        listener.disconnected(agent);
      }
    }
    return isNewest;
  }

  /** Tells the listener from now on. */
  subscribe(listener: OpenSessionsListener): void {
    this.#listeners.add(listener);
  }

  all(): OpenSession[] {
    return [...this.#byAgent.values()];
  }

  /** Whether the agent has a stream that is served, and a cluster Secret. */
  isConnected(agent: string): boolean {
    const open = this.#byAgent.get(agent);
    return open?.session.stream.ended === false && open.isServed && this.#isMapped(agent);
  }

  /** Sends an event to an agent; false, and nothing is sent, unless {@link isConnected}. */
  send(agent: string, event: WireEvent): boolean {
    if (!this.isConnected(agent)) {
      return false;
    }
    this.#byAgent.get(agent)?.session.stream.send(event);
    return true;
  }

  /** The connected agents, for metrics. */
  connections(): { readonly agent: string; readonly mode: string; readonly since: Date }[] {
    return this.all().map(({ session, since }) => ({ agent: session.agent, mode: session.mode, since }));
  }
}
