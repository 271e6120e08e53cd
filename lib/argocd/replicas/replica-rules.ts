/** How copies are made on this side, and which objects here are copies. */
export interface ReplicaRules<T> {
  /** What this side calls the source's object of that name. */
  readonly localName: (sourceName: string) => string;
  /** What the source calls this side's object of that name. */
  readonly sourceName: (local: string) => string;
  /** What becomes of the source's object here. Names are not its business. Throws {@link Unacceptable}. */
  readonly toLocal: (object: T) => T;
  /** Annotations, besides the source's UID, that tell what a copy was made of. */
  readonly marks?: (source: T, desired: T) => Readonly<Record<string, string>>;
  /** Annotations that every write of a copy brings along, and that are nobody's business otherwise. */
  readonly stamp?: () => Readonly<Record<string, string>>;
  /** Whether an object here is a copy of an object of this source. */
  readonly isCopy: (local: T) => boolean;
  /** Why an object that is there and is no copy may not become one; undefined when it may. */
  readonly objection: (local: T) => string | undefined;
  /** The checksum by which the source knows a copy. Default: that of the copy. */
  readonly checksum?: (local: T) => string;
  /**
   * Whether nobody here answers finalizers, so that they are taken away from a copy that is being deleted: else one that a
   * user deleted could not come back, and one whose source is gone could not go.
   */
  readonly dropsFinalizers: boolean;
}

/** The source's object cannot have a copy here; the message says why. */
export class Unacceptable extends Error {}

/** Why an object is left alone that its label keeps out. */
export const skipped = 'what is here is kept out of synchronisation by its label';
