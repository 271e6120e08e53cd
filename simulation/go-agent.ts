import {
  type Application,
  type ApplicationMessage,
  annotations,
  isSkipped,
  type Message,
  type PeerConnection,
  type ResyncMessage,
  resourceListChecksum,
  type SyncStats,
  specChecksum,
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

type Outgoing = Omit<ApplicationMessage, 'resourceId' | 'eventId'> | Omit<ResyncMessage, 'resourceId' | 'eventId'>;

/**
 * An autonomous agent that speaks as argocd-agent's does: every change is an event, ordered per `resourceid` only, resent
 * until it is acknowledged; messages are processed one by one, and acknowledged also when they fail, unless the API
 * server did not answer. It knows none of the extensions.
 */
export class SimulatedGoAgent implements AgentProgram {
  readonly #store: ClusterStore<Application>;
  readonly #time: VirtualTime;
  readonly #dice: SeededDice;
  readonly #newId: () => string;
  readonly #cache = new Map<string, Application>();
  readonly #lines = new Map<string, Line>();
  readonly #selfWritten = new Set<string>();
  readonly #inbox: Message[] = [];
  #isWorking = false;
  #connection: PeerConnection | undefined;
  #hasResynced = false;
  #isTicking = false;

  constructor(options: { store: ClusterStore<Application>; time: VirtualTime; dice: SeededDice; newId: () => string }) {
    this.#store = options.store;
    this.#time = options.time;
    this.#dice = options.dice;
    this.#newId = options.newId;
  }

  start(signal: AbortSignal): void {
    const unsubscribe = this.#store.subscribe((change) => this.#changed(admitted(change)));
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
      this.#send({ target: 'resourceResync', type: 'request-resource-resync', payload: {} });
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
        await this.#process(message);
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

  async #process(message: Message): Promise<void> {
    if (message.target === 'resourceResync') {
      this.#resync(message);
    } else if (message.target === 'application' && message.type !== 'error') {
      const { name, annotations: marks } = message.object.metadata;
      const ref = { namespace: agentNamespace, name };
      const refresh = marks?.[annotations.refresh];
      if (message.type === 'spec-update' && refresh !== undefined) {
        await this.#write(ref, { metadata: { annotations: { [annotations.refresh]: refresh } } });
      } else if (message.type === 'set-operation') {
        await this.#write(ref, { operation: message.object.operation });
      } else if (
        message.type === 'terminate-operation' &&
        this.#cache.get(name)?.status?.operationState !== undefined
      ) {
        await this.#store.patch(ref, { status: { operationState: { phase: 'Terminating' } } });
      }
    }
  }

  /** Its own write is not sent; what Argo CD makes of it is. */
  async #write(ref: { namespace: string; name: string }, patch: object): Promise<void> {
    const written = await this.#store.patch(ref, patch as Readonly<Record<string, unknown>>);
    this.#selfWritten.add(written.metadata.resourceVersion ?? '');
  }

  #resync(message: ResyncMessage): void {
    if (message.type === 'request-update' && message.payload.kind === 'Application') {
      const { name, uid, checksum } = message.payload;
      const local = this.#cache.get(name);
      if (local === undefined) {
        const metadata = { namespace: agentNamespace, name, uid, resourceVersion: '' };
        this.#send({ target: 'application', type: 'delete', object: { metadata, spec: {} } });
      } else if (specChecksum(local.spec) !== checksum) {
        this.#send({ target: 'application', type: 'spec-update', object: local });
      }
    } else if (message.type === 'request-synced-resource-list') {
      const all = [...this.#cache.values()].map(({ metadata: { name, uid = '' } }) => ({
        kind: 'Application',
        name,
        uid,
      }));
      if (all.length > 0 && resourceListChecksum(all) !== message.payload.checksum) {
        for (const { name, uid } of all) {
          const payload = { kind: 'Application', name, uid, namespace: agentNamespace } as const;
          this.#send({ target: 'resourceResync', type: 'response-synced-resource', payload });
        }
      }
    }
  }

  #changed({ old, now }: StoreChange<Application>): void {
    const object = now ?? old;
    if (object === undefined) {
      return;
    }
    const { name, uid, resourceVersion = '' } = object.metadata;
    const known = this.#cache.get(name);
    if (now === undefined) {
      this.#cache.delete(name);
      if (known !== undefined) {
        this.#send({ target: 'application', type: 'delete', object });
      }
      return;
    }
    this.#cache.set(name, now);
    if (known?.metadata.uid !== uid) {
      this.#send({ target: 'application', type: 'create', object });
    } else if (known?.metadata.resourceVersion !== resourceVersion && !this.#selfWritten.has(resourceVersion)) {
      this.#send({ target: 'application', type: 'spec-update', object });
    }
  }

  #send(event: Outgoing): void {
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
