import type { Outbox, ResourceKey, Runtime, Snapshot } from '../../sync/index.ts';
import { placeOf } from '../place.ts';
import type { ConnectedPrincipal, LateObject, Listed, SourceSync } from './kind-sync.ts';
import type { PeerConnection, RequestUpdate, ResyncKind } from './messages.ts';
import type { SyncStats } from './stats.ts';

/** How a {@link SourcePeer} works. */
export interface SourcePeerOptions<T> {
  readonly kind: ResyncKind;
  /** Carries the states of objects to the peer. */
  readonly states: Outbox<T>;
  /** Carries requests that must not wait behind a state. */
  readonly requests?: Outbox<T> | undefined;
  /** The object as the peer should have it; undefined when it should not. */
  readonly read: (key: ResourceKey) => Snapshot<T> | undefined;
  /** The objects that the peer may be meant to have. */
  readonly keys: () => Iterable<ResourceKey>;
  /** How many these are. */
  readonly count: () => number;
  /** This side's key of an object that the peer reports. */
  readonly keyOf: (reported: RequestUpdate) => ResourceKey;
  /** Whether a peer that reports this checksum has the object as it is now, as far as checksums cover it. */
  readonly hasChecksum: (now: Snapshot<T>, checksum: string | null) => boolean;
  /** The state that a peer is assumed to have whose checksum is right. Default: not known. */
  readonly assumed?: ((now: Snapshot<T>) => string) | undefined;
  /** The state of a copy with this reported digest. Default: the digest. */
  readonly stateOf?: ((digest: string) => string) | undefined;
  /** Called when the peer has no copy of an object. */
  readonly lacks?: ((key: ResourceKey) => void) | undefined;
  /** Called when the peer connects, before anything else. */
  readonly connected?: ((peer: ConnectedPrincipal) => void) | undefined;
  /** Connects the outboxes, each with its own messages. */
  readonly start: (connection: PeerConnection) => void;
  /** Stands in every log line about the peer. */
  readonly peer: object;
  readonly runtime: Runtime;
}

/** Copies of objects that a peer should not have: those beyond wait for the next resync, so that a peer cannot fill memory. */
const mostStrays = 10_000;

/**
 * The source of one kind for one peer: its connection, and what the peer reports about its copies. Sending starts when the
 * peer is connected and has reported its copies, and again on every later connection. It accepts no messages about objects.
 */
export class SourcePeer<T> implements SourceSync {
  readonly kind: ResyncKind;
  readonly #options: SourcePeerOptions<T>;
  readonly #outboxes: readonly Outbox<T>[];
  #connection: PeerConnection | undefined;
  #isOpen = false;
  /** The log has the warning about too many strays since the peer connected. */
  #hasWarned = false;

  constructor(options: SourcePeerOptions<T>) {
    this.kind = options.kind;
    this.#options = options;
    this.#outboxes = options.requests === undefined ? [options.states] : [options.states, options.requests];
  }

  /** The connection while there is one, also before it is open. */
  get connection(): PeerConnection | undefined {
    return this.#connection;
  }

  /** Events in flight on an earlier connection are sent again. */
  connected(connection: PeerConnection, peer: ConnectedPrincipal): void {
    this.disconnected();
    this.#connection = connection;
    this.#hasWarned = false;
    this.#options.connected?.(peer);
    this.#startIfOpen();
  }

  disconnected(): void {
    this.#connection = undefined;
    for (const outbox of this.#outboxes) {
      outbox.disconnected();
    }
  }

  open(): void {
    this.#isOpen = true;
    this.#startIfOpen();
  }

  writable(): void {
    for (const outbox of this.#outboxes) {
      outbox.writable();
    }
  }

  acknowledged({ resourceId, eventId }: { readonly resourceId: string; readonly eventId: string }): boolean {
    return this.#outboxes.some((outbox) => outbox.acknowledged(resourceId, eventId));
  }

  receive(): boolean {
    return false;
  }

  peerReported(update: RequestUpdate): string | undefined {
    const { states, keyOf, read, stateOf = (digest) => digest } = this.#options;
    const { uid, digest, checksum } = update;
    const key = keyOf(update);
    if (uid === '') {
      this.#lacks(key);
    } else if (digest !== undefined) {
      // An empty one is no digest of anything: the state is sent once more.
      this.peerHolds(key, { uid, digest: stateOf(digest) });
    } else {
      const now = read(key);
      const isEqual = now !== undefined && this.#options.hasChecksum(now, checksum);
      if (!isEqual || states.held(key)?.uid !== uid) {
        this.peerHolds(key, { uid, digest: isEqual && now.uid === uid ? this.#options.assumed?.(now) : undefined });
      }
    }
    // The peer may be meant to have it by the time it has reported everything.
    return this.isKnown(key) ? placeOf(key) : undefined;
  }

  peerLacks(id: string): void {
    const [namespace = '', name = ''] = id.split('/');
    this.#lacks({ kind: this.kind, namespace, name });
  }

  /** The peer has this copy of an object; undefined: it has none. */
  peerHolds(key: ResourceKey, copy: { readonly uid: string; readonly digest?: string | undefined } | undefined): void {
    if (copy === undefined ? this.isKnown(key) : this.mayRecord(key)) {
      this.#options.states.peerHolds(key, copy);
    }
  }

  /** Whether what the peer says of a copy is recorded: of what it should not have, there is a bound. */
  mayRecord(key: ResourceKey): boolean {
    return this.isKnown(key) || this.#mayRecordStray();
  }

  *list(): Generator<Listed> {
    for (const key of this.#options.keys()) {
      const uid = this.#options.read(key)?.uid;
      if (uid !== undefined) {
        yield { id: placeOf(key), name: key.name, namespace: key.namespace, uid };
      }
    }
  }

  stats(): SyncStats {
    const sum = (figure: 'pending' | 'inFlight') => this.#outboxes.reduce((all, outbox) => all + outbox[figure], 0);
    return { pending: sum('pending'), inFlight: sum('inFlight'), queued: 0, retrying: 0 };
  }

  oldestMs(): number {
    return Math.max(...this.#outboxes.map((outbox) => outbox.oldestMs));
  }

  late(afterMs: number, most: number): readonly LateObject[] {
    return lateObjects(this.#outboxes, afterMs, most);
  }

  close(): void {
    for (const outbox of this.#outboxes) {
      outbox.close();
    }
  }

  #lacks(key: ResourceKey): void {
    this.peerHolds(key, undefined);
    this.#options.lacks?.(key);
  }

  /** Whether the peer should have the object, or something is recorded about it. */
  isKnown(key: ResourceKey): boolean {
    return this.#options.read(key) !== undefined || this.#options.states.knows(key);
  }

  #mayRecordStray(): boolean {
    const { states, count, peer, runtime } = this.#options;
    if (states.size < count() + mostStrays) {
      return true;
    }
    if (!this.#hasWarned) {
      runtime.log.warn(
        { ...peer, kind: this.kind, most: mostStrays },
        'the peer has too many objects that it should not have',
      );
      this.#hasWarned = true;
    }
    return false;
  }

  #startIfOpen(): void {
    if (this.#isOpen && this.#connection !== undefined) {
      this.#options.start(this.#connection);
    }
  }
}

/** The objects of outboxes that have waited for longer than `afterMs`, at most `most`, each once. */
export function lateObjects(
  outboxes: readonly Pick<Outbox<unknown>, 'late'>[],
  afterMs: number,
  most: number,
): readonly LateObject[] {
  const found = new Map<string, LateObject>();
  for (const { key, ms } of outboxes.flatMap((outbox) => outbox.late(afterMs, most))) {
    const place = placeOf(key);
    found.set(place, { namespace: key.namespace, name: key.name, ms: Math.max(ms, found.get(place)?.ms ?? 0) });
  }
  return [...found.values()].slice(0, most);
}
