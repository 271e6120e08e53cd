/** Names one object of one kind. `namespace` is empty for kinds without namespaces. */
export interface ResourceKey {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** A string that is equal exactly for equal keys (Kubernetes names contain no slash). */
export function keyString(key: ResourceKey): string {
  return `${key.kind}/${key.namespace}/${key.name}`;
}

/** What a resource is at one moment. */
export interface Snapshot<T> {
  /** Identity of this incarnation; a deleted and re-created resource has another one. */
  readonly uid: string;
  /** Opaque version of the object, part of the event id (`metadata.resourceVersion`). */
  readonly version: string;
  /** Two snapshots with equal uid and digest would make the peer write the same. */
  readonly digest: string;
  readonly object: T;
}

/** The desired state at the peer, answered synchronously from memory. */
export interface Source<T> {
  /** The resource as it is now, or undefined when the peer should not have it. */
  read(key: ResourceKey): Snapshot<T> | undefined;
  /**
   * Whether nothing is to be sent about the resource, neither its state nor an intent: the peer keeps what it has. Report the end
   * with `Outbox.changed`. Default: nothing is withheld.
   */
  withholds?(key: ResourceKey): boolean;
}

interface Addressed {
  readonly key: ResourceKey;
  /** `<name>_<uid>`: the wire's unit of order. */
  readonly resourceId: string;
  /** What the acknowledgement must repeat. */
  readonly eventId: string;
}

/** One event to send to the peer. */
export type OutboundEvent<T> =
  /** `create`: the peer is not known to have it; `update`: it has another state of the same uid. */
  | (Addressed & { readonly type: 'create' | 'update'; readonly snapshot: Snapshot<T> })
  /** The peer's copy of this uid should go. */
  | (Addressed & { readonly type: 'delete'; readonly uid: string; readonly version: string })
  /** A one-shot request about the resource, sent when the peer has acknowledged the state it builds on. */
  | (Addressed & { readonly type: 'intent'; readonly intent: string; readonly snapshot: Snapshot<T> });

/** The way to one peer while it is connected. */
export interface Link<T> {
  /**
   * Hands over one delivery. False means that nothing was taken because the buffer is full: the engine then waits for
   * `Outbox.writable()` and decides anew what to send.
   */
  send(delivery: OutboundEvent<T>): boolean;
}
