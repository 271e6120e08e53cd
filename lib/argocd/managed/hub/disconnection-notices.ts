import { type RateLimit, TokenBucket } from '../../../base/index.ts';
import {
  Inbox,
  type InboxOutcome,
  type ObjectRef,
  type RetryDelays,
  type Runtime,
  refOf,
} from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { agentDisconnectedCondition } from '../../names.ts';
import { placeOf } from '../../place.ts';
import { conditionMessage } from '../status.ts';
import type { DisconnectedAgents } from './disconnected-agents.ts';

/** What {@link DisconnectionNotices} need of the hub. */
export interface DisconnectionNoticesOptions {
  /** An Application as it is now. */
  readonly read: (ref: ObjectRef) => Application | undefined;
  /** The agent whose reports an Application shows: the one that has it, or of a mirror the autonomous agent. */
  readonly reporterOf: (application: Application) => string | undefined;
  /** Whether an Application may tell of its agent: whoever writes Applications may name any. Default: it may. */
  readonly mayTell?: ((application: Application, agent: string) => boolean) | undefined;
  /** Whether this principal writes notices on it; another one may have its agent. Default: it does. */
  readonly isResponsible?: ((application: Application) => boolean) | undefined;
  readonly agents: Pick<DisconnectedAgents, 'messageFor'>;
}

/** For all agents together: the notices can concern every Application of the hub at once, and nothing waits for them. */
const rate: RateLimit = { perSecond: 100, burst: 1 };
const concurrency = 4;
const retry: RetryDelays = { baseMs: 500, factor: 2, capMs: 60_000, jitter: 1 };

interface Turn {
  readonly ref: ObjectRef;
  readonly id: string;
}

/**
 * What the hub's Applications say of agents that are not connected, and when: one Application after another, at a limited
 * rate. What need not be written any more, when its turn comes, takes none.
 */
export class DisconnectionNotices {
  readonly #options: DisconnectionNoticesOptions;
  readonly #write: (ref: ObjectRef, signal: AbortSignal) => Promise<InboxOutcome>;
  readonly #clock: Runtime['clock'];
  readonly #bucket: TokenBucket;
  readonly #turns: Inbox<Turn>;
  #ids = 0;

  /**
   * @param write makes an Application's conditions as they should be, with {@link DisconnectionNotices.messageFor}
   * @param signal ends all work
   */
  constructor(
    options: DisconnectionNoticesOptions,
    write: (ref: ObjectRef, signal: AbortSignal) => Promise<InboxOutcome>,
    runtime: Runtime,
    signal: AbortSignal,
  ) {
    this.#options = options;
    this.#write = write;
    this.#clock = runtime.clock;
    this.#bucket = new TokenBucket(rate, () => runtime.clock.now());
    this.#turns = new Inbox<Turn>(
      {
        apply: (turn, aborted) => this.#take(turn, aborted),
        acknowledge: () => undefined,
        laneOf: ({ ref }) => placeOf(ref),
        idOf: ({ id }) => id,
        supersedes: () => true,
        onError: (error, { ref }, attempt) =>
          runtime.log.warn({ application: placeOf(ref), attempt, error }, 'notice not written, will retry'),
        runtime,
        tuning: { concurrency },
        retry,
        isOwn: () => true,
      },
      signal,
    );
  }

  /** What an Application is to say of its agent; undefined: nothing. */
  messageFor(hub: Application): string | undefined {
    const { reporterOf, agents, mayTell } = this.#options;
    const agent = reporterOf(hub);
    const text = agent && agents.messageFor(agent, conditionMessage(hub, agentDisconnectedCondition));
    return agent === undefined || text === undefined || mayTell?.(hub, agent) === false ? undefined : text;
  }

  /** The Application, or what it is to say, has changed: it is written in its turn, if need be. */
  follow(hub: Application): void {
    if (this.#isDue(hub)) {
      this.#turns.receive({ ref: refOf(hub), id: String(++this.#ids) });
    }
  }

  #isDue(hub: Application): boolean {
    return (
      this.messageFor(hub) !== conditionMessage(hub, agentDisconnectedCondition) &&
      this.#options.isResponsible?.(hub) !== false
    );
  }

  async #take({ ref }: Turn, signal: AbortSignal): Promise<InboxOutcome> {
    const hub = this.#options.read(ref);
    if (hub === undefined || !this.#isDue(hub)) {
      return 'done';
    }
    const waitMs = this.#bucket.reserve();
    if (waitMs > 0) {
      await new Promise<void>((resolve) => this.#clock.after(waitMs, resolve));
      signal.throwIfAborted();
    }
    return this.#write(ref, signal);
  }
}
