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
  /** The cache learned it from a list, after a gap of its watch: there may have been other changes in between. */
  readonly relisted?: boolean | undefined;
}

/** What a failed write means for the writer. */
export type Failure = 'not-found' | 'already-exists' | 'conflict' | 'rejected' | 'transient';

/**
 * Classifies an error of a {@link Store}. `rejected`: the API server understood and refuses (400, 403, 405, 413, 422);
 * the same write will be refused again until something else changes. `transient`: everything else, also errors that are
 * not the API server's.
 */
export function failureOf(error: unknown): Failure {
  const status = statusOf(error);
  const reason = error !== null && typeof error === 'object' && 'reason' in error ? error.reason : undefined;
  switch (status) {
    case 404:
      return 'not-found';
    case 409:
      return reason === 'AlreadyExists' ? 'already-exists' : 'conflict';
    case 400:
    case 403:
    case 405:
    case 413:
    case 422:
      return 'rejected';
    default:
      return 'transient';
  }
}

/**
 * Whether a rejected write may succeed later though nothing about it changes: rights are given, policies change, and an
 * API server that has just started refuses with 403 what it has not loaded the rights for yet.
 */
export function mayPassLater(error: unknown): boolean {
  return statusOf(error) === 403;
}

function statusOf(error: unknown): number | undefined {
  return error !== null && typeof error === 'object' && 'status' in error && typeof error.status === 'number'
    ? error.status
    : undefined;
}
