import {
  type Application,
  type ApplicationMessage,
  isSkipped,
  type Message,
  type PeerConnection,
  type ResyncMessage,
  type SyncStats,
} from '../lib/argocd/index.ts';
import { refOf, type StoreChange } from '../lib/sync/index.ts';
import { Refused } from './cluster.ts';
import type { ClusterStore } from './cluster-store.ts';
import type { SeededDice } from './dice.ts';
import { agentNamespace } from './layout.ts';
import type { AgentProgram } from './network.ts';
import type { VirtualTime } from './virtual-time.ts';

/** The events of one `resourceid` to send: one at a time, the others wait. */
interface Line {
  sent: Message | undefined;
  dueAt: number;
  attempts: number;
  readonly unsent: Message[];
}

/** An event that has no ids yet. */
export type Outgoing =
  | Omit<ApplicationMessage, 'resourceId' | 'eventId'>
  | Omit<ResyncMessage, 'resourceId' | 'eventId'>;

/** What an agent of either mode needs of its world. */
export interface GoAgentOptions {
  readonly store: ClusterStore<Application>;
  readonly time: VirtualTime;
  readonly dice: SeededDice;
  readonly newId: () => string;
}

/**
 * An agent that speaks as argocd-agent's does: events are ordered per `resourceid` only, and resent until they are acknowledged;
 * messages are processed one by one, and acknowledged also when they fail, unless the API server did not answer. It knows none
 * of the extensions.
 */
export abstract class SimulatedGoAgent implements AgentProgram {
  protected readonly store: ClusterStore<Application>;
  /** What its informer has, by name. */
  protected readonly cache = new Map<string, Application>();
  readonly #time: VirtualTime;
  readonly #dice: SeededDice;
  readonly #newId: () => string;
  readonly #lines = new Map<string, Line>();
  readonly #selfWritten = new Set<string>();
  readonly #inbox: Message[] = [];
  #isWorking = false;
  #connection: PeerConnection | undefined;
  #hasResynced = false;
  #isTicking = false;

  constructor({ store, time, dice, newId }: GoAgentOptions) {
    this.store = store;
    this.#time = time;
    this.#dice = dice;
    this.#newId = newId;
  }

  /** Sends what begins the comparison with the principal, on the first connection. */
  protected abstract resync(): void;

  /** Carries out a message of the principal. */
  protected abstract process(message: Message): Promise<void>;

  /** Its informer shows a change. */
  protected abstract changed(change: StoreChange<Application>): void;

  start(signal: AbortSignal): void {
    const unsubscribe = this.store.subscribe((change) => this.changed(admitted(change)));
    signal.addEventListener('abort', () => {
      unsubscribe();
      this.#connection = undefined;
      this.#lines.clear();
    });
  }

  connected(connection: PeerConnection): void {
    this.#connection = connection;
    for (const line of this.#lines.values()) {
      line.dueAt = this.#time.now();
    }
    if (!this.#hasResynced) {
      this.#hasResynced = true;
      this.resync();
    }
    this.#tick();
  }

  disconnected(connection: PeerConnection): void {
    if (this.#connection === connection) {
      this.#connection = undefined;
    }
  }

  writable(): void {
    this.#tick();
  }

  acknowledged({ resourceId, eventId }: Message): void {
    const line = this.#lines.get(resourceId);
    if (line?.sent?.eventId === eventId) {
      line.sent = undefined;
      line.attempts = 0;
      line.dueAt = 0;
    }
    this.#tick();
  }

  receive(message: Message): void {
    this.#inbox.push(message);
    if (!this.#isWorking) {
      this.#isWorking = true;
      void this.#work();
    }
  }

  stats(): SyncStats {
    const pending = [...this.#lines.values()].filter(({ sent, unsent }) => sent !== undefined || unsent.length > 0);
    return { pending: pending.length, inFlight: 0, queued: this.#inbox.length, retrying: 0 };
  }

  async #work(): Promise<void> {
    for (let message = this.#inbox[0]; message !== undefined; message = this.#inbox[0]) {
      const from = this.#connection;
      let isRetryable = false;
      try {
        await this.process(message);
      } catch (error) {
        isRetryable = !(error instanceof Refused);
      }
      this.#inbox.shift();
      if (!isRetryable && from === this.#connection) {
        from?.acknowledge(message);
      }
    }
    this.#isWorking = false;
  }

  /** Its own write is not sent; what others make of it is. */
  protected wrote({ metadata: { resourceVersion = '' } }: Application): void {
    this.#selfWritten.add(resourceVersion);
  }

  protected isOwnWrite({ metadata: { resourceVersion = '' } }: Application): boolean {
    return this.#selfWritten.has(resourceVersion);
  }

  protected send(event: Outgoing): void {
    const metadata = 'object' in event ? event.object.metadata : { name: '', uid: this.#newId(), resourceVersion: '' };
    const resourceId = `${metadata.name}_${metadata.uid}`;
    const message = { ...event, resourceId, eventId: `${resourceId}_${metadata.resourceVersion}` } as Message;
    const line = this.#lines.get(resourceId) ?? { sent: undefined, dueAt: 0, attempts: 0, unsent: [] };
    this.#lines.set(resourceId, line);
    if (message.type === 'delete') {
      line.sent = undefined;
      line.unsent.length = 0;
      line.dueAt = 0;
    } else if (message.type === 'spec-update') {
      line.unsent.splice(0, line.unsent.length, ...line.unsent.filter(({ type }) => type !== 'spec-update'));
    }
    line.unsent.push(message);
    this.#tick();
  }

  /** Looks at all lines in any order, a tenth of a second after the last time, while there is something to send. */
  #tick(): void {
    if (!this.#isTicking) {
      this.#isTicking = true;
      this.#time.after(100, () => {
        this.#isTicking = false;
        this.#sendDue();
      });
    }
  }

  #sendDue(): void {
    const lines = [...this.#lines].sort(() => this.#dice.roll() - 0.5);
    let next = Number.POSITIVE_INFINITY;
    for (const [id, line] of lines) {
      if (this.#connection === undefined) {
        return;
      }
      if (line.sent === undefined && line.unsent.length === 0) {
        this.#lines.delete(id);
        continue;
      }
      if (line.sent === undefined || line.dueAt <= this.#time.now()) {
        line.sent ??= line.unsent.shift();
        line.attempts++;
        const wait = Math.min(120_000, 5_000 * 4 ** (line.attempts - 1));
        line.dueAt = this.#time.now() + wait * (1 + this.#dice.roll());
        if (line.sent !== undefined && !this.#connection.send(line.sent)) {
          line.dueAt = this.#time.now() + 100;
        }
      }
      next = Math.min(next, line.dueAt);
    }
    if (next < Number.POSITIVE_INFINITY) {
      this.#time.after(Math.max(0, next - this.#time.now()), () => this.#tick());
    }
  }
}

/** What the informer lets through. */
function admitted({ old, now }: StoreChange<Application>): StoreChange<Application> {
  const admit = (object: Application | undefined) =>
    object === undefined || isSkipped(object) || refOf(object).namespace !== agentNamespace ? undefined : object;
  return { old: admit(old), now: admit(now) };
}
