import { canonicalJson, type MergePatch } from '../../base/index.ts';
import type { InboxOutcome, ObjectRef, Runtime, Store, View } from '../../sync/index.ts';
import { copiedFrom } from '../copied-from.ts';
import { annotations } from '../names.ts';
import type { Copy } from '../peer/kind-sync.ts';
import type { RequestUpdate } from '../peer/messages.ts';
import { Warnings } from '../peer/warnings.ts';
import { ConflictBackoff } from '../writing/conflict-backoff.ts';
import { Failures } from '../writing/failures.ts';
import { ObjectWriter, type Write } from '../writing/object-writer.ts';
import { newCopy, patchForCopy, replicaDigest } from './copy.ts';
import type { ReplicaKind, ReplicaObject } from './kinds.ts';
import { type ReplicaRules, Unacceptable } from './replica-rules.ts';

/** How a {@link CopyKeeper} works. */
export interface CopyKeeperOptions<T extends ReplicaObject> {
  readonly kind: ReplicaKind<T>;
  readonly rules: ReplicaRules<T>;
  readonly store: Store<T>;
  /** What is here, followed by the owner. */
  readonly view: View<T>;
  readonly namespace: string;
  /** Stands in every log line. */
  readonly peer: object;
  readonly runtime: Runtime;
  /** Hears what cannot be had here and why, once per reason. */
  readonly onFailure?: ((name: string, message: string) => void) | undefined;
  /** Has an object looked at again. */
  readonly reconcile: (name: string) => void;
}

/** What the source said last, and what the API server made of it. */
interface Desired<T> {
  readonly object: T;
  readonly sourceUid: string;
  /** All annotations by which the copy is told to be one. */
  readonly marks: Readonly<Record<string, string>>;
  /** State of the copy when it was last what is wanted. */
  settled: string | undefined;
  /** UID of the copy, which is ours even when somebody took its marks away. */
  copyUid: string | undefined;
}

/** Objects that a source may have refused. What comes beyond is told again by the source's next resync. */
const mostTroubles = 1_000;

/**
 * Knows what one source wants, and makes the copies that. An object of another incarnation is changed in place, so that
 * nothing is without it for a moment. Its methods that write must not overlap for one name.
 */
export class CopyKeeper<T extends ReplicaObject> {
  readonly #options: CopyKeeperOptions<T>;
  readonly #desired = new Map<string, Desired<T>>();
  readonly #writer: ObjectWriter<T>;
  readonly #failures: Failures;
  readonly #conflicts: ConflictBackoff;
  readonly #warnings: Warnings;

  constructor(options: CopyKeeperOptions<T>) {
    this.#options = options;
    const { kind, peer } = options;
    const { log, clock } = options.runtime;
    this.#writer = new ObjectWriter(options);
    this.#warnings = new Warnings(log, clock);
    this.#failures = new Failures(options.runtime);
    this.#conflicts = new ConflictBackoff({
      noun: kind.noun,
      logFields: ({ name }) => ({ ...peer, [kind.field]: name }),
      runtime: options.runtime,
    });
  }

  /** Objects that cannot be had, or that somebody keeps changing. */
  get troubles(): number {
    return this.#failures.size + this.#conflicts.active;
  }

  /** Takes what is there for what is wanted, until the source says something else: it is protected meanwhile. */
  adoptFound(): void {
    for (const local of this.#options.view.values()) {
      const { name, deletionTimestamp } = local.metadata;
      if (this.#isCopy(local) && deletionTimestamp === undefined && !this.#desired.has(name)) {
        this.#desired.set(name, {
          object: local,
          sourceUid: uidOf(local),
          marks: marksOn(local),
          settled: this.#state(local),
          copyUid: local.metadata.uid,
        });
      }
    }
  }

  /** Also what is yet to become a copy: if the source knows nothing of it any more, nobody else could take it back. */
  *copies(): Iterable<Copy> {
    const { view, rules } = this.#options;
    const copy = (name: string, uid: string) => ({ ref: this.refOf(name), name: rules.sourceName(name), uid });
    for (const [name, { sourceUid }] of this.#desired) {
      yield copy(name, sourceUid);
    }
    for (const local of view.values()) {
      const { name } = local.metadata;
      if (this.#isCopy(local) && !this.#desired.has(name)) {
        yield copy(name, uidOf(local));
      }
    }
  }

  /** What is here under this name, as the source is to hear it. `isBusy`: something is about to be done about it. */
  holding(ref: ObjectRef, isBusy: boolean): RequestUpdate {
    const { kind, view, rules } = this.#options;
    const { name, namespace } = ref;
    const reported = { kind: kind.kind, name, namespace };
    const desired = this.#desired.get(name);
    const local = view.get(ref);
    if (local === undefined || !this.#isCopy(local)) {
      return { ...reported, uid: desired?.sourceUid ?? '', checksum: null, digest: '' };
    }
    const isUnderWay = isBusy || this.#failures.has(name);
    const isSettled = local.metadata.deletionTimestamp === undefined && !isUnderWay;
    const isAsSent = desired !== undefined && desired.settled === this.#state(local);
    return {
      ...reported,
      uid: desired?.sourceUid ?? uidOf(local),
      checksum: rules.checksum?.(local) ?? kind.checksum(local),
      // Empty, which is no digest of anything, lets the source say what it wants.
      digest: isSettled ? replicaDigest(kind, isAsSent ? desired.object : local) : '',
    };
  }

  /** The object of this name changed here. If it is a copy that somebody else changed, it is put back in time. */
  localChange(name: string, now: T | undefined): void {
    const desired = this.#desired.get(name);
    if (desired !== undefined && (now === undefined || this.#state(now) !== desired.settled)) {
      this.#conflicts.whenDue(this.refOf(name), () => this.#options.reconcile(name));
    }
  }

  /** The source wants this. False when it cannot be had here. */
  want(name: string, source: T): boolean {
    const { rules } = this.#options;
    const { uid: sourceUid = '' } = source.metadata;
    try {
      const object = rules.toLocal(source);
      const marks = { ...rules.marks?.(source, object), [annotations.sourceUid]: sourceUid };
      const copyUid = this.#desired.get(name)?.copyUid;
      this.#desired.set(name, { object, sourceUid, marks, settled: undefined, copyUid });
      return true;
    } catch (error) {
      if (!(error instanceof Unacceptable)) {
        throw error;
      }
      this.#fail(name, error.message);
      return false;
    }
  }

  /**
   * The one place that makes a copy what the source wants.
   * @param putsBack the source did not change: what has to be written was somebody else's change
   */
  async bringInStep(name: string, putsBack: boolean, signal: AbortSignal): Promise<InboxOutcome> {
    const written = { count: 0 };
    const outcome = await this.#write(name, written, signal);
    if (putsBack && written.count > 0 && outcome === 'done') {
      this.#conflicts.recordPutBack(this.refOf(name));
    }
    return outcome;
  }

  async #write(name: string, written: { count: number }, signal: AbortSignal): Promise<InboxOutcome> {
    const ref = this.refOf(name);
    let previous: string | undefined;
    const result = await this.#writer.run<{ is: 'done' }>(
      ref,
      (local) => {
        const desired = this.#desired.get(name);
        const objection = desired && local && this.#objection(local, desired);
        if (objection !== undefined) {
          this.#fail(name, objection);
        }
        if (desired === undefined || objection !== undefined) {
          return { result: { is: 'done' } };
        }
        const write = this.#plan(ref, local, desired);
        if (write === undefined) {
          this.#settle(name, desired);
          return { result: { is: 'done' } };
        }
        return {
          write,
          after: () => {
            written.count++;
            this.#log(name, write.action === 'create' ? 'created' : 'updated');
            const state = this.#differenceOf(ref, desired);
            if (state !== undefined && state !== previous) {
              // Somebody wrote too, which the cache had not shown; or it is what the API server makes of it, and stays so.
              previous = state;
              return undefined;
            }
            this.#settle(name, desired);
            return { is: 'done' };
          },
        };
      },
      signal,
    );
    if (result.is === 'rejected') {
      // It may be taken later: rights are given, policies change, another version of the source is accepted.
      this.#fail(name, (result.error as Error).message, () => this.#options.reconcile(name));
    }
    return result.is === 'unsettled' ? 'retry' : 'done';
  }

  /** The state of a copy that is not what is desired; undefined when it is, or is being deleted, or is gone. */
  #differenceOf(ref: ObjectRef, { object, marks }: Desired<T>): string | undefined {
    const { kind, view } = this.#options;
    const now = view.get(ref);
    const isSettled =
      now === undefined ||
      now.metadata.deletionTimestamp !== undefined ||
      patchForCopy(kind, object, now, marks) === undefined;
    return isSettled ? undefined : this.#state(now);
  }

  /** The copy is as desired, or is waited for: what it looks like tells later whether somebody changed it. */
  #settle(name: string, desired: Desired<T>): void {
    const now = this.#options.view.get(this.refOf(name));
    if (now !== undefined && now.metadata.deletionTimestamp === undefined) {
      desired.settled = this.#state(now);
      desired.copyUid = now.metadata.uid;
    }
    this.#failures.solved(name);
  }

  #plan(ref: ObjectRef, local: T | undefined, desired: Desired<T>): Write<T> | undefined {
    const { kind, rules } = this.#options;
    const { object, marks } = desired;
    const stamp = rules.stamp?.();
    if (local === undefined) {
      return { action: 'create', object: newCopy(kind, object, ref, { ...marks, ...stamp }) };
    }
    if (local.metadata.deletionTimestamp !== undefined) {
      // When it is gone, it is made anew.
      return this.#release(local);
    }
    const patch = this.#state(local) === desired.settled ? undefined : patchForCopy(kind, object, local, marks);
    return patch && { action: 'update', patch: withAnnotations(patch, stamp) };
  }

  /** The source wants its object of this UID gone. */
  async remove(name: string, sourceUid: string, signal: AbortSignal): Promise<InboxOutcome> {
    const ref = this.refOf(name);
    const desired = this.#desired.get(name);
    if (desired === undefined || desired.sourceUid === sourceUid) {
      this.#desired.delete(name);
      this.#failures.solved(name);
      this.#conflicts.forget(ref);
    }
    const result = await this.#writer.run<{ is: 'done' }>(
      ref,
      (local) => {
        // When what is desired goes, what was there before it and has not become it yet goes too.
        const isOurs =
          local !== undefined &&
          ((this.#isCopy(local) && (isCopyOf(local, sourceUid) || desired?.sourceUid === sourceUid)) ||
            (desired?.sourceUid === sourceUid && local.metadata.uid === desired.copyUid));
        if (!isOurs) {
          return { result: { is: 'done' } };
        }
        const release = this.#release(local);
        if (release !== undefined) {
          return { write: release };
        }
        return local.metadata.deletionTimestamp !== undefined
          ? { result: { is: 'done' } }
          : {
              write: { action: 'delete', uid: local.metadata.uid ?? '', propagation: 'Background' },
              after: () => {
                this.#log(name, 'deleted');
                return { is: 'done' };
              },
            };
      },
      signal,
    );
    if (result.is === 'rejected') {
      throw result.error;
    }
    return result.is === 'done' ? 'done' : 'retry';
  }

  /** What takes the finalizers away where nobody answers them. */
  #release({ metadata }: T): Write<T> | undefined {
    return this.#options.rules.dropsFinalizers && (metadata.finalizers ?? []).length > 0
      ? { action: 'update', patch: { metadata: { uid: metadata.uid, finalizers: null } } }
      : undefined;
  }

  #objection(local: T, desired: Desired<T>): string | undefined {
    return this.#isCopy(local) || local.metadata.uid === desired.copyUid
      ? undefined
      : this.#options.rules.objection(local);
  }

  #isCopy(local: T): boolean {
    return this.#options.rules.isCopy(local);
  }

  /** Looks at the object itself, past the cache. */
  async read(name: string, signal: AbortSignal): Promise<void> {
    await this.#writer.read(this.refOf(name), signal);
  }

  #log(name: string, done: 'created' | 'updated' | 'deleted'): void {
    const { kind, peer, runtime } = this.#options;
    runtime.log.info({ ...peer, [kind.field]: name }, `${kind.noun} ${done}`);
  }

  /** Equal for two states of a copy in which nothing differs that is this replica's business. */
  #state(local: T): string {
    const isGoing = local.metadata.deletionTimestamp !== undefined;
    return `${isGoing} ${replicaDigest(this.#options.kind, local)} ${canonicalJson(marksOn(local))}`;
  }

  /** Where the copy of this name is. */
  refOf(name: string): ObjectRef {
    return { namespace: this.#options.namespace, name };
  }

  /** Stops all timers. */
  close(): void {
    this.#failures.close();
    this.#conflicts.close();
  }

  /** Something stands in the way that only time or people mend. */
  #fail(name: string, message: string, again?: () => void): void {
    const { kind, peer, onFailure } = this.#options;
    if (this.#failures.size >= mostTroubles && !this.#failures.has(name)) {
      this.#desired.delete(name);
      this.#warnings.warn({ ...peer, [kind.field]: name }, `${kind.noun} is one too many of those that cannot be had`);
      return;
    }
    if (this.#failures.met(name, message, again)) {
      this.#warnings.warn({ ...peer, [kind.field]: name }, `${kind.noun} cannot be had here: ${message}`);
      onFailure?.(name, message);
    }
  }
}

/** A copy whose mark was taken away says it is one of this, so that its source says what should become of it. */
const unknownUid = 'unknown';

function uidOf(local: ReplicaObject): string {
  return copiedFrom(local) || unknownUid;
}

/** One that does not tell may be any. */
function isCopyOf(local: ReplicaObject, sourceUid: string): boolean {
  return copiedFrom(local) === '' || copiedFrom(local) === sourceUid;
}

function withAnnotations(patch: MergePatch, annotations: Readonly<Record<string, string>> = {}): MergePatch {
  const metadata = patch.metadata as { readonly annotations?: object } | undefined;
  return { ...patch, metadata: { ...metadata, annotations: { ...metadata?.annotations, ...annotations } } };
}

const markKeys = [annotations.sourceUid, annotations.mirrorOf, annotations.mirrorChecksums];

function marksOn({ metadata }: ReplicaObject): Readonly<Record<string, string>> {
  const marks: Record<string, string> = {};
  for (const key of markKeys) {
    const value = metadata.annotations?.[key];
    if (value !== undefined) {
      marks[key] = value;
    }
  }
  return marks;
}
