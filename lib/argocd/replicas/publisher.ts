import type { LabelTest } from '../../base/index.ts';
import {
  type ObjectRef,
  type OutboundEvent,
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
import type { ConnectedPrincipal, HubKind, Listed, SourceSync } from '../peer/kind-sync.ts';
import type { Message, PeerConnection, RequestUpdate } from '../peer/messages.ts';
import { SourceLink } from '../peer/source-link.ts';
import { forTransfer, replicaDigest } from './copy.ts';
import type { ReplicaKind, ReplicaObject } from './kinds.ts';

/** How a {@link Publisher} works. */
export interface PublisherOptions<T extends ReplicaObject> {
  readonly kind: ReplicaKind<T>;
  readonly store: Store<T>;
  /** The one namespace that counts. */
  readonly namespace: string;
  /** Stamped on what is sent about objects. */
  readonly principalUid?: string;
  /** Which objects take part, by their labels, where the store does not see to that. */
  readonly selects?: LabelTest;
  /** Whether an object has to do with anybody at all. */
  readonly concerns?: (object: T) => boolean;
  /** The object as an agent should have it, undefined when it should not. Asked again only when something changed. */
  readonly forAgent: (object: T, agent: string) => T | undefined;
  /** What the receiver makes of what it is sent, where that is known; it says its checksums of that. */
  readonly asHeld?: (sent: T, agent: string) => T;
  /** This side's name of what a peer speaks of. */
  readonly ownName?: (sourceName: string, agent: string) => string;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

interface Peer<T> {
  readonly outbox: Outbox<T>;
  readonly sync: SourceSync;
  /** What was found out about an object; null: the peer should not have it. */
  snapshots: WeakMap<object, Snapshot<T> | null>;
  /**
   * How often an object that is still there was taken from the peer, by UID. It may come back without having changed, and
   * must not pass for a copy of the message by which it came before.
   */
  readonly withdrawals: Map<string, number>;
}

/** Unknown copies of one peer that are being taken away at once. A peer that claims more is not heard. */
const mostStrays = 10_000;

/** Sends every peer the objects that it should have, as they are now. */
export class Publisher<T extends ReplicaObject> implements HubKind<SourceSync> {
  readonly #options: PublisherOptions<T>;
  readonly #view: View<T>;
  readonly #peers = new Map<string, Peer<T>>();

  constructor(options: PublisherOptions<T>) {
    this.#options = options;
    this.#view = new View({
      clock: options.runtime.clock,
      changed: (ref, change) => this.#changed(ref, change),
      // Nothing is created here, so what is known was in the cache.
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

  /** Something else than the objects changed that says who gets these: they are looked at again. */
  reconsider(concerns: (object: T) => boolean): void {
    for (const object of this.#view.values()) {
      if (concerns(object)) {
        for (const { outbox, snapshots } of this.#peers.values()) {
          snapshots.delete(object);
          outbox.changed(this.#keyOf(object.metadata.name));
        }
      }
    }
  }

  /**
   * The store without what never had to do with anybody. Each agent goes through what is known when it connects, and a
   * hub has a Secret for each agent, none of which goes anywhere.
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
    for (const { outbox, withdrawals } of this.#peers.values()) {
      if (old !== undefined && old.metadata.uid !== now?.metadata.uid) {
        withdrawals.delete(old.metadata.uid ?? '');
      }
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
    const link = new SourceLink([outbox], (connection) =>
      outbox.connected({
        send: (delivery) => {
          if (delivery.type === 'delete') {
            this.#withdrawn(delivery.key, delivery.uid, peer);
          }
          return connection.send(this.#messageFor(delivery));
        },
      }),
    );
    const sync: SourceSync = {
      kind: kind.kind,
      connected: (to: PeerConnection, info: ConnectedPrincipal) => {
        if (info.agent !== '' && info.agent !== agent) {
          agent = info.agent;
          peer.snapshots = new WeakMap();
        }
        link.connected(to);
      },
      disconnected: () => link.disconnected(),
      open: () => link.open(),
      writable: () => outbox.writable(),
      acknowledged: ({ resourceId, eventId }) => outbox.acknowledged(resourceId, eventId),
      receive: () => false,
      peerReported: (update) =>
        this.#holds(update, this.#keyOf(ownName?.(update.name, agent) ?? update.name), outbox, read, agent),
      peerLacks: (id) => outbox.peerHolds(this.#keyOf(id), undefined),
      list: () => this.#list(read),
      stats: () => ({ pending: outbox.pending, inFlight: outbox.inFlight, queued: 0, retrying: 0 }),
      close: () => outbox.close(),
    };
    const peer: Peer<T> = { outbox, sync, snapshots: new WeakMap(), withdrawals: new Map() };
    return peer;
  }

  #holds(
    { name, uid, digest, checksum }: RequestUpdate,
    key: ResourceKey,
    outbox: Outbox<T>,
    read: (key: ResourceKey) => Snapshot<T> | undefined,
    agent: string,
  ): string | undefined {
    const now = read(key);
    if (now === undefined && outbox.pending >= mostStrays) {
      this.#options.runtime.log.debug({ agent, [this.#options.kind.field]: name }, 'too many strange copies at once');
      return undefined;
    }
    if (uid === '') {
      outbox.peerHolds(key, undefined);
    } else if (digest !== undefined) {
      outbox.peerHolds(key, { uid, digest });
    } else if (now?.uid === uid && this.#isChecksumOf(checksum, now.object, agent)) {
      const held = outbox.held(key);
      if (held?.uid !== uid || held.digest !== now.digest) {
        outbox.peerHolds(key, { uid, digest: now.digest });
      }
    } else {
      outbox.peerHolds(key, { uid });
    }
    // What it should not have now it may be meant to have by the time it has told everything.
    return now === undefined && !outbox.knows(key) ? undefined : key.name;
  }

  #isChecksumOf(checksum: string | null, sent: T, agent: string): boolean {
    const { kind, asHeld } = this.#options;
    return (
      checksum === kind.checksum(sent) || (asHeld !== undefined && checksum === kind.checksum(asHeld(sent, agent)))
    );
  }

  #list(read: (key: ResourceKey) => Snapshot<T> | undefined): Listed[] {
    const { namespace } = this.#options;
    const listed = [];
    for (const { metadata } of this.#view.values()) {
      const uid = read(this.#keyOf(metadata.name))?.uid;
      if (uid !== undefined) {
        listed.push({ id: metadata.name, name: metadata.name, namespace, uid });
      }
    }
    return listed;
  }

  #withdrawn(key: ResourceKey, uid: string, { snapshots, withdrawals }: Peer<T>): void {
    const object = this.#view.get(key);
    if (object?.metadata.uid === uid) {
      withdrawals.set(uid, (withdrawals.get(uid) ?? 0) + 1);
      snapshots.delete(object);
    }
  }

  #read(key: ResourceKey, agent: string, { snapshots, withdrawals }: Peer<T>): Snapshot<T> | undefined {
    const object = this.#view.get(key);
    if (object === undefined) {
      return undefined;
    }
    let snapshot = snapshots.get(object);
    if (snapshot === undefined) {
      snapshot = this.#snapshot(object, agent, withdrawals.get(object.metadata.uid ?? '')) ?? null;
      snapshots.set(object, snapshot);
    }
    return snapshot ?? undefined;
  }

  #snapshot(object: T, agent: string, withdrawals: number | undefined): Snapshot<T> | undefined {
    const { forAgent, asHeld, kind, selects = () => true } = this.#options;
    const { uid = '', resourceVersion: version = '' } = object.metadata;
    // One that is being deleted is there until its finalizers are answered, and so are its copies.
    const sent = selects(object.metadata.labels ?? {}) ? forAgent(object, agent) : undefined;
    if (sent === undefined) {
      return undefined;
    }
    return {
      uid,
      version: withdrawals === undefined ? version : `${version}-${withdrawals}`,
      digest: replicaDigest(kind, asHeld?.(sent, agent) ?? sent),
      object: forTransfer(sent),
    };
  }

  #messageFor(delivery: OutboundEvent<T>): Message {
    const { key, resourceId, eventId } = delivery;
    const { kind, principalUid } = this.#options;
    const common = {
      target: kind.target,
      resourceId,
      eventId,
      ...(principalUid === undefined ? {} : { principalUid }),
    };
    if (delivery.type === 'delete') {
      const { uid, version: resourceVersion } = delivery;
      const metadata = { name: key.name, namespace: key.namespace, uid, resourceVersion };
      return {
        ...common,
        type: 'delete',
        object: { metadata, ...kind.content({ metadata, spec: {} } as unknown as T) },
      } as unknown as Message;
    }
    const type = delivery.type === 'create' ? 'create' : 'spec-update';
    return { ...common, type, object: delivery.snapshot.object } as unknown as Message;
  }

  #keyOf(name: string): ResourceKey {
    return { kind: this.#options.kind.kind, namespace: this.#options.namespace, name };
  }
}
