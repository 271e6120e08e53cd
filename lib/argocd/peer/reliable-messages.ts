import { Outbox, type ResourceKey, type Runtime, type Snapshot, type Tuning } from '../../sync/index.ts';
import type { Message, PeerConnection } from './messages.ts';

type Unaddressed<M> = M extends Message ? Omit<M, 'resourceId' | 'eventId'> : never;

/** A message without the ids that delivery gives it. */
export type ReliableMessage = Unaddressed<Message>;

interface Ids {
  readonly resourceId: string;
  readonly eventId: string;
}

/** An errand that was sent: its name and id, the ids that the peer knows it by, and those that the outbox does. */
interface UnderWay {
  readonly name: string;
  readonly id: string;
  readonly ids: Ids;
  readonly inOutbox: Ids;
}

/**
 * Messages that are not the state of a resource: resync questions, errors, "it is gone here". Each is sent until it is
 * acknowledged, across disconnections; one posted under the name of an earlier one replaces it.
 */
export class ReliableMessages {
  readonly #posted = new Map<string, Snapshot<(id: string) => ReliableMessage>>();
  readonly #outbox: Outbox<(id: string) => ReliableMessage>;
  /** What is under way, by its event id, and that id by the errand's name: at most one for each name. */
  readonly #underWay = new Map<string, UnderWay>();
  readonly #idOf = new Map<string, string>();
  readonly #newId: () => string;

  constructor(runtime: Pick<Runtime, 'clock' | 'random' | 'newId'>, tuning: Tuning = {}) {
    this.#newId = runtime.newId;
    this.#outbox = new Outbox<(id: string) => ReliableMessage>({
      source: { read: (key) => this.#posted.get(key.name) },
      runtime,
      tuning: { resend: tuning.resend },
      sendsDeletes: false,
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

  /** Sends the errand, written anew each time it is sent, until the peer acknowledged it. `write` gets its id, a UUID. */
  post(name: string, write: (id: string) => ReliableMessage): void {
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
        const message = snapshot.object(snapshot.uid);
        const ids = idsOf(message, snapshot.uid);
        this.#underWay.delete(this.#idOf.get(name) ?? '');
        this.#idOf.set(name, ids.eventId);
        this.#underWay.set(ids.eventId, { name, id: snapshot.uid, ids, inOutbox: { resourceId, eventId } });
        return connection.send({ ...message, ...ids } as Message);
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
    const message = this.#underWay.get(eventId);
    if (message?.ids.resourceId !== resourceId) {
      return false;
    }
    this.#underWay.delete(eventId);
    this.#idOf.delete(message.name);
    if (this.#posted.get(message.name)?.uid === message.id) {
      this.#posted.delete(message.name);
    }
    return this.#outbox.acknowledged(message.inOutbox.resourceId, message.inOutbox.eventId);
  }

  /** Stops all timers. */
  close(): void {
    this.#outbox.close();
  }
}

/** The ids of an errand, in argocd-agent's forms: the same UUID twice, or those of the object that it is about. */
function idsOf(message: ReliableMessage, id: string): Ids {
  if (!('object' in message)) {
    return { resourceId: id, eventId: id };
  }
  const { name, uid = '', resourceVersion = '' } = message.object.metadata;
  return { resourceId: `${name}_${uid}`, eventId: `${name}_${uid}_${resourceVersion}` };
}

function keyOf(name: string): ResourceKey {
  return { kind: 'ReliableMessage', namespace: '', name };
}
