import type { LabelTest } from '../../base/index.ts';
import {
  type ObjectRef,
  Outbox,
  type ResourceKey,
  type Runtime,
  refOf,
  type Snapshot,
  type Store,
  type StoreChange,
  type Tuning,
  View,
} from '../../sync/index.ts';
import { withoutOwner } from '../owner-marks.ts';
import type { HubKind, SourceSync } from '../peer/kind-sync.ts';
import type { Message } from '../peer/messages.ts';
import { SourcePeer } from '../peer/source-peer.ts';
import { type StateEvent, stateMessage } from '../peer/state-message.ts';
import { forTransfer, replicaDigest } from './copy.ts';
import type { ReplicaKind, ReplicaObject } from './kinds.ts';

/** How a {@link Publisher} works. */
export interface PublisherOptions<T extends ReplicaObject> {
  readonly kind: ReplicaKind<T>;
  readonly store: Store<T>;
  /** The namespace of the objects that are sent; all others are ignored. */
  readonly namespace: string;
  /** The principal's UID, which every message carries. */
  readonly principalUid?: string;
  /** Selects objects by their labels, where the store does not. Default: all. */
  readonly selects?: LabelTest;
  /** Whether this side has an Application that Argo CD's instance label would name so. Default: it has none. */
  readonly isInstance?: (instance: string) => boolean;
  /** Whether an object can be meant for any agent at all. Default: yes. */
  readonly concerns?: (object: T) => boolean;
  /** The object as an agent should have it; undefined when it should not have it. Called again only after a change. */
  readonly forAgent: (object: T, agent: string) => T | undefined;
  /** What is sent of an object that an agent should have. Default: {@link forTransfer}. */
  readonly asSent?: (object: T) => T;
  /**
   * Whether states are always sent as `spec-update`, which creates what the peer lacks. For peers that refuse `create` of
   * what they have. Default: no.
   */
  readonly onlyUpdates?: boolean;
  /** What the receiver stores of an object that it is sent; its checksums are of that. Default: the object as sent. */
  readonly asHeld?: (sent: T, agent: string) => T;
  /** This side's name of an object that a peer reports. Default: the same name. */
  readonly ownName?: (sourceName: string, agent: string) => string;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

interface Peer<T> {
  readonly outbox: Outbox<T>;
  readonly sync: SourceSync;
  /** What the peer should have of each object; null: nothing. */
  snapshots: WeakMap<object, Snapshot<T> | null>;
  /**
   * How often objects were evaluated again. A peer that has seen an event ignores others with its id: what an unchanged object
   * is for this peer now must not have the id of what it was.
   */
  turn: number;
}

/** Keeps every peer's copies equal to the objects that it should have. */
export class Publisher<T extends ReplicaObject> implements HubKind<SourceSync> {
  readonly #options: PublisherOptions<T>;
  readonly #view: View<T>;
  readonly #peers = new Map<string, Peer<T>>();

  constructor(options: PublisherOptions<T>) {
    this.#options = options;
    this.#view = new View({
      clock: options.runtime.clock,
      changed: (ref, change) => this.#changed(ref, change),
      // This side creates none of them, so every known object has been in the cache.
      doubted: (ref) => options.runtime.log.debug({ [options.kind.field]: ref.name }, 'not in the cache'),
    });
  }

  start(signal: AbortSignal): void {
    const unfollow = this.#view.follow(this.#concerning(this.#options.store));
    signal.addEventListener('abort', () => {
      unfollow();
      for (const { outbox } of this.#peers.values()) {
        outbox.close();
      }
    });
  }

  syncFor(agent: string): SourceSync {
    return this.#peer(agent).sync;
  }

  forgetAgent(agent: string): void {
    this.#peers.get(agent)?.outbox.close();
    this.#peers.delete(agent);
  }

  /**
   * Evaluates objects again after a change of something else that decides who gets them, and how.
   * @param agent the only agent for which they are evaluated; undefined: all
   */
  reconsider(concerns: (object: T) => boolean, agent?: string): void {
    const peers = [...this.#peers].flatMap(([name, peer]) => (agent === undefined || name === agent ? [peer] : []));
    if (peers.length === 0) {
      return;
    }
    for (const object of this.#view.values()) {
      if (concerns(object)) {
        for (const peer of peers) {
          peer.turn++;
          peer.snapshots.delete(object);
          peer.outbox.changed(this.#keyOf(object.metadata.name));
        }
      }
    }
  }

  /**
   * The store without objects that are meant for no agent. Every agent goes through all known objects when it connects,
   * and a hub has a cluster Secret per agent, which is sent to nobody.
   */
  #concerning(store: Store<T>): Pick<Store<T>, 'subscribe'> {
    const { concerns } = this.#options;
    if (concerns === undefined) {
      return store;
    }
    return {
      subscribe: (listener) =>
        store.subscribe((change) => {
          const object = change.now ?? change.old;
          if (object !== undefined && (concerns(object) || this.#view.get(refOf(object)) !== undefined)) {
            listener(change);
          }
        }),
    };
  }

  #changed(ref: ObjectRef, { old, now }: StoreChange<T>): void {
    const { concerns = () => true } = this.#options;
    if (!(old !== undefined && concerns(old)) && !(now !== undefined && concerns(now))) {
      return;
    }
    for (const { outbox } of this.#peers.values()) {
      outbox.changed(this.#keyOf(ref.name));
    }
  }

  #peer(agent: string): Peer<T> {
    let peer = this.#peers.get(agent);
    if (peer === undefined) {
      peer = this.#newPeer(agent);
      this.#peers.set(agent, peer);
      for (const object of this.#view.values()) {
        peer.outbox.changed(this.#keyOf(refOf(object).name));
      }
    }
    return peer;
  }

  #newPeer(name: string): Peer<T> {
    const { kind, ownName } = this.#options;
    let agent = name;
    const read = (key: ResourceKey) => this.#read(key, agent, peer);
    const outbox = new Outbox<T>({
      runtime: this.#options.runtime,
      tuning: this.#options.tuning,
      source: { read },
    });
    const sync = new SourcePeer<T>({
      kind: kind.kind,
      states: outbox,
      read,
      keys: () => Array.from(this.#view.values(), ({ metadata }) => this.#keyOf(metadata.name)),
      count: () => this.#view.size,
      keyOf: (reported) => this.#keyOf(ownName?.(reported.name, agent) ?? reported.name),
      hasChecksum: ({ object }, checksum) => this.#isChecksumOf(checksum, object, agent),
      // argocd-agent assumes the same of objects whose checksum is equal.
      assumed: ({ digest }) => digest,
      connected: (info) => {
        if (info.agent !== '' && info.agent !== agent) {
          agent = info.agent;
          peer.snapshots = new WeakMap();
        }
      },
      start: (connection) =>
        outbox.connected({
          send: (delivery) => delivery.type === 'intent' || connection.send(this.#messageFor(delivery)),
        }),
      peer: { agent: name },
      runtime: this.#options.runtime,
    });
    const peer: Peer<T> = { outbox, sync, snapshots: new WeakMap(), turn: 0 };
    return peer;
  }

  #isChecksumOf(checksum: string | null, sent: T, agent: string): boolean {
    const { kind, asHeld } = this.#options;
    return (
      checksum === kind.checksum(sent) || (asHeld !== undefined && checksum === kind.checksum(asHeld(sent, agent)))
    );
  }

  #read(key: ResourceKey, agent: string, { snapshots, turn }: Peer<T>): Snapshot<T> | undefined {
    const object = this.#view.get(key);
    if (object === undefined) {
      return undefined;
    }
    let snapshot = snapshots.get(object);
    if (snapshot === undefined) {
      snapshot = this.#snapshot(object, agent, turn) ?? null;
      snapshots.set(object, snapshot);
    }
    return snapshot ?? undefined;
  }

  #snapshot(object: T, agent: string, turn: number): Snapshot<T> | undefined {
    const { forAgent, asSent = forTransfer, asHeld, kind, selects = () => true } = this.#options;
    const { isInstance = () => false } = this.#options;
    const { uid = '' } = object.metadata;
    const version = this.#view.versionOf(object);
    // An object that is being deleted exists until its finalizers are gone, and so do its copies.
    const its = selects(object.metadata.labels ?? {}) ? forAgent(object, agent) : undefined;
    if (its === undefined) {
      return undefined;
    }
    const sent = withoutOwner(its, isInstance);
    return {
      uid,
      version: turn === 0 ? version : `${version}.${turn}`,
      digest: replicaDigest(kind, asHeld?.(sent, agent) ?? sent),
      object: asSent(sent),
    };
  }

  #messageFor(event: StateEvent<T>): Message {
    const { kind, principalUid, onlyUpdates } = this.#options;
    const common = { target: kind.target, ...(principalUid === undefined ? {} : { principalUid }) };
    const metadata = { name: event.key.name };
    const state = onlyUpdates && event.type === 'create' ? { ...event, type: 'update' as const } : event;
    return stateMessage(state, common, kind.content({ metadata, spec: {} } as unknown as T), this.#sourceOf(event));
  }

  /** What a peer should not have any more, if it is still on this side. */
  #sourceOf(event: StateEvent<T>): ReplicaObject | undefined {
    const source = this.#view.get(event.key);
    return event.type === 'delete' && source?.metadata.uid === event.uid ? source : undefined;
  }

  #keyOf(name: string): ResourceKey {
    return { kind: this.#options.kind.kind, namespace: this.#options.namespace, name };
  }
}
