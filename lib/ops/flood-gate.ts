import { BoundedMap, type RateLimit, TokenBucket } from '../base/index.ts';

/** How many lines of one kind about one subject may come at once and each second. */
const kindLimits: Readonly<Record<LineClass, RateLimit>> = {
  warning: { burst: 30, perSecond: 0.5 },
  info: { burst: 300, perSecond: 5 },
};
/** The same for all lines about one subject: part of a text may be the peer's own, which makes any number of kinds. */
const subjectLimit: RateLimit = { burst: 1_000, perSecond: 10 };
/** Kinds and subjects that are remembered. Their oldest are forgotten and start anew. */
const maxRemembered = 4_000;

/** How much a line matters: warnings and errors are rare and alike, the others may report much work that is normal. */
export type LineClass = 'warning' | 'info';

/** What {@link FloodGate} has to know of a line. */
export interface GatedLine {
  /** Whom the line is about. */
  readonly subject: string;
  /** Lines of one kind are alike. */
  readonly kind: string;
  readonly class: LineClass;
}

/** The lines of one kind, or about one subject. */
class Flow {
  readonly #bucket: TokenBucket;
  #suppressed = 0;

  constructor(limit: RateLimit, now: () => number) {
    this.#bucket = new TokenBucket(limit, now);
  }

  isOpen(): boolean {
    const isOpen = this.#bucket.tryTake();
    this.#suppressed += isOpen ? 0 : 1;
    return isOpen;
  }

  takeSuppressed(): number {
    const suppressed = this.#suppressed;
    this.#suppressed = 0;
    return suppressed;
  }
}

/** Keeps a peer from filling the log: limits the lines of one kind about it, and all lines about it. */
export class FloodGate {
  readonly #now: () => number;
  readonly #kinds = new BoundedMap<string, Flow>(maxRemembered);
  readonly #subjects = new BoundedMap<string, Flow>(maxRemembered);

  /** @param now milliseconds of a clock that never goes back */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** How many lines were left out since the last one of this kind that was not; undefined: this one is left out too. */
  admit(line: GatedLine): number | undefined {
    const kind = this.#flow(this.#kinds, `${line.class} ${line.subject} ${line.kind}`, kindLimits[line.class]);
    if (!kind.isOpen()) {
      return undefined;
    }
    const subject = this.#flow(this.#subjects, line.subject, subjectLimit);
    return subject.isOpen() ? kind.takeSuppressed() + subject.takeSuppressed() : undefined;
  }

  #flow(flows: BoundedMap<string, Flow>, key: string, limit: RateLimit): Flow {
    const flow = flows.get(key) ?? new Flow(limit, this.#now);
    // The newest stay remembered.
    flows.set(key, flow);
    return flow;
  }
}
