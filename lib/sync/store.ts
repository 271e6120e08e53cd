import type { MergePatch } from '../base/index.ts';
/** What the engine needs to know of any stored object. */
export interface StoredObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
  };
}

/** Namespace and name of an object; the kind is the store's. */
export interface ObjectRef {
  readonly namespace: string;
  readonly name: string;
}

/**
 * One kind of object in an API server, with a cache that follows it. The cache may lag behind; writes may fail with any
 * error, where an error with a numeric `status` is the API server's own answer ({@link failureOf}).
 */
export interface Store<T extends StoredObject> {
  /** Calls back for every object in the cache and then for every change of the cache. `now` is undefined when it is gone. */
  subscribe(listener: (change: StoreChange<T>) => void): () => void;
  /** The object as the API server has it, or undefined. */
  read(ref: ObjectRef, signal: AbortSignal): Promise<T | undefined>;
  create(object: T, signal: AbortSignal): Promise<T>;
  /** `planned`: the object that the patch was made for, if the caller knows it. */
  patch(ref: ObjectRef, patch: MergePatch, signal: AbortSignal, planned?: T): Promise<T>;
  /**
   * Deletes the object of this uid; that it is already gone, or replaced by another uid or, if one is given, another version
   * (409), is for the caller. `planned`: the object that is to be deleted, if the caller knows it.
   */
  delete(
    ref: ObjectRef,
    options: {
      readonly uid: string;
      readonly propagation: 'Foreground' | 'Background';
      readonly resourceVersion?: string;
    },
    signal: AbortSignal,
    planned?: T,
  ): Promise<void>;
  /** Resolves when no write of the object that a caller has given up is under way any more; undefined: there is none. */
  settled?(ref: ObjectRef): Promise<void> | undefined;
}

/** A change in a store's cache. Both undefined never happens. */
export interface StoreChange<T> {
  readonly old: T | undefined;
  readonly now: T | undefined;
  /**
   * How the cache learned it other than by its watch. `list`: from a list after a gap, there may have been other changes in
   * between. `restore`: the same, and the API server was restored from a backup: the object may be in an earlier version, and all
   * that was known of it is not true any more.
   */
  readonly gap?: 'list' | 'restore' | undefined;
}

/** What a failed write means for the writer. */
export type Failure = 'not-found' | 'already-exists' | 'conflict' | 'rejected' | 'transient';

/** What {@link failureOf} looks at in an error: the parts of a Kubernetes `Status`. */
interface Answer {
  readonly status?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly details?: { readonly causes?: readonly { readonly field?: string }[] };
}

/** How etcd's refusal of an object that is too large for it reads, which an API server passes on as 500. */
const tooLarge = 'etcdserver: request is too large';

/**
 * Classifies an error of a {@link Store}. `rejected`: the API server understood and refuses (400, 403, 405, 413, 422, and
 * 500 for what is too large for etcd). The same write may pass later: rights, policies, quotas and CRDs change. `transient`:
 * everything else, also errors that are not the API server's.
 */
export function failureOf(error: unknown): Failure {
  const { status, reason, details } = answerOf(error);
  switch (status) {
    case 404:
      return 'not-found';
    case 409:
      return reason === 'AlreadyExists' ? 'already-exists' : 'conflict';
    case 422:
      // A patch that names the UID of an object that another one has replaced.
      return details?.causes?.some(({ field }) => field === 'metadata.uid') === true ? 'conflict' : 'rejected';
    case 400:
    case 403:
    case 405:
    case 413:
      return 'rejected';
    case 500:
      return isTooLarge(error) ? 'rejected' : 'transient';
    default:
      return 'transient';
  }
}

/** Whether the API server, or etcd behind it, refuses something because it is too large. */
export function isTooLarge(error: unknown): boolean {
  const { status, message } = answerOf(error);
  const text = String(message);
  return (status === 413 && text.includes('Request entity too large')) || (status === 500 && text.includes(tooLarge));
}

/** Whether the error is an answer of the API server. Any other says nothing about the object: it could not be asked. */
export function isAnswer(error: unknown): boolean {
  return typeof answerOf(error).status === 'number';
}

function answerOf(error: unknown): Answer {
  return error !== null && typeof error === 'object' ? error : {};
}
