import { after } from '../../lib/base/index.ts';
import type { FleetReporter } from '../../lib/ops/index.ts';

/** An agent that is back within this time, as after an update, was never lost. */
const lostAfterMs = 15_000;

/** Reports which agents connect and which are lost. */
export class Presence {
  readonly #events: FleetReporter;
  readonly #lostAfterMs: number;
  readonly #leaving = new Map<string, () => void>();

  constructor(events: FleetReporter, afterMs = lostAfterMs) {
    this.#events = events;
    this.#lostAfterMs = afterMs;
  }

  /** The agent has a stream. */
  connected(agent: string, mode: string, version: string): void {
    if (this.#forget(agent)) {
      return;
    }
    this.#events.report('agent-connected', eventSubject(agent), { agent, mode, version });
  }

  /** The agent has no stream any more. */
  disconnected(agent: string): void {
    this.#forget(agent);
    const since = new Date().toISOString();
    const lost = () => {
      this.#leaving.delete(agent);
      this.#events.report('agent-lost', eventSubject(agent), { agent, since });
    };
    this.#leaving.set(agent, after(this.#lostAfterMs, lost, { unref: true }));
  }

  /** Reports nothing more. */
  close(): void {
    for (const agent of [...this.#leaving.keys()]) {
      this.#forget(agent);
    }
  }

  #forget(agent: string): boolean {
    this.#leaving.get(agent)?.();
    return this.#leaving.delete(agent);
  }
}

/** The subject of an event about an agent or its cluster. */
export function eventSubject(agent: string): string {
  return `agents/${agent}`;
}
