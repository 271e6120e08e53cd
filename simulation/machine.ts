import type { Clock } from '../lib/sync/index.ts';
import type { VirtualTime } from './virtual-time.ts';

interface Event {
  run: (() => void) | undefined;
}

/**
 * Where one program runs. Everything that happens to the program is an event of its machine: a stopped machine's events wait until
 * it goes on, and those of a machine that died never come.
 */
export class Machine implements Clock {
  readonly #time: VirtualTime;
  readonly #died = new AbortController();
  readonly #reached = new Set<() => void>();
  #held: Event[] | undefined;
  #isCutOff = false;
  /** Requests that the machine has sent are executed though it died. */
  readonly leavesRequests: boolean;

  constructor(time: VirtualTime, { leavesRequests = false }: { readonly leavesRequests?: boolean } = {}) {
    this.#time = time;
    this.leavesRequests = leavesRequests;
  }

  /** Aborted when the machine dies. */
  get died(): AbortSignal {
    return this.#died.signal;
  }

  get isDead(): boolean {
    return this.#died.signal.aborted;
  }

  get isStopped(): boolean {
    return this.#held !== undefined;
  }

  /** No API server is in its reach. */
  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  now(): number {
    return this.#time.now();
  }

  after(ms: number, run: () => void): () => void {
    const event: Event = { run };
    const cancel = this.#time.after(ms, () => this.#happen(event), this);
    return () => {
      event.run = undefined;
      cancel();
    };
  }

  /** From now on nothing happens on it. */
  stop(): void {
    this.#held ??= [];
  }

  /** What should have happened in the meantime happens now. */
  goOn(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const event of held) {
      this.#time.after(0, () => this.#happen(event), this);
    }
  }

  /** As `kill -9`. */
  die(): void {
    this.#died.abort();
    this.#held = [];
    this.#reached.clear();
  }

  /** From now on requests reach no API server, and no answer or watch event comes back. */
  cutOff(): void {
    this.#isCutOff = true;
  }

  /** The connection to the API server is back. */
  reconnect(): void {
    this.#isCutOff = false;
    const waiting = [...this.#reached];
    this.#reached.clear();
    for (const go of waiting) {
      go();
    }
  }

  /** Calls back when the connection to the API server is back, unless it is called off. */
  onReconnect(go: () => void): () => void {
    this.#reached.add(go);
    return () => this.#reached.delete(go);
  }

  #happen(event: Event): void {
    if (this.#held !== undefined) {
      this.#held.push(event);
      return;
    }
    event.run?.();
  }
}
