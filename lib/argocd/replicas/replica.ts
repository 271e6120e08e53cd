import {
  type Clock,
  failureOf,
  Inbox,
  type MergePatch,
  type ObjectRef,
  type Store,
  type StoreChange,
  type View,
} from '../../sync/index.ts';
import { Troubles } from '../autonomous/troubles.ts';
import { canonicalJson } from '../canonical-json.ts';
import type { SyncLog } from '../managed/log.ts';
import type { PeerConnection, RequestUpdate } from '../managed/messages.ts';
import type { SyncStats } from '../managed/stats.ts';
import { annotations } from '../names.ts';
import type { Copy, MirrorPart, ObjectMessage } from '../parts/part.ts';
import { Warnings } from '../parts/warnings.ts';
import { copiedFrom, newCopy, patchForCopy, replicaDigest } from './copy.ts';
import type { ReplicaKind, ReplicaObject } from './kinds.ts';

/** A message about an object of a {@link ReplicaKind}. */
export type ReplicaMessage = Exclude<ObjectMessage, { readonly target: 'application' }>;

/** How copies are made on this side, and which objects here are copies. */
export interface ReplicaRules<T> {
  /** What this side calls the source's object of that name. */
  readonly localName: (told: string) => string;
  /** What the source calls this side's object of that name. */
  readonly sourceName: (local: string) => string;
  /** What becomes of the source's object here. Names are not its business. Throws {@link Unacceptable}. */
  readonly toLocal: (object: T) => T;
  /** Annotations, besides the source's UID, that tell what a copy was made of. */
  readonly marks?: (told: T, wanted: T) => Readonly<Record<string, string>>;
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

/** How a {@link Replica} works. */
export interface ReplicaOptions<T extends ReplicaObject> {
  readonly kind: ReplicaKind<T>;
  readonly rules: ReplicaRules<T>;
  readonly store: Store<T>;
  /** What is here, followed by the owner, which passes changes on to {@link Replica.localChange}. */
  readonly view: View<T>;
  readonly namespace: string;
  /** Stands in every log line. */
  readonly peer: object;
  readonly log: SyncLog;
  readonly clock: Clock;
  readonly random: () => number;
  readonly newId: () => string;
  readonly concurrency: number | undefined;
  /** Hears what cannot be had here and why, once per reason. */
  readonly onTrouble?: (name: string, message: string) => void;
}

/** What the source said last, and what the API server made of it. */
interface Wanted<T> {
  readonly object: T;
  readonly sourceUid: string;
  /** All annotations by which the copy is told to be one. */
  readonly marks: Readonly<Record<string, string>>;
  /** State of the copy when it was last what is wanted. */
  settled: string | undefined;
  /** UID of the copy, which is ours even when somebody took its marks away. */
  copyUid: string | undefined;
}

type Work =
  | { readonly is: 'message'; readonly name: string; readonly message: ReplicaMessage; readonly connection: number }
  | { readonly is: 'look'; readonly name: string; readonly id: string; readonly doubtful: boolean };

const maxSteps = 6;
/** Objects that a source may have refused. What comes beyond is told again by the source's next resync. */
const mostTroubles = 1_000;

/**
 * Makes the copies of one source's objects what the source says, puts back what others change, and takes away what the
 * source takes away. An object of another incarnation is changed in place, so that nothing is without it for a moment.
 * Level-triggered: every message, local change and retry leads to one look at what is wanted and what is there.
 */
export class Replica<T extends ReplicaObject> implements MirrorPart {
  readonly kind;
  readonly #options: ReplicaOptions<T>;
  readonly #wanted = new Map<string, Wanted<T>>();
  readonly #troubles: Troubles;
  readonly #inbox: Inbox<Work>;
  readonly #warnings: Warnings;
  #connection: PeerConnection | undefined;
  #connections = 0;
  #tellSource: (ref: ObjectRef) => void = () => undefined;

  /** @param signal ends all work */
  constructor(options: ReplicaOptions<T>, signal: AbortSignal) {
    this.kind = options.kind.kind;
    this.#options = options;
    const { kind, log, peer, clock, random, concurrency } = options;
    this.#warnings = new Warnings(log, clock);
    this.#troubles = new Troubles({
      clock,
      random,
      told: (name, message) => {
        this.#warnings.warn({ ...peer, [kind.field]: name }, `${kind.noun} cannot be had here: ${message}`);
        options.onTrouble?.(name, message);
      },
    });
    this.#inbox = new Inbox<Work>(
      {
        apply: (work, aborted) => this.#apply(work, aborted),
        acknowledge: (work) => {
          if (work.is === 'message') {
            this.#connection?.acknowledge(work.message);
          }
        },
        laneOf: ({ name }) => name,
        idOf: (work) =>
          work.is === 'look' ? work.id : `${work.message.type}/${work.message.resourceId}/${work.message.eventId}`,
        supersedes,
        onError: (error, { name }, attempt) =>
          log.warn({ ...peer, [kind.field]: name, attempt, err: error }, `${kind.noun} not written, will retry`),
        clock,
        random,
        ...(concurrency === undefined ? {} : { concurrency }),
      },
      signal,
    );
    signal.addEventListener('abort', () => this.close());
  }

  /** Takes what is there for what is wanted, until the source says something else: it is protected meanwhile. */
  adoptFound(): void {
    for (const local of this.#options.view.values()) {
      const { name, deletionTimestamp } = local.metadata;
      if (this.#isCopy(local) && deletionTimestamp === undefined && !this.#wanted.has(name)) {
        this.#wanted.set(name, {
          object: local,
          sourceUid: copiedFrom(local),
          marks: marksOn(local),
          settled: this.#state(local),
          copyUid: local.metadata.uid,
        });
      }
    }
  }

  connected(connection: PeerConnection): void {
    this.#connection = connection;
    this.#connections++;
    this.#inbox.reconnected();
  }

  disconnected(): void {
    this.#connection = undefined;
  }

  writable(): void {
    // Nothing is sent but acknowledgements.
  }

  acknowledged(): boolean {
    return false;
  }

  receive(message: ObjectMessage): boolean {
    if (message.target === 'application' || message.target !== this.#options.kind.target) {
      return false;
    }
    const name = this.#options.rules.localName(message.object.metadata.name);
    this.#inbox.receive({ is: 'message', name, message, connection: this.#connections });
    return true;
  }

  /** The owner's view changed. */
  localChange({ name }: ObjectRef, { now }: StoreChange<T>): void {
    const wanted = this.#wanted.get(name);
    if (wanted !== undefined && (now === undefined || this.#state(now) !== wanted.settled)) {
      this.look(name);
    }
  }

  /** Something may be out of step. `doubtful`: the cache may be wrong about it. */
  look(name: string, doubtful = false): void {
    this.#inbox.receive({ is: 'look', name, id: this.#options.newId(), doubtful });
  }

  /** Also what is yet to become a copy: if the source knows nothing of it any more, nobody else could take it back. */
  *copies(): Iterable<Copy> {
    const { view, rules } = this.#options;
    const copy = (name: string, uid: string) => ({ ref: this.#refOf(name), name: rules.sourceName(name), uid });
    for (const [name, { sourceUid }] of this.#wanted) {
      yield copy(name, sourceUid);
    }
    for (const local of view.values()) {
      const { name } = local.metadata;
      if (this.#isCopy(local) && !this.#wanted.has(name)) {
        yield copy(name, copiedFrom(local));
      }
    }
  }

  holding(ref: ObjectRef): RequestUpdate {
    const { kind, view, rules } = this.#options;
    const { name, namespace } = ref;
    const told = { kind: kind.kind, name, namespace };
    const wanted = this.#wanted.get(name);
    const local = view.get(ref);
    if (local === undefined || !this.#isCopy(local)) {
      return { ...told, uid: wanted?.sourceUid ?? '', checksum: null, digest: '' };
    }
    const isUnderWay = this.#inbox.isBusy(name) || this.#troubles.has(name);
    const isSettled = local.metadata.deletionTimestamp === undefined && !isUnderWay;
    const isAsTold = wanted !== undefined && wanted.settled === this.#state(local);
    return {
      ...told,
      uid: wanted?.sourceUid ?? copiedFrom(local),
      checksum: rules.checksum?.(local) ?? kind.checksum(local),
      // Empty, which is no digest of anything, lets the source say what it wants.
      digest: isSettled ? replicaDigest(kind, isAsTold ? wanted.object : local) : '',
    };
  }

  onDoubt(tellSource: (ref: ObjectRef) => void): void {
    this.#tellSource = tellSource;
  }

  localRef({ name }: { readonly name: string }): ObjectRef {
    return this.#refOf(this.#options.rules.localName(name));
  }

  sourceRestarted(): void {
    // It is told of all copies, and there is nothing else to tell.
  }

  stats(): SyncStats {
    return {
      pending: 0,
      inFlight: 0,
      queued: this.#inbox.queued,
      retrying: this.#inbox.retrying + this.#troubles.size,
    };
  }

  close(): void {
    this.#connection = undefined;
    this.#troubles.close();
  }

  async #apply(work: Work, signal: AbortSignal): Promise<'done' | 'retry'> {
    if (work.is === 'look') {
      if (work.doubtful) {
        await this.#read(work.name, signal);
      }
      return this.#bringInStep(work.name, signal);
    }
    const { name, message, connection } = work;
    if (connection !== this.#connections) {
      // The source may have lost its memory since it said this, and then it cannot know that it did.
      this.#tellSource(this.#refOf(name));
    }
    if (message.type === 'delete') {
      return this.#remove(name, message.object.metadata.uid ?? '', signal);
    }
    return this.#want(name, message.object as unknown as T) ? this.#bringInStep(name, signal) : 'done';
  }

  /** False when it cannot be had here. */
  #want(name: string, told: T): boolean {
    const { rules } = this.#options;
    const { uid: sourceUid = '' } = told.metadata;
    try {
      const object = rules.toLocal(told);
      const marks = { ...rules.marks?.(told, object), [annotations.sourceUid]: sourceUid };
      const copyUid = this.#wanted.get(name)?.copyUid;
      this.#wanted.set(name, { object, sourceUid, marks, settled: undefined, copyUid });
      return true;
    } catch (error) {
      if (!(error instanceof Unacceptable)) {
        throw error;
      }
      this.#trouble(name, error.message);
      return false;
    }
  }

  /** The one place that makes a copy what the source wants. */
  async #bringInStep(name: string, signal: AbortSignal): Promise<'done' | 'retry'> {
    const { store, view, kind, rules, log, peer } = this.#options;
    const ref = this.#refOf(name);
    let result: string | undefined;
    for (let step = 0; step < maxSteps; step++) {
      const wanted = this.#wanted.get(name);
      if (wanted === undefined) {
        return 'done';
      }
      const local = view.get(ref);
      const objection = local === undefined ? undefined : this.#objection(local, wanted);
      if (objection !== undefined) {
        this.#trouble(name, objection);
        return 'done';
      }
      const plan = this.#plan(local, wanted);
      try {
        if (local === undefined) {
          view.learn(
            await store.create(newCopy(kind, wanted.object, ref, { ...wanted.marks, ...rules.stamp?.() }), signal),
          );
          log.info({ ...peer, [kind.field]: name }, `${kind.noun} created`);
        } else if (plan !== undefined) {
          view.learn(await store.patch(ref, plan, signal));
          log.info({ ...peer, [kind.field]: name }, `${kind.noun} updated`);
        }
        const now = view.get(ref);
        if (now !== undefined && now.metadata.deletionTimestamp === undefined) {
          const state = this.#state(now);
          if (local !== now && state !== result && patchForCopy(kind, wanted.object, now, wanted.marks) !== undefined) {
            // Somebody wrote too, which the cache had not shown; or it is what the API server makes of it, and stays so.
            result = state;
            continue;
          }
          wanted.settled = state;
          wanted.copyUid = now.metadata.uid;
        }
        this.#troubles.solved(name);
        return 'done';
      } catch (error) {
        if (failureOf(error) === 'rejected') {
          // It may be taken later: rights are given, policies change, another version of the source is accepted.
          this.#trouble(name, (error as Error).message, () => this.look(name));
          return 'done';
        }
        await this.#again(error, name, signal);
      }
    }
    return 'retry';
  }

  #plan(local: T | undefined, wanted: Wanted<T>): MergePatch | undefined {
    if (local === undefined) {
      return undefined;
    }
    if (local.metadata.deletionTimestamp !== undefined) {
      // When it is gone, it is made anew.
      return this.#release(local);
    }
    const { kind, rules } = this.#options;
    const patch =
      this.#state(local) === wanted.settled ? undefined : patchForCopy(kind, wanted.object, local, wanted.marks);
    return patch && withAnnotations(patch, rules.stamp?.());
  }

  async #remove(name: string, sourceUid: string, signal: AbortSignal): Promise<'done' | 'retry'> {
    const { store, view, kind, log, peer } = this.#options;
    const ref = this.#refOf(name);
    const wanted = this.#wanted.get(name);
    if (wanted === undefined || wanted.sourceUid === sourceUid) {
      this.#wanted.delete(name);
      this.#troubles.solved(name);
    }
    for (let step = 0; step < maxSteps; step++) {
      const local = view.get(ref);
      // When what is wanted goes, what was there before it and has not become it yet goes too.
      const isOurs =
        local !== undefined &&
        ((this.#isCopy(local) && (copiedFrom(local) === sourceUid || wanted?.sourceUid === sourceUid)) ||
          (wanted?.sourceUid === sourceUid && local.metadata.uid === wanted.copyUid));
      if (local === undefined || !isOurs) {
        return 'done';
      }
      const release = this.#release(local);
      if (local.metadata.deletionTimestamp !== undefined && release === undefined) {
        return 'done';
      }
      try {
        if (release !== undefined) {
          view.learn(await store.patch(ref, release, signal));
        } else {
          await store.delete(ref, { uid: local.metadata.uid ?? '', propagation: 'Background' }, signal);
          log.info({ ...peer, [kind.field]: name }, `${kind.noun} deleted`);
          return 'done';
        }
      } catch (error) {
        await this.#again(error, name, signal);
      }
    }
    return 'retry';
  }

  /** What takes the finalizers away where nobody answers them. */
  #release({ metadata }: T): MergePatch | undefined {
    return this.#options.rules.dropsFinalizers && (metadata.finalizers ?? []).length > 0
      ? { metadata: { uid: metadata.uid, finalizers: null } }
      : undefined;
  }

  #objection(local: T, wanted: Wanted<T>): string | undefined {
    return this.#isCopy(local) || local.metadata.uid === wanted.copyUid
      ? undefined
      : this.#options.rules.objection(local);
  }

  #isCopy(local: T): boolean {
    return copiedFrom(local) !== '' && this.#options.rules.isCopy(local);
  }

  /** Looks at what is there after a write that met something else; throws what only time or people can mend. */
  async #again(error: unknown, name: string, signal: AbortSignal): Promise<void> {
    const failure = failureOf(error);
    if (failure === 'rejected' || failure === 'transient') {
      throw error;
    }
    await this.#read(name, signal);
  }

  async #read(name: string, signal: AbortSignal): Promise<void> {
    const { view, store } = this.#options;
    const ref = this.#refOf(name);
    const before = view.get(ref);
    const now = await store.read(ref, signal);
    if (now !== undefined) {
      view.learn(now);
    } else if (before !== undefined) {
      view.lost(before);
    }
  }

  /** Equal for two states of a copy in which nothing differs that is this replica's business. */
  #state(local: T): string {
    const isGoing = local.metadata.deletionTimestamp !== undefined;
    return `${isGoing} ${replicaDigest(this.#options.kind, local)} ${canonicalJson(marksOn(local))}`;
  }

  #refOf(name: string): ObjectRef {
    return { namespace: this.#options.namespace, name };
  }

  /** Something stands in the way that only time or people mend. */
  #trouble(name: string, message: string, again?: () => void): void {
    const { kind, peer } = this.#options;
    if (this.#troubles.size >= mostTroubles && !this.#troubles.has(name)) {
      this.#wanted.delete(name);
      this.#warnings.warn({ ...peer, [kind.field]: name }, `${kind.noun} is one too many of those that cannot be had`);
      return;
    }
    this.#troubles.met(name, message, again);
  }
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

/** Whether the older work need not be done when the newer one is. */
function supersedes(newer: Work, older: Work): boolean {
  if (older.is === 'look') {
    return newer.is === 'look' ? newer.doubtful || !older.doubtful : newer.message.type !== 'delete' && !older.doubtful;
  }
  return newer.is === 'message' && newer.message.type !== 'delete' && older.message.type !== 'delete';
}
