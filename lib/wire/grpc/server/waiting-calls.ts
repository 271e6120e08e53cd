import { isStranger } from './client-of.ts';
import type { ServerCall } from './server-call.ts';

/** Calls that wait at the same time. */
export interface WaitingLimits {
  /** Of one client, on all its connections together. */
  readonly ofClient: number;
  /** Of all strangers. */
  readonly ofStrangers: number;
}

/** A client's calls are as many as one connection may have. A fleet that logs in has its turns within seconds. */
const defaultLimits: WaitingLimits = { ofClient: 1_000, ofStrangers: 2_000 };

/** Ends a waiting call, for a reason that is logged. */
type Refuse = (reason: string) => void;

/**
 * Limits the calls of each client that wait for their turn to begin: each takes memory for its headers, and the client decides how many
 * connections it opens. All strangers together have a limit, too: it costs little to come from many networks. When it is reached, the
 * network with most calls makes room for one with few, so that no crowd keeps others from logging in.
 */
export class WaitingCalls {
  readonly #limits: WaitingLimits;
  readonly #agents = new Map<string, Set<Refuse>>();
  readonly #strangers = new Map<string, Set<Refuse>>();
  #ofStrangers = 0;

  constructor(limits: WaitingLimits = defaultLimits) {
    this.#limits = limits;
  }

  /**
   * A call waits until it is over. `refuse` is called when it may not, at once or later, when it has to make room.
   * @returns what to call when it begins; undefined when it is refused at once
   */
  add(client: string, call: ServerCall, refuse: Refuse): (() => void) | undefined {
    const isOfStranger = isStranger(client);
    const clients = isOfStranger ? this.#strangers : this.#agents;
    const before = clients.get(client)?.size ?? 0;
    if (before >= this.#limits.ofClient) {
      refuse('too many of its client wait already');
      return undefined;
    }
    if (isOfStranger && this.#ofStrangers >= this.#limits.ofStrangers && !this.#makeRoom(before)) {
      refuse('too many of strangers wait already');
      return undefined;
    }
    const calls = clients.get(client) ?? new Set();
    clients.set(client, calls.add(refuse));
    this.#ofStrangers += isOfStranger ? 1 : 0;
    const waitsNoMore = () => {
      if (calls.delete(refuse)) {
        this.#ofStrangers -= isOfStranger ? 1 : 0;
        if (calls.size === 0) {
          clients.delete(client);
        }
      }
    };
    call.onOver(waitsNoMore);
    return waitsNoMore;
  }

  /** Ends the oldest call of the network with most, if it has more than the newcomer's would have. */
  #makeRoom(ofNewcomer: number): boolean {
    // Above the average: a crowd is turned away without a search.
    if ((ofNewcomer + 1) * this.#strangers.size > this.#ofStrangers) {
      return false;
    }
    let most: ReadonlySet<Refuse> = new Set();
    for (const calls of this.#strangers.values()) {
      most = calls.size > most.size ? calls : most;
    }
    const [oldest] = most;
    if (oldest === undefined || most.size <= ofNewcomer + 1) {
      return false;
    }
    oldest('other networks have fewer that wait');
    return true;
  }
}
