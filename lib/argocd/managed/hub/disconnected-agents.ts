import type { Runtime } from '../../../sync/index.ts';

/** What {@link DisconnectedAgents} need. */
export interface DisconnectedAgentsOptions {
  /** For how long an agent may be without a connection; 0: for ever. */
  readonly graceMs: number;
  /** When an agent that is not connected was last; undefined when that is not known. */
  readonly lastSeen: (agent: string) => Date | undefined;
  /** Another message applies to this agent's Applications. */
  readonly changed: (agent: string) => void;
  readonly runtime: Pick<Runtime, 'clock'>;
}

/**
 * The agents that have been without a connection for longer than a grace period, and what is said of that on their
 * Applications. The message names a fixed instant, so that it stays the same, also over a restart of the principal.
 */
export class DisconnectedAgents {
  readonly #options: DisconnectedAgentsOptions;
  readonly #connected = new Set<string>();
  /** Agent → when its grace period ends; the first one is the earliest, because all have the same one. */
  readonly #due = new Map<string, number>();
  /** Agent → since when it has not been connected; undefined when that is not known. */
  readonly #overdue = new Map<string, Date | undefined>();
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(options: DisconnectedAgentsOptions) {
    this.#options = options;
  }

  /** The agents that are overdue. */
  names(): Iterable<string> {
    return this.#overdue.keys();
  }

  /** The agent belongs to the fleet. If it is not connected, its grace period begins. */
  expect(agent: string): void {
    const { graceMs, runtime } = this.#options;
    if (graceMs > 0 && !this.#connected.has(agent) && !this.#due.has(agent) && !this.#overdue.has(agent)) {
      this.#due.set(agent, runtime.clock.now() + graceMs);
      this.#wait();
    }
  }

  connected(agent: string): void {
    this.#forget(agent);
    this.#connected.add(agent);
    this.#options.changed(agent);
  }

  /** Counts only for an agent that was connected. */
  disconnected(agent: string): void {
    if (this.#connected.delete(agent)) {
      this.expect(agent);
    }
  }

  /** The agent has left the fleet. */
  forgetAgent(agent: string): void {
    this.#connected.delete(agent);
    this.#forget(agent);
    this.#options.changed(agent);
  }

  /**
   * What is to be said on an Application whose status this agent reports; undefined: nothing. In the grace period, what was
   * said of this agent before stays: the agent may have been away for long when the principal started.
   * @param present what is said there now
   */
  messageFor(agent: string, present: string | undefined): string | undefined {
    const subject = `agent ${agent} `;
    const kept = present?.startsWith(subject) === true ? present : undefined;
    if (!this.#overdue.has(agent)) {
      return this.#due.has(agent) ? kept : undefined;
    }
    const since = this.#overdue.get(agent);
    return since === undefined
      ? (kept ?? `${subject}has not connected to this principal: what is shown here may be out of date`)
      : `${subject}has not been connected since ${withoutFraction(since)}: what is shown here is as of then`;
  }

  /** Stops the timer. */
  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  #forget(agent: string): void {
    this.#due.delete(agent);
    this.#overdue.delete(agent);
  }

  /** One timer for all. Each turn takes one agent, since all may be due at the same time. */
  #wait(): void {
    const { clock } = this.#options.runtime;
    const [first] = this.#due;
    if (this.#cancel !== undefined || first === undefined || this.#isClosed) {
      return;
    }
    this.#cancel = clock.after(Math.max(0, first[1] - clock.now()), () => {
      this.#cancel = undefined;
      this.#next();
      this.#wait();
    });
  }

  #next(): void {
    const [first] = this.#due;
    if (first === undefined || first[1] > this.#options.runtime.clock.now()) {
      return;
    }
    const [agent] = first;
    this.#due.delete(agent);
    this.#overdue.set(agent, this.#options.lastSeen(agent));
    this.#options.changed(agent);
  }
}

function withoutFraction(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z');
}
