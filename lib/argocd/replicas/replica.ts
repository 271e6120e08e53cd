import {
  Inbox,
  type InboxOutcome,
  type ObjectRef,
  type Runtime,
  type Store,
  type StoreChange,
  type Tuning,
  type View,
} from '../../sync/index.ts';
import { hasForeignAnnotation } from '../owner-marks.ts';
import type { Copy, CopySync, ObjectMessage } from '../peer/kind-sync.ts';
import type { PeerConnection, RequestUpdate, UnreadableMessage } from '../peer/messages.ts';
import type { SyncStats } from '../peer/stats.ts';
import { Warnings } from '../peer/warnings.ts';
import { CopyKeeper } from '../writing/copy-keeper.ts';
import type { Plan } from '../writing/plan.ts';
import { PlanWriter } from '../writing/plan-writer.ts';
import { replicaDigest } from './copy.ts';
import type { ReplicaKind, ReplicaObject } from './kinds.ts';
import { type DesiredReplica, ReplicaPlanner } from './replica-plan.ts';
import { type ReplicaRules, Unacceptable } from './replica-rules.ts';

/** A message about an object of a {@link ReplicaKind}. */
export type ReplicaMessage = Exclude<ObjectMessage, { readonly target: 'application' }>;

/** How a {@link Replica} works. */
export interface ReplicaOptions<T extends ReplicaObject> {
  readonly kind: ReplicaKind<T>;
  readonly rules: ReplicaRules<T>;
  readonly store: Store<T>;
  /** The objects on this side. Its owner follows it and passes changes to {@link Replica.localChange}. */
  readonly view: View<T>;
  readonly namespace: string;
  /** Fields of every log line: the source. */
  readonly peer: object;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
  /** Whether the source is trusted not to invent objects to fill this process's memory. Default: it is not. */
  readonly isTrusted?: boolean;
  /** Receives an object that cannot have a copy here, once per reason. */
  readonly onFailure?: (name: string, message: string) => void;
  /** Receives the name of a copy that the source has withdrawn. */
  readonly onWithdrawn?: (name: string) => void;
  /**
   * Whether something here still needs a copy that this source withdraws: it stays until {@link Replica.reconsiderWithdrawn}
   * finds that nothing does. Default: nothing does.
   */
  readonly isNeeded?: ((copy: T, principalUid: string) => boolean) | undefined;
  /** Waits until the source may write again; called before each of its messages is processed. Default: no wait. */
  readonly pace?: ((signal: AbortSignal) => Promise<void>) | undefined;
}

type Work =
  | { readonly is: 'message'; readonly name: string; readonly message: ReplicaMessage; readonly connection: number }
  /** A copy that was withdrawn, and was still needed then. */
  | { readonly is: 'withdraw'; readonly name: string; readonly id: string; readonly message: ReplicaMessage }
  | { readonly is: 'reconcile'; readonly name: string; readonly id: string; readonly doubtful: boolean };

/**
 * Copies of one source's objects. A copy is made equal to its source, restored when others change it, and deleted when
 * the source withdraws it. Level-triggered: every message, local change and retry compares the desired with the observed
 * state, one comparison at a time per object.
 */
export class Replica<T extends ReplicaObject> implements CopySync {
  readonly kind;
  readonly #options: ReplicaOptions<T>;
  readonly #planner: ReplicaPlanner<T>;
  readonly #writer: PlanWriter<T>;
  readonly #keeper: CopyKeeper<T, DesiredReplica<T>>;
  readonly #inbox: Inbox<Work>;
  /** Deletions that wait because the copy is still needed, by its name. */
  readonly #withdrawn = new Map<string, ReplicaMessage>();
  #connection: PeerConnection | undefined;
  #connections = 0;
  #requestUpdate: (ref: ObjectRef) => void = () => undefined;

  /** @param signal ends all work when it is aborted */
  constructor(options: ReplicaOptions<T>, signal: AbortSignal) {
    this.kind = options.kind.kind;
    this.#options = options;
    const { kind, rules, view, store, peer, runtime, isTrusted = false } = options;
    const { log, clock } = runtime;
    const names = { noun: kind.noun, logFields: ({ name }: ObjectRef) => ({ ...peer, [kind.field]: name }) };
    const warnings = new Warnings(log, clock);
    const planner = new ReplicaPlanner(kind, rules);
    this.#planner = planner;
    this.#writer = new PlanWriter({ names, store, view, runtime });
    this.#keeper = new CopyKeeper<T, DesiredReplica<T>>({
      names,
      view,
      writer: this.#writer,
      isTrusted,
      found: (local) => planner.desiredAsFound(local),
      settled: (desired, copy) => planner.settled(desired, copy),
      sourceUid: (desired) => desired.sourceUid,
      hasDrifted: (copy, desired) => planner.hasDrifted(copy, desired),
      reconcile: ({ name }) => this.reconcile(name),
      ask: (ref) => this.#requestUpdate(ref),
      failed: (ref, message) => {
        warnings.warn(names.logFields(ref), `${kind.noun} cannot be had here: ${message}`);
        options.onFailure?.(ref.name, message);
      },
      runtime,
    });
    this.#inbox = new Inbox<Work>(
      {
        apply: (work, aborted) => this.#apply(work, aborted),
        acknowledge: (work) => {
          if (work.is === 'message') {
            this.#connection?.acknowledge(work.message, this.#refusalOf(work.name));
          }
        },
        laneOf: ({ name }) => name,
        idOf: (work) =>
          work.is !== 'message' ? work.id : `${work.message.type}/${work.message.resourceId}/${work.message.eventId}`,
        supersedes,
        onError: (error, { name }, attempt) =>
          log.warn({ ...peer, [kind.field]: name, attempt, error }, `${kind.noun} not written, will retry`),
        runtime: options.runtime,
        tuning: options.tuning,
      },
      signal,
    );
    signal.addEventListener('abort', () => this.close());
  }

  /** Takes the copies that exist for the desired state until the source reports; until then changes to them are undone. */
  adoptFound(): void {
    for (const local of this.#options.view.values()) {
      const ref = this.#refOf(local.metadata.name);
      this.#keeper.adopt(local, ref);
      this.#renew(ref);
      if (this.#keeper.desired(ref) !== undefined && hasForeignAnnotation(local)) {
        // An earlier version copied it.
        this.reconcile(ref.name);
      }
    }
  }

  /** Computes all copies again after a change of something other than the source that they depend on. */
  renew(): void {
    for (const ref of this.#keeper.refs()) {
      this.#renew(ref);
    }
  }

  /** What the source has withdrawn may be needed no longer. */
  reconsiderWithdrawn(): void {
    for (const [name, message] of this.#withdrawn) {
      this.#inbox.receive({ is: 'withdraw', name, id: this.#options.runtime.newId(), message });
    }
  }

  /** Whether the source wants a copy of this name, by its last report. */
  wants(name: string): boolean {
    return this.#keeper.desired(this.#refOf(name)) !== undefined;
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
    // This side sends only acknowledgements.
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

  unreadable({ name, reason }: UnreadableMessage): void {
    this.#keeper.refuse(this.localRef({ name }), `what was sent cannot be read: ${reason}`);
  }

  /** Takes a change of the owner's view. */
  localChange(ref: ObjectRef, change: StoreChange<T>): void {
    this.#keeper.localChange(ref, change);
    const { old, now } = change;
    const isNew = old === undefined && now !== undefined && this.#planner.copiedUid(now) !== undefined;
    if (isNew && this.#connection !== undefined && this.#keeper.desired(ref) === undefined) {
      // Made by somebody else, as by another principal that has not heard yet that the source withdrew it: the source decides.
      this.#requestUpdate(ref);
    }
  }

  /** Compares a copy with its desired state. `doubtful`: the cache may be wrong, so the API server is asked. */
  reconcile(name: string, doubtful = false): void {
    this.#inbox.receive({ is: 'reconcile', name, id: this.#options.runtime.newId(), doubtful });
  }

  /** Includes desired objects without a copy yet: the source may have lost them, and then only this list withdraws them. */
  *copies(): Generator<Copy> {
    const { view, rules } = this.#options;
    const copy = (ref: ObjectRef, uid: string) => ({ ref, name: rules.sourceName(ref.name), uid });
    for (const ref of this.#keeper.refs()) {
      yield copy(ref, this.#keeper.desired(ref)?.sourceUid ?? '');
    }
    for (const local of view.values()) {
      const ref = this.#refOf(local.metadata.name);
      const uid = this.#planner.copiedUid(local);
      if (uid !== undefined && this.#keeper.desired(ref) === undefined) {
        yield copy(ref, uid);
      }
    }
  }

  reportOf(ref: ObjectRef): RequestUpdate {
    const { kind, view, rules } = this.#options;
    const { name, namespace } = ref;
    const reported = { kind: kind.kind, name, namespace };
    const desired = this.#keeper.desired(ref);
    const local = view.get(ref);
    const localUid = local && this.#planner.copiedUid(local);
    if (local === undefined || localUid === undefined) {
      return { ...reported, uid: desired?.sourceUid ?? '', checksum: null, digest: '' };
    }
    const isUnderWay = this.#inbox.isBusy(name) || this.#keeper.hasFailed(ref);
    // Of a copy that is back, as by a restore, this process does not know what it should be.
    const isSettled = local.metadata.deletionTimestamp === undefined && !isUnderWay && desired !== undefined;
    const isAsSent = isSettled && !this.#planner.hasDrifted(local, desired);
    return {
      ...reported,
      uid: desired?.sourceUid ?? localUid,
      checksum: rules.checksum?.(local) ?? kind.checksum(local),
      // No object has the empty digest, so the source sends its object again.
      digest: isSettled
        ? (rules.digest?.(local, isAsSent) ?? replicaDigest(kind, isAsSent ? desired.object : local))
        : '',
    };
  }

  onDoubt(requestUpdate: (ref: ObjectRef) => void): void {
    this.#requestUpdate = requestUpdate;
  }

  localRef({ name }: { readonly name: string }): ObjectRef {
    return this.#refOf(this.#options.rules.localName(name));
  }

  sourceRestarted(): void {
    // A resync reports all copies; this side has no states of its own to send.
  }

  stats(): SyncStats {
    return {
      pending: 0,
      inFlight: 0,
      queued: this.#inbox.queued,
      retrying: this.#inbox.retrying + this.#keeper.retrying,
    };
  }

  close(): void {
    this.#connection = undefined;
    this.#keeper.close();
  }

  async #apply(work: Work, signal: AbortSignal): Promise<InboxOutcome> {
    await this.#options.pace?.(signal);
    const ref = this.#refOf(work.name);
    if (work.is === 'reconcile') {
      if (work.doubtful) {
        await this.#writer.read(ref, signal);
      }
      return this.#reconcile(ref, true, signal);
    }
    if (work.is === 'withdraw') {
      return this.#withdrawn.get(work.name) === work.message ? this.#withdraw(ref, work.message, signal) : 'done';
    }
    const { message, connection } = work;
    if (connection !== this.#connections) {
      // The source may have restarted since it sent this, and then does not know that it did.
      this.#requestUpdate(ref);
    }
    if (message.type === 'delete') {
      return this.#withdraw(ref, message, signal);
    }
    this.#withdrawn.delete(ref.name);
    const desired = this.#keeper.desired(ref);
    try {
      this.#keeper.desire(ref, this.#planner.desiredAfter(message.object as unknown as T, desired));
    } catch (error) {
      if (!(error instanceof Unacceptable)) {
        throw error;
      }
      this.#keeper.refuse(ref, error.message);
      return 'done';
    }
    return this.#reconcile(ref, false, signal);
  }

  async #withdraw(ref: ObjectRef, message: ReplicaMessage, signal: AbortSignal): Promise<InboxOutcome> {
    const { uid = '' } = message.object.metadata;
    const desired = this.#keeper.desired(ref);
    const isDesired = desired === undefined || desired.sourceUid === uid;
    const meant = isDesired ? desired : undefined;
    const plan = (local: T | undefined) => this.#planner.planDeletion(message.object, local, meant);
    if (this.#isStillNeeded(ref, message, plan)) {
      return 'done';
    }
    const outcome = await this.#keeper.remove(ref, plan, isDesired, signal);
    if (outcome === 'done') {
      this.#withdrawn.delete(ref.name);
      if (isDesired) {
        this.#options.onWithdrawn?.(ref.name);
      }
    }
    return outcome;
  }

  /** Whether a copy stays for now; then its deletion is remembered. */
  #isStillNeeded(ref: ObjectRef, message: ReplicaMessage, plan: (local: T | undefined) => Plan<T>): boolean {
    const { kind, view, isNeeded, peer, runtime } = this.#options;
    const local = view.get(ref);
    const principalUid = 'principalUid' in message ? message.principalUid : undefined;
    const isKept =
      local !== undefined &&
      principalUid !== undefined &&
      isNeeded?.(local, principalUid) === true &&
      plan(local).action !== 'none';
    if (isKept && this.#withdrawn.get(ref.name) === undefined) {
      const why = 'an Application that another principal made needs it';
      runtime.log.warn({ ...peer, [kind.field]: ref.name }, `${kind.noun} is withdrawn, and stays: ${why}`);
    }
    if (isKept) {
      this.#withdrawn.set(ref.name, message);
    }
    return isKept;
  }

  /**
   * Why there is no such copy here, for the people on the other side. One that is not trusted is not told: the reason may name
   * what others have here.
   */
  #refusalOf(name: string): string | undefined {
    const { kind, rules, isTrusted = false } = this.#options;
    const message = isTrusted ? this.#keeper.failureOf(this.#refOf(name)) : undefined;
    return message && `${kind.noun} ${rules.sourceName(name)} cannot be had here: ${message}`;
  }

  #renew(ref: ObjectRef): void {
    const desired = this.#keeper.desired(ref);
    try {
      const renewed = desired && this.#planner.renewed(ref.name, desired);
      if (renewed !== undefined) {
        this.#keeper.desire(ref, renewed);
        this.reconcile(ref.name);
      }
    } catch (error) {
      if (!(error instanceof Unacceptable)) {
        throw error;
      }
      this.#keeper.refuse(ref, error.message);
    }
  }

  #reconcile(ref: ObjectRef, reverts: boolean, signal: AbortSignal): Promise<InboxOutcome> {
    const stamp = this.#options.rules.stamp?.();
    const plan = (local: T | undefined) => this.#planner.plan(ref, this.#keeper.desired(ref), local, stamp);
    return this.#keeper.reconcile(ref, plan, reverts, signal);
  }

  #refOf(name: string): ObjectRef {
    return { namespace: this.#options.namespace, name };
  }
}

/** Whether the newer work makes the older one unnecessary. */
function supersedes(newer: Work, older: Work): boolean {
  if (newer.is === 'withdraw' || older.is === 'withdraw') {
    return false;
  }
  if (older.is === 'reconcile') {
    return newer.is === 'reconcile'
      ? newer.doubtful || !older.doubtful
      : newer.message.type !== 'delete' && !older.doubtful;
  }
  return newer.is === 'message' && newer.message.type !== 'delete' && older.message.type !== 'delete';
}
