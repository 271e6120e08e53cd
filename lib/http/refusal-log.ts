import type { Logger } from '../base/index.ts';

const minuteMs = 60_000;

/** What was refused since the last line about it. */
interface Refused {
  count: number;
  loggedAt: number;
}

/** Says in the log what a server refuses: at once, and then at most once a minute with the number since. */
export class RefusalLog {
  readonly #what: string;
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #ends: string;
  readonly #now: () => number;
  readonly #refused = new Map<string, Refused>();

  /**
   * @param what the server, for people: `metrics`
   * @param options.ends what it refuses. Default: a connection
   * @param options.now milliseconds of a clock that never goes back
   */
  constructor(
    what: string,
    logger: Pick<Logger, 'warn'>,
    { ends = 'a connection', now = () => performance.now() }: { readonly ends?: string; now?(): number } = {},
  ) {
    this.#what = what;
    this.#logger = logger;
    this.#ends = ends;
    this.#now = now;
  }

  /**
   * Something was refused.
   * @param why one of few texts, since each is counted by itself
   * @param network whose it was; the line names the last one
   */
  add(why: string, network: string, fields: object = {}): void {
    const now = this.#now();
    const refused = this.#refused.get(why) ?? { count: 0, loggedAt: Number.NEGATIVE_INFINITY };
    this.#refused.set(why, refused);
    refused.count++;
    if (now - refused.loggedAt < minuteMs) {
      return;
    }
    this.#logger.warn(
      { from: network, refused: refused.count, ...fields },
      `The server for ${this.#what} ends ${this.#ends}: ${why}`,
    );
    refused.count = 0;
    refused.loggedAt = now;
  }
}
