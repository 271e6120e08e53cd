/** What an agent decides of one object. */
export interface Share {
  readonly agent: string;
  readonly size: number;
  /** The agent decides the whole object. */
  readonly isMirror: boolean;
}

/** What an agent has on the hub. */
export interface AgentTotal {
  /** Its mirrors. */
  objects: number;
  bytes: number;
}

interface Place {
  readonly stored?: Share | undefined;
  /** What a write that is under way makes of it. */
  readonly reserved?: Share | undefined;
}

/**
 * What agents have on the hub, object by object. A write counts from before it is sent, so that writes at the same time do not
 * exceed a limit together; until it has ended, the larger one of what is there and what it makes of that counts.
 */
export class AgentUsage {
  readonly #places = new Map<string, Place>();
  readonly #usage = new Map<string, AgentTotal>();

  /** What an agent has in all. */
  of(agent: string): Readonly<AgentTotal> {
    return this.#usage.get(agent) ?? { objects: 0, bytes: 0 };
  }

  /** What counts of one object. */
  at(place: string): Share | undefined {
    return effective(this.#places.get(place));
  }

  /** This is stored of an object now; undefined: nothing. */
  stored(place: string, share: Share | undefined): void {
    this.#set(place, { ...this.#places.get(place), stored: share });
  }

  /** A write begins; call what is returned when it has ended. */
  reserve(place: string, share: Share): () => void {
    this.#set(place, { ...this.#places.get(place), reserved: share });
    return () => {
      const now = this.#places.get(place);
      if (now?.reserved === share) {
        this.#set(place, { ...now, reserved: undefined });
      }
    };
  }

  #set(place: string, now: Place): void {
    this.#add(this.at(place), -1);
    if (now.stored === undefined && now.reserved === undefined) {
      this.#places.delete(place);
    } else {
      this.#places.set(place, now);
    }
    this.#add(effective(now), 1);
  }

  #add(share: Share | undefined, sign: 1 | -1): void {
    if (share === undefined) {
      return;
    }
    const { agent, size, isMirror } = share;
    const usage = this.#usage.get(agent) ?? { objects: 0, bytes: 0 };
    usage.bytes += sign * size;
    usage.objects += isMirror ? sign : 0;
    if (usage.bytes === 0 && usage.objects === 0) {
      this.#usage.delete(agent);
    } else {
      this.#usage.set(agent, usage);
    }
  }
}

function effective({ stored, reserved }: Place = {}): Share | undefined {
  if (stored === undefined || reserved === undefined) {
    return reserved ?? stored;
  }
  return stored.agent === reserved.agent && stored.size > reserved.size ? { ...reserved, size: stored.size } : reserved;
}
