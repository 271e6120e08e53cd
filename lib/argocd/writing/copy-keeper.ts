import { hasGoneBack, jsonSize } from '../../base/index.ts';
import {
  type InboxOutcome,
  isAnswer,
  type ObjectRef,
  type Runtime,
  type StoreChange,
  type StoredObject,
  type View,
} from '../../sync/index.ts';
import { placeOf, refAt } from '../place.ts';
import { ConflictBackoff } from './conflict-backoff.ts';
import { failureText } from './failure-text.ts';
import { Failures } from './failures.ts';
import type { KindNames } from './kind-names.ts';
import { LastingFailures } from './lasting-failures.ts';
import type { Plan } from './plan.ts';
import type { PlanWriter, Result } from './plan-writer.ts';

/** What a {@link CopyKeeper} has to know of its kind. `D`: what is desired of one copy, and how far it is reached. */
export interface CopyKeeperOptions<T extends StoredObject, D> {
  readonly names: KindNames;
  readonly view: View<T>;
  readonly writer: PlanWriter<T>;
  /**
   * Whether any number of failures may be remembered. False for a source that can make up objects: beyond the bound, what it
   * sent is not kept, but asked for when it is time for another attempt.
   */
  readonly isTrusted: boolean;
  /** What is desired of a copy that an earlier process made, until its source sends something; undefined: it is no copy. */
  readonly found: (object: T) => D | undefined;
  /** The copy is as desired: records what it looks like, to detect changes. Without copy: one is waited for. */
  readonly settled: (desired: D, copy: T | undefined) => D;
  /** UID of the source's object that is desired. */
  readonly sourceUid: (desired: D) => string;
  /** Whether somebody else changed what the source decides. */
  readonly hasDrifted: (copy: T, desired: D) => boolean;
  /** Has {@link CopyKeeper.reconcile} called for this copy, in its turn. `lastSeen`: the copy, if somebody deleted it. */
  readonly reconcile: (ref: ObjectRef, lastSeen: T | undefined) => void;
  /** Has the source send again what it wants here. Only for a source that is not trusted. */
  readonly ask?: (ref: ObjectRef) => void;
  /** Whether what a message of the source brought is more than what is kept as desired: after a failure it is asked for. */
  readonly asksAfterFailure?: boolean;
  /** A copy cannot be what is desired. Called once per reason, for each of the source's objects. */
  readonly failed: (ref: ObjectRef, message: string) => void;
  /** Nothing stands in the way of a copy any more. */
  readonly solved?: (ref: ObjectRef) => void;
  /** There is no copy of a source's object that is being deleted. */
  readonly gone?: (ref: ObjectRef, sourceUid: string) => void;
  /** A conflict with somebody who keeps changing a copy begins or ends. */
  readonly conflictChanged?: (ref: ObjectRef) => void;
  readonly runtime: Runtime;
}

/** Failures of a source that is not trusted. Further objects stay with it, unacknowledged. */
const mostFailures = 10_000;
/** In bytes ({@link jsonSize}): such a source's objects beyond it are not kept for a retry. */
const mostFailedBytes = 16 * 1024 * 1024;

/**
 * Keeps the copies of one source as the source wants them. It knows what is desired at each place, writes what is missing,
 * reverts what others change, with a back-off when they keep changing it, and retries what fails.
 *
 * It is level-triggered: every message, local change and retry leads to one comparison of what is desired and what is there.
 * The methods that write must not overlap for one place.
 */
export class CopyKeeper<T extends StoredObject, D> {
  readonly #options: CopyKeeperOptions<T, D>;
  readonly #desired = new Map<string, D>();
  readonly #failures: Failures;
  readonly #lasting: LastingFailures;
  readonly #conflicts: ConflictBackoff;

  constructor(options: CopyKeeperOptions<T, D>) {
    this.#options = options;
    const { names, runtime, conflictChanged } = options;
    this.#failures = new Failures(runtime);
    this.#lasting = new LastingFailures(runtime.clock);
    this.#conflicts = new ConflictBackoff({ ...names, runtime, ...(conflictChanged && { changed: conflictChanged }) });
  }

  /** Copies that cannot be what is desired, or that somebody keeps changing. */
  get retrying(): number {
    return this.#failures.size + this.#conflicts.active;
  }

  /** How many copies the source wants. */
  get size(): number {
    return this.#desired.size;
  }

  /** The places of the copies that the source wants. */
  *refs(): Generator<ObjectRef> {
    for (const place of this.#desired.keys()) {
      yield refAt(place);
    }
  }

  desired(ref: ObjectRef): D | undefined {
    return this.#desired.get(placeOf(ref));
  }

  /** Sets what is desired; {@link reconcile} reaches it. */
  desire(ref: ObjectRef, desired: D): void {
    this.#desired.set(placeOf(ref), desired);
  }

  /** Takes copies that an earlier process made for what is desired, so that they are protected at once. */
  adopt(object: T, ref: ObjectRef): void {
    const desired = this.#options.found(object);
    if (desired !== undefined && !this.#desired.has(placeOf(ref))) {
      this.desire(ref, desired);
    }
  }

  /** Nothing is desired here any more. */
  forget(ref: ObjectRef): void {
    this.#desired.delete(placeOf(ref));
    this.#solve(ref);
    this.#conflicts.forget(ref);
  }

  /** An object changed. If it is a copy that somebody else changed, it is reconciled when it is time. */
  localChange(ref: ObjectRef, { old, now, gap }: StoreChange<T>): void {
    const desired = this.desired(ref);
    if (desired === undefined) {
      return;
    }
    // After a restore it may be an earlier state in more than what others are kept from changing.
    const isRestored =
      gap === 'restore' || (old !== undefined && now !== undefined && hasGoneBack(old.metadata, now.metadata));
    if (now === undefined || isRestored || this.hasFailed(ref) || this.#options.hasDrifted(now, desired)) {
      this.#conflicts.whenDue(ref, () => this.#options.reconcile(ref, now === undefined ? old : undefined));
    }
  }

  /** Reconciles every copy that is not as desired, because something else than the copies changed. */
  reconcileDrifted(): void {
    for (const ref of this.refs()) {
      this.localChange(ref, { old: undefined, now: this.#options.view.get(ref) });
    }
  }

  /**
   * Makes a copy what is desired: the only place that writes copies.
   * @param plan decides what is missing
   * @param reverts the source sent nothing new, so what has to be written was changed by somebody else
   */
  async reconcile(
    ref: ObjectRef,
    plan: (copy: T | undefined) => Plan<T>,
    reverts: boolean,
    signal: AbortSignal,
  ): Promise<InboxOutcome> {
    let result: Result<T>;
    try {
      result = await this.#options.writer.run(ref, plan, signal);
    } catch (error) {
      result = this.#lastingRefusal(ref, error);
    }
    switch (result.is) {
      case 'done':
        if (reverts && result.isWritten) {
          this.#conflicts.recordPutBack(ref);
        }
        this.#reached(ref, reverts, result.isWritten);
        this.#settle(ref, result.copy);
        return 'done';
      case 'gone':
        this.forget(ref);
        this.#options.gone?.(ref, result.sourceUid);
        return 'done';
      case 'stopped':
        return this.#stopped(ref, result);
      case 'unsettled':
        return 'retry';
    }
  }

  /** Why nothing could be written. What the API server refuses is kept and tried again, and nobody waits for it. */
  #stopped(ref: ObjectRef, { message, rejected, mayPass }: Result<T> & { readonly is: 'stopped' }): InboxOutcome {
    const { isTrusted, reconcile } = this.#options;
    const isFull = !isTrusted && !this.hasFailed(ref) && this.#failures.size >= mostFailures;
    const isKeptBySource = isFull || (!isTrusted && mayPass);
    if (!isFull) {
      this.#fail(ref, message, rejected && !isKeptBySource ? () => reconcile(ref, undefined) : undefined);
    }
    return isKeptBySource ? 'retry' : 'done';
  }

  /** What has failed for long counts as refused, so that people hear of it. Throws what has not. */
  #lastingRefusal(ref: ObjectRef, error: unknown): Result<T> {
    if (isAnswer(error) && (this.#lasting.isLasting(placeOf(ref)) || this.hasFailed(ref))) {
      return { is: 'stopped', message: failureText(error), rejected: true, mayPass: false };
    }
    throw error;
  }

  /**
   * Deletes a copy whose source is gone, until the API server has accepted that.
   * @param isDesired the source's object is the one that is desired here
   */
  async remove(
    ref: ObjectRef,
    plan: (copy: T | undefined) => Plan<T>,
    isDesired: boolean,
    signal: AbortSignal,
  ): Promise<InboxOutcome> {
    const { names, view, writer, runtime } = this.#options;
    const desired = isDesired ? this.desired(ref) : undefined;
    if (isDesired) {
      // The deletion of the copy must not look like a change that is to be reverted.
      this.#desired.delete(placeOf(ref));
    }
    let isDone = false;
    try {
      let result: Result<T>;
      try {
        result = await writer.run(ref, plan, signal);
      } catch (error) {
        result = this.#lastingRefusal(ref, error);
      }
      // Somebody may have changed it since the last write, in a way that takes the same write again.
      const isOver = () => ['none', 'wait', 'gone'].includes(plan(view.get(ref)).action);
      isDone = (result.is === 'done' && isOver()) || result.is === 'gone';
      if (result.is === 'stopped') {
        const message = `not deleted, will retry: ${result.message}`;
        runtime.log.warn(names.logFields(ref), `${names.noun} ${message}`);
        if (isDesired || this.desired(ref) === undefined) {
          this.#fail(ref, message, undefined);
        }
      }
    } finally {
      if (isDone && (isDesired || this.desired(ref) === undefined)) {
        this.forget(ref);
      } else if (desired !== undefined) {
        this.desire(ref, desired);
      }
    }
    return isDone ? 'done' : 'retry';
  }

  /** What the source sent cannot have a copy here; what was desired before stays. */
  refuse(ref: ObjectRef, message: string): void {
    if (this.#options.isTrusted || this.hasFailed(ref) || this.#failures.size < mostFailures) {
      this.#fail(ref, message, undefined);
    }
  }

  hasFailed(ref: ObjectRef): boolean {
    return this.#failures.has(placeOf(ref));
  }

  /** Why a copy is not what is desired; undefined: nothing is known to stand in the way. */
  failureOf(ref: ObjectRef): string | undefined {
    return this.#failures.of(placeOf(ref));
  }

  /** What stands in the way of copies. */
  failures(): { readonly ref: ObjectRef; readonly message: string }[] {
    return this.#failures.list().map(({ name, message }) => ({ ref: refAt(name), message }));
  }

  /** The warning about somebody who keeps changing a copy. */
  warningOf(ref: ObjectRef): string | undefined {
    return this.#conflicts.warningOf(ref);
  }

  /** Stops all timers. */
  close(): void {
    this.#failures.close();
    this.#conflicts.close();
  }

  #settle(ref: ObjectRef, copy: T | undefined): void {
    const { settled, view, hasDrifted, reconcile } = this.#options;
    const before = this.desired(ref);
    if (before === undefined) {
      return;
    }
    const desired = settled(before, copy);
    this.desire(ref, desired);
    const now = view.get(ref);
    // The state that was just settled is no reason to reconcile again: only another one is.
    if (copy !== undefined && now !== copy && (now === undefined || hasDrifted(now, desired))) {
      this.#conflicts.whenDue(ref, () => reconcile(ref, undefined));
    }
  }

  #fail(ref: ObjectRef, message: string, again: (() => void) | undefined): void {
    const { isTrusted, ask, failed, sourceUid } = this.#options;
    const place = placeOf(ref);
    const desired = this.desired(ref);
    const size = isTrusted ? 0 : jsonSize(desired);
    const isKept = this.#failures.bytes - this.#failures.bytesOf(place) + size <= mostFailedBytes;
    const retry = isKept ? again : again && (() => ask?.(ref));
    const source = desired && sourceUid(desired);
    const isNew = this.#failures.met(place, message, retry, isKept ? size : 0, source);
    if (!isKept) {
      this.#drop(ref);
    }
    if (isNew) {
      failed(ref, message);
    }
  }

  /** The copy is as desired, after a message of the source or without one. */
  #reached(ref: ObjectRef, reverts: boolean, isWritten: boolean): void {
    const { asksAfterFailure = false, ask } = this.#options;
    const asks = asksAfterFailure && reverts && this.hasFailed(ref);
    if (asks) {
      ask?.(ref);
    }
    // If nothing was to be written, what was refused is not in what is kept: only the answer tells whether it passes now.
    if (!asks || isWritten) {
      this.#solve(ref);
    }
  }

  #solve(ref: ObjectRef): void {
    this.#lasting.solved(placeOf(ref));
    if (this.#failures.solved(placeOf(ref))) {
      this.#options.solved?.(ref);
    }
  }

  /** Does not keep what a source that is not trusted wants here, beyond the bound. What it wanted before holds. */
  #drop(ref: ObjectRef): void {
    this.#desired.delete(placeOf(ref));
    const copy = this.#options.view.get(ref);
    if (copy !== undefined) {
      this.adopt(copy, ref);
    }
  }
}
