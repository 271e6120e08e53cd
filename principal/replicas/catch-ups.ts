import { Backoff, type Logger, sleep, withDeadline } from '../../lib/base/index.ts';

/** How {@link CatchUps} work. */
export interface CatchUpsOptions {
  /**
   * Resolves when what this replica knows of the agent's objects is as new as what the API server had at the call. Rejects when
   * aborted, and when the API server cannot be asked: then it is called again.
   */
  readonly caughtUp: (agent: string, signal: AbortSignal) => Promise<void>;
  /** This replica has caught up for the agent. */
  readonly done: (agent: string) => void;
  /** It has not, in time. */
  readonly failed: (agent: string) => void;
  /** Limit for one agent, ms. */
  readonly timeoutMs: number;
  readonly logger: Logger;
}

const pauses = { initialMs: 50, maxMs: 1_000 };

interface CatchUp {
  readonly term: string;
  readonly stop: AbortController;
  isDone: boolean;
}

/**
 * Makes a replica wait, before it serves an agent in a new term, until its caches have what the API server had when the term
 * began: watches may be behind, and what the last holder has sent would look like what nobody wants.
 */
export class CatchUps {
  readonly #options: CatchUpsOptions;
  readonly #agents = new Map<string, CatchUp>();

  constructor(options: CatchUpsOptions) {
    this.#options = options;
  }

  /**
   * Sees to it that this replica catches up for the agent in this term. True: it has. False: it does, and `done` or `failed` is
   * called later.
   * @param term a name that no other term of the agent has
   * @param pauseMs before it begins
   */
  ensure(agent: string, term: string, pauseMs = 0): boolean {
    const known = this.#agents.get(agent);
    if (known?.term === term) {
      return known.isDone;
    }
    known?.stop.abort();
    const begun: CatchUp = { term, stop: new AbortController(), isDone: false };
    this.#agents.set(agent, begun);
    void this.#run(agent, begun, pauseMs);
    return false;
  }

  /** The agent has left the fleet, or need not be caught up for. */
  forget(agent: string): void {
    this.#agents.get(agent)?.stop.abort();
    this.#agents.delete(agent);
  }

  /** Ends what goes on. */
  close(): void {
    for (const agent of [...this.#agents.keys()]) {
      this.forget(agent);
    }
  }

  async #run(agent: string, begun: CatchUp, pauseMs: number): Promise<void> {
    const { caughtUp, done, failed, timeoutMs, logger } = this.#options;
    try {
      if (pauseMs > 0) {
        await sleep(pauseMs, begun.stop.signal);
      }
      await withDeadline(begun.stop.signal, timeoutMs, async (signal) => {
        const backoff = new Backoff(pauses);
        for (;;) {
          try {
            return await caughtUp(agent, signal);
          } catch (error) {
            signal.throwIfAborted();
            logger.debug({ agent, error }, 'the API server cannot be asked for the newest state');
            await sleep(backoff.next(), signal);
          }
        }
      });
    } catch (error) {
      if (this.#agents.get(agent) === begun) {
        this.#agents.delete(agent);
        logger.warn({ agent, error }, 'what this replica knows of an agent is not up to date');
        failed(agent);
      }
      return;
    }
    if (this.#agents.get(agent) === begun) {
      begun.isDone = true;
      done(agent);
    }
  }
}
