import type { ReplicaObject } from './kinds.ts';

/** How this side makes copies, and which of its objects are copies. */
export interface ReplicaRules<T> {
  /** The name of a copy, from the name of its source. */
  readonly localName: (sourceName: string) => string;
  /** The name of a source, from the name of its copy. */
  readonly sourceName: (local: string) => string;
  /** The copy of a source, with the source's name. Throws {@link Unacceptable}. */
  readonly toLocal: (object: T) => T;
  /** Annotations, besides the source's UID, that record what a copy was made from. */
  readonly marks?: (source: T, desired: T) => Readonly<Record<string, string>>;
  /** Annotations that every write of a copy sets; a copy without them counts as equal. */
  readonly stamp?: () => Readonly<Record<string, string>>;
  /** Whether an object here is a copy of an object of this source. */
  readonly isCopy: (local: T) => boolean;
  /** Why an existing object that is no copy may not become one; undefined when it may. */
  readonly objection: (local: T) => string | undefined;
  /** The checksum by which the source knows a copy. Default: that of the copy. */
  readonly checksum?: (local: T) => string;
  /**
   * The digest by which the source knows a copy. Empty: the source sends its object again. Default: that of the object sent.
   * @param isAsSent whether the copy is as it was written
   */
  readonly digest?: (local: T, isAsSent: boolean) => string;
  /**
   * The copy of this name, computed again without its source, or after a change of something else that it depends on.
   * Default: the copy as it is. Throws {@link Unacceptable}.
   */
  readonly renew?: (name: string, copy: T, marks: Readonly<Record<string, string>>) => Renewed<T>;
  /** Why this source may have no copy of this name now, whether one exists or not; undefined when it may. */
  readonly refusal?: (name: string) => string | undefined;
  /** Whether a copy goes with this source though it was here before, or is needed. Default: it does not. */
  readonly goesWith?: (source: ReplicaObject) => boolean;
  /**
   * What stays of a copy that the cluster cannot do without, when its source is gone and nothing was here before; undefined: it
   * goes. Default: it goes.
   */
  readonly needed?: (local: T) => T | undefined;
  /**
   * Whether no controller on this side removes finalizers, so that they are removed from a copy that is being deleted.
   * Otherwise a copy that a user deleted could not be restored, and one without a source would stay.
   */
  readonly dropsFinalizers: boolean;
}

/** A copy that was computed again, and the annotations that record what it was made from. */
export interface Renewed<T> {
  readonly object: T;
  readonly marks: Readonly<Record<string, string>>;
}

/** The source's object cannot have a copy here; the message gives the reason. */
export class Unacceptable extends Error {}

/** The reason for leaving an object alone whose label excludes it from synchronisation. */
export const skipped = 'what is here is kept out of synchronisation by its label';
