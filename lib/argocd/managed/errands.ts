import { type Backoff, type Clock, Outbox, type ResourceKey, type Snapshot } from '../../sync/index.ts';
import type { Message, PeerConnection } from './messages.ts';

type Unaddressed<M> = M extends Message ? Omit<M, 'resourceId' | 'eventId'> : never;

/** A message without the ids that delivery gives it. */
export type Errand = Unaddressed<Message>;

/** An errand that was sent: its name, and the ids that the outbox knows it by. */
interface UnderWay {
  readonly name: string;
  readonly resourceId: string;
  readonly eventId: string;
}

/**
 * Messages that are not the state of a resource: resync questions, errors, "it is gone here". Each is sent until it is
 * acknowledged, across disconnections; one posted under the name of an earlier one replaces it.
 */
export class Errands {
  readonly #posted = new Map<string, Snapshot<() => Errand>>();
  readonly #outbox: Outbox<() => Errand>;
  readonly #waiting = new Set<() => void>();
  /** What is under way, by its id on the wire, and that id by the errand's name: at most one for each name. */
  readonly #underWay = new Map<string, UnderWay>();
  readonly #idOf = new Map<string, string>();
  readonly #newId: () => string;

  constructor(options: { clock: Clock; random: () => number; newId: () => string; resend?: Backoff | undefined }) {
    this.#newId = options.newId;
    this.#outbox = new Outbox<() => Errand>({
      source: { read: (key) => this.#posted.get(key.name) },
      clock: options.clock,
      random: options.random,
      sendsDeletes: false,
      ...(options.resend === undefined ? {} : { resend: options.resend }),
      onIdle: () => this.#wake(),
    });
  }

  /** Errands that are not acknowledged. */
  get pending(): number {
    return this.#outbox.pending;
  }

  /** Whether the errand of this name waits for its acknowledgement. */
  has(name: string): boolean {
    return this.#posted.has(name);
  }

  /** Sends the errand, written anew each time it is sent, until the peer acknowledged it. */
  post(name: string, write: () => Errand): void {
    this.#posted.set(name, { uid: this.#newId(), version: '', digest: '', object: write });
    this.#outbox.changed(keyOf(name));
  }

  /** Takes an errand back if it is not acknowledged yet. */
  withdraw(name: string): void {
    if (this.#posted.delete(name)) {
      this.#outbox.changed(keyOf(name));
    }
  }

  connected(connection: PeerConnection): void {
    this.#outbox.connected({
      send: (delivery) => {
        if (!('snapshot' in delivery)) {
          return true;
        }
        const { key, snapshot, resourceId, eventId } = delivery;
        const { name } = key;
        const id = snapshot.uid;
        this.#underWay.delete(this.#idOf.get(name) ?? '');
        this.#idOf.set(name, id);
        this.#underWay.set(id, { name, resourceId, eventId });
        // As argocd-agent does it: the same fresh UUID as both ids.
        return connection.send({ ...snapshot.object(), resourceId: id, eventId: id } as Message);
      },
    });
  }

  disconnected(): void {
    this.#underWay.clear();
    this.#idOf.clear();
    this.#outbox.disconnected();
  }

  writable(): void {
    this.#outbox.writable();
  }

  /** True when an errand was waiting for this acknowledgement. */
  acknowledged(resourceId: string, eventId: string): boolean {
    const errand = resourceId === eventId ? this.#underWay.get(resourceId) : undefined;
    if (errand === undefined) {
      return false;
    }
    this.#underWay.delete(resourceId);
    this.#idOf.delete(errand.name);
    if (this.#posted.get(errand.name)?.uid === resourceId) {
      this.#posted.delete(errand.name);
    }
    return this.#outbox.acknowledged(errand.resourceId, errand.eventId);
  }

  /** Resolves when every errand posted so far is acknowledged; rejects when aborted. */
  async allDelivered(signal: AbortSignal): Promise<void> {
    if (this.pending === 0) {
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const wake = () => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      const abort = () => {
        this.#waiting.delete(wake);
        reject(signal.reason);
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', abort, { once: true });
    });
  }

  /** Stops all timers. */
  close(): void {
    this.#outbox.close();
  }

  #wake(): void {
    for (const wake of this.#waiting) {
      wake();
    }
    this.#waiting.clear();
  }
}

function keyOf(name: string): ResourceKey {
  return { kind: 'Errand', namespace: '', name };
}
