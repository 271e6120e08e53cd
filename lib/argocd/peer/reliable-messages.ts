import { Outbox, type ResourceKey, type Runtime, type Snapshot, type Tuning } from '../../sync/index.ts';
import type { Message, PeerConnection } from './messages.ts';

type Unaddressed<M> = M extends Message ? Omit<M, 'resourceId' | 'eventId'> : never;

/** A message without the ids that delivery gives it. */
export type ReliableMessage = Unaddressed<Message>;

interface Ids {
  readonly resourceId: string;
  readonly eventId: string;
}

/** A sent message: its name and id, its ids on the wire, and its ids in the outbox. */
interface UnderWay {
  readonly name: string;
  readonly id: string;
  readonly ids: Ids;
  readonly inOutbox: Ids;
}

/**
 * Messages that do not carry the state of a resource: resync requests, errors, reports of deletion. Each is sent until it
 * is acknowledged, across disconnections; one posted under the name of an earlier one replaces it.
 */
export class ReliableMessages {
  readonly #posted = new Map<string, Snapshot<(id: string) => ReliableMessage>>();
  readonly #outbox: Outbox<(id: string) => ReliableMessage>;
  /** Messages in flight by event id, and event ids by message name: at most one for each name. */
  readonly #underWay = new Map<string, UnderWay>();
  readonly #idOf = new Map<string, string>();
  readonly #newId: () => string;

  constructor({ clock, random, newId }: Pick<Runtime, 'clock' | 'random' | 'newId'>, tuning: Tuning = {}) {
    this.#newId = newId;
    this.#outbox = new Outbox<(id: string) => ReliableMessage>({
      source: { read: (key) => this.#posted.get(key.name) },
      // Without turns: to look at one takes no time, and one that is withdrawn leaves nothing behind.
      runtime: { clock, random },
      tuning: { resend: tuning.resend },
      sendsDeletes: false,
    });
  }

  /** Messages that are not acknowledged yet. */
  get pending(): number {
    return this.#outbox.pending;
  }

  /** Whether the message of this name waits for its acknowledgement. */
  has(name: string): boolean {
    return this.#posted.has(name);
  }

  /** Sends a message until the peer acknowledges it. `write` is called for each attempt, with the message's id, a UUID. */
  post(name: string, write: (id: string) => ReliableMessage): void {
    this.#posted.set(name, { uid: this.#newId(), version: '', digest: '', object: write });
    this.#outbox.changed(keyOf(name));
  }

  /** Withdraws a message that is not acknowledged yet. */
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

  /** True when a message was waiting for this acknowledgement. */
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

/** The ids of a message, in argocd-agent's forms: the same UUID twice, or those of the object that it is about. */
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
