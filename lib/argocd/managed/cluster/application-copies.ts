import type { Logger } from '../../../base/index.ts';
import {
  Inbox,
  type InboxOutcome,
  type ObjectRef,
  type Runtime,
  refOf,
  type Store,
  type StoreChange,
  type Tuning,
  View,
} from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { copiedFrom } from '../../copied-from.ts';
import { asksForWorkload, isStillThere } from '../../leaving.ts';
import { annotations } from '../../names.ts';
import { hasOwnerAnnotation } from '../../owner-marks.ts';
import type { AgentKind, ConnectedPrincipal, Copy, CopySync, ObjectMessage } from '../../peer/kind-sync.ts';
import type { ApplicationMessage, PeerConnection, RequestUpdate, UnreadableMessage } from '../../peer/messages.ts';
import type { SyncStats } from '../../peer/stats.ts';
import { placeOf, refAt } from '../../place.ts';
import { isSkipped } from '../../routing.ts';
import { triggersOf } from '../../triggers.ts';
import { CopyKeeper } from '../../writing/copy-keeper.ts';
import { applicationNames } from '../../writing/kind-names.ts';
import type { Plan } from '../../writing/plan.ts';
import { PlanWriter } from '../../writing/plan-writer.ts';
import { RefusedRequests } from '../../writing/refused-requests.ts';
import { sourceUidOf } from '../copy.ts';
import { AgentNamespaces, type AgentNamespacesOptions } from './agent-namespaces.ts';
import { CopyActions } from './copy-actions.ts';
import {
  type AdoptionPolicy,
  isDeleting,
  type MismatchPolicy,
  planDeletion,
  planManagedApplication,
} from './copy-plan.ts';
import { type CopyWork, isState, supersedes, workId } from './copy-work.ts';
import {
  type DesiredCopy,
  desiredCopyAfter,
  desiredCopyAsFound,
  hasCopyDrifted,
  isManaged,
  isUnmarked,
  settledCopy,
} from './desired-copy.ts';
import { heldCopy } from './held-copy.ts';
import { isAwaited, Operations } from './operations.ts';
import { type RecreatePolicy, recreated } from './recreate.ts';
import { Reporter } from './reporter.ts';
import { StuckDeletions } from './stuck-deletions.ts';

const lingers =
  'the copy was deleted on the cluster, and has not gone for about a minute: Argo CD there, or whose finalizer it has, has not finished';

/** How an {@link ApplicationCopies} works. */
export interface ApplicationCopiesOptions extends AgentNamespacesOptions {
  readonly applications: Store<Application>;
  /** Makes a missing namespace; without it, a missing namespace is shown on the hub's Application. */
  readonly ensureNamespace?: ((namespace: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly mismatchPolicy: MismatchPolicy;
  readonly adoptionPolicy: AdoptionPolicy;
  readonly onRecreate: RecreatePolicy;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/**
 * The managed cluster's side of managed mode: makes Applications what the principal sends, reverts what others change,
 * and reports status. It knows stores, a connection and a clock, no Kubernetes and no gRPC.
 *
 * Writing is level-triggered ({@link CopyKeeper}); messages and reconciles of one Application run in order. Reporting
 * is an outbox that reads the object when the link takes it.
 */
export class ApplicationCopies implements AgentKind<CopySync> {
  readonly kind = 'Application';
  readonly #options: ApplicationCopiesOptions;
  readonly #newId: () => string;
  readonly #today: () => Date;
  readonly #log: Logger;

  readonly #namespaces: AgentNamespaces;
  readonly #view: View<Application>;
  readonly #keeper: CopyKeeper<Application, DesiredCopy>;
  /** Copies whose source is deleted, by place: it is reported when they are gone, even if their marks were removed. */
  readonly #beingRemoved = new Map<string, { readonly uid: string | undefined; readonly source: string }>();
  readonly #stuckDeletions: StuckDeletions;
  readonly #reporter: Reporter;
  readonly #writer: PlanWriter<Application>;
  readonly #actions: CopyActions;
  readonly #operations: Operations;
  readonly #refused: RefusedRequests;
  /** Why messages of the principal cannot be read, by place. */
  readonly #unreadable = new Map<string, string>();
  #inbox: Inbox<CopyWork> | undefined;
  #connection: PeerConnection | undefined;

  constructor(options: ApplicationCopiesOptions) {
    this.#options = options;
    this.#newId = options.runtime.newId;
    this.#log = options.runtime.log;
    this.#namespaces = new AgentNamespaces(options);
    this.#view = new View({
      clock: options.runtime.clock,
      changed: (ref, change) => this.#localChange(ref, change),
      doubted: (ref) => this.#inbox?.receive({ is: 'verify', ref, id: this.#newId() }),
    });
    this.#today = options.runtime.today;
    this.#reporter = new Reporter({
      view: this.#view,
      namespaces: this.#namespaces,
      additionsFor: (ref) => ({
        problem: this.#keeper.failureOf(ref) ?? this.#unreadable.get(placeOf(ref)),
        warning: this.#refused.textOf(ref) ?? this.#keeper.warningOf(ref) ?? this.#lingering(ref),
        ownRefresh: this.#keeper.desired(ref)?.ownRefresh === true,
      }),
      runtime: options.runtime,
      tuning: options.tuning,
    });
    this.#stuckDeletions = new StuckDeletions({
      runtime: options.runtime,
      onStuck: (ref) => this.#inbox?.receive({ is: 'stuck', ref, id: this.#newId() }),
      // The copy has not changed: as the same version of it the report would pass for one that was made.
      onLong: (ref) => this.#reporter.repeat(ref),
    });
    this.#writer = new PlanWriter({
      names: applicationNames,
      store: options.applications,
      view: this.#view,
      isHidden: isSkipped,
      objection: (namespace) => this.#namespaces.objection(namespace),
      ensureNamespace: options.ensureNamespace,
      runtime: options.runtime,
    });
    this.#keeper = new CopyKeeper<Application, DesiredCopy>({
      names: applicationNames,
      view: this.#view,
      writer: this.#writer,
      isTrusted: true,
      found: (copy) => (isManaged(copy) && !isDeleting(copy) ? desiredCopyAsFound(copy) : undefined),
      settled: settledCopy,
      sourceUid: ({ object }) => sourceUidOf(object),
      hasDrifted: hasCopyDrifted,
      reconcile: (ref, lastSeen) => this.#inbox?.receive({ is: 'reconcile', ref, id: this.#newId(), lastSeen }),
      failed: (ref, message) => {
        this.#log.error({ application: placeOf(ref) }, `Application cannot be reconciled: ${message}`);
        this.#tellProblem(ref, message);
      },
      solved: (ref) => this.#reporter.solved(ref),
      gone: (ref, sourceUid) => {
        this.#operations.forget(ref, sourceUid);
        this.#reporter.gone(ref, sourceUid);
      },
      conflictChanged: (ref) => this.#reporter.repeat(ref),
      runtime: options.runtime,
    });
    this.#actions = new CopyActions({
      writer: this.#writer,
      view: this.#view,
      reportedEnd: (ref) => this.#reporter.reportedEnd(ref),
    });
    this.#operations = new Operations({
      runtime: options.runtime,
      view: this.#view,
      actions: this.#actions,
      again: (ref, message) => this.#inbox?.receive({ is: 'operation', ref, id: this.#newId(), message }),
    });
    this.#refused = new RefusedRequests({
      isBusy: (ref) => this.#inbox?.isBusy(placeOf(ref)) === true,
      again: (ref, message) => this.#inbox?.receive({ is: 'refused', ref, id: this.#newId(), message }),
      changed: (ref) => this.#reporter.repeat(ref),
      runtime: options.runtime,
    });
  }

  /** Starts to follow the store. Call it when the store's cache is filled, and before the first connection. */
  start(signal: AbortSignal): void {
    this.#inbox = new Inbox<CopyWork>(
      {
        apply: (work, aborted) => this.#apply(work, aborted),
        acknowledge: (work) => this.#acknowledge(work),
        laneOf: (work) => placeOf(work.ref),
        idOf: workId,
        supersedes,
        // A deletion is asked for again on a later connection: the copy may be back, by a restore.
        once: (work) => work.is === 'message' && !isState(work.message) && work.message.type !== 'delete',
        isOwn: (work) => work.is !== 'message',
        onError: (error, work, attempt) =>
          this.#log.warn({ error, application: placeOf(work.ref), attempt }, 'write failed, will retry'),
        runtime: this.#options.runtime,
        tuning: this.#options.tuning,
      },
      signal,
    );
    const unfollow = this.#view.follow(this.#namespaces.within(this.#options.applications));
    for (const application of this.#view.values()) {
      const ref = refOf(application);
      this.#keeper.adopt(application, ref);
      if (this.#keeper.desired(ref) !== undefined) {
        this.#operations.found(application);
        if (hasOwnerAnnotation(application)) {
          // An earlier version copied it.
          this.#inbox.receive({ is: 'reconcile', ref, id: this.#newId(), lastSeen: undefined });
        }
      } else if (isManaged(application)) {
        this.#beingRemoved.set(placeOf(ref), { uid: application.metadata.uid, source: copiedFrom(application) });
      }
    }
    signal.addEventListener('abort', () => {
      unfollow();
      this.close();
    });
  }

  /** Stops all timers. */
  close(): void {
    this.#reporter.close();
    this.#keeper.close();
    this.#stuckDeletions.close();
    this.#operations.close();
    this.#refused.close();
  }

  connected(connection: PeerConnection, { principalNamespace }: ConnectedPrincipal): void {
    this.#connection = connection;
    this.#namespaces.principalNamespace = principalNamespace;
    this.#inbox?.reconnected();
    this.#reporter.connected(connection);
  }

  disconnected(): void {
    this.#connection = undefined;
    this.#reporter.disconnected();
  }

  writable(): void {
    this.#reporter.writable();
  }

  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): boolean {
    return this.#reporter.acknowledged(event);
  }

  receive(message: ObjectMessage): boolean {
    if (message.target !== 'application' || message.type === 'error' || message.type === 'status-update') {
      return false;
    }
    const { name, namespace } = message.object.metadata;
    const ref = this.#namespaces.toLocal(name, namespace);
    this.#actions.received(ref, message);
    this.#tellOfWait(ref, message);
    this.#inbox?.receive({ is: 'message', ref, message });
    return true;
  }

  unreadable({ name, namespace, reason }: UnreadableMessage): void {
    const ref = this.#namespaces.toLocal(name, namespace);
    const message = `the agent cannot read what the principal sent: ${reason}`;
    this.#unreadable.set(placeOf(ref), message);
    this.#reporter.problem(ref, message);
  }

  copies(): Copy[] {
    const copies = [];
    for (const local of this.#view.values()) {
      const uid = copiedFrom(local);
      if (uid !== '') {
        copies.push({ ref: refOf(local), name: local.metadata.name, uid });
      }
    }
    return copies;
  }

  reportOf(ref: ObjectRef): RequestUpdate {
    const isUnderWay = this.#keeper.hasFailed(ref) || this.#inbox?.isBusy(placeOf(ref)) === true;
    return heldCopy(ref, this.#view.get(ref), {
      hubNamespace: this.#namespaces.toHub(ref.namespace),
      // Of a copy that is back, as by a restore, this process does not know what it should be.
      isSettled: !isUnderWay && this.#keeper.desired(ref) !== undefined,
    });
  }

  localRef({ name, namespace }: { readonly name: string; readonly namespace: string }): ObjectRef {
    return this.#namespaces.toLocal(name, namespace);
  }

  /** The principal has lost every report, also those of what cannot be made here. */
  sourceRestarted(): void {
    this.#reporter.repeatAll();
    for (const { ref, message } of this.#keeper.failures()) {
      this.#tellProblem(ref, message);
    }
    for (const [place, message] of this.#unreadable) {
      this.#reporter.problem(refAt(place), message);
    }
  }

  stats(): SyncStats {
    return {
      pending: this.#reporter.pending,
      inFlight: this.#reporter.inFlight,
      queued: (this.#inbox?.queued ?? 0) + this.#operations.size,
      retrying: (this.#inbox?.retrying ?? 0) + this.#keeper.retrying + this.#refused.size,
    };
  }

  oldestMs(): number {
    return this.#reporter.oldestMs;
  }

  /** A copy that somebody has deleted here stands in the way of what the hub has, as long as it does not go. */
  #lingering(ref: ObjectRef): string | undefined {
    const desired = this.#keeper.desired(ref);
    const isWanted = desired !== undefined && desired.object.metadata.deletionTimestamp === undefined;
    return isWanted && this.#stuckDeletions.isLong(ref) ? lingers : undefined;
  }

  /** What is desired here cannot be made, for this reason. */
  #tellProblem(ref: ObjectRef, message: string): void {
    const desired = this.#keeper.desired(ref);
    this.#reporter.problem(ref, message, desired && sourceUidOf(desired.object));
  }

  async #apply(work: CopyWork, signal: AbortSignal): Promise<InboxOutcome> {
    if (work.is === 'verify') {
      await this.#writer.read(work.ref, signal);
      return 'done';
    }
    if (work.is === 'reconcile') {
      return this.#reconcile(work.ref, { lastSeen: work.lastSeen, reverts: true }, signal);
    }
    if (work.is === 'stuck') {
      return this.#reconcileStuck(work.ref, signal);
    }
    if (work.is === 'message' && (isState(work.message) || work.message.type === 'delete')) {
      this.#read(work.ref);
      return work.message.type === 'delete'
        ? this.#remove(work.ref, work.message, signal)
        : this.#takeState(work.ref, work.message, signal);
    }
    const { ref, message } = work;
    return this.#request(ref, message, () =>
      message.type === 'terminate-operation'
        ? this.#actions.terminate(ref, message, signal)
        : work.is === 'operation'
          ? this.#operations.resume(ref, message, signal)
          : this.#operations.start(ref, message, signal),
    );
  }

  async #takeState(ref: ObjectRef, message: ApplicationMessage, signal: AbortSignal): Promise<InboxOutcome> {
    this.#keeper.desire(ref, desiredCopyAfter(message, this.#keeper.desired(ref)));
    if (this.#beingRemoved.get(placeOf(ref))?.source === sourceUidOf(message.object)) {
      this.#beingRemoved.delete(placeOf(ref));
    }
    const before = this.#keeper.failureOf(ref);
    const outcome = await this.#reconcile(ref, { lastSeen: undefined, reverts: false }, signal);
    if (message.type === 'create' && before !== undefined && this.#keeper.failureOf(ref) === before) {
      // It was said before, but the Application may have been another agent's when the principal heard it.
      this.#tellProblem(ref, before);
    }
    // A Go principal sends an operation along.
    return outcome === 'done' && message.type === 'create' && message.object.operation !== undefined
      ? this.#request(ref, message, () => this.#operations.start(ref, message, signal))
      : outcome;
  }

  /** Carries out a request. One that the API server refuses is kept, and nothing waits for it. */
  #request(ref: ObjectRef, message: ApplicationMessage, carryOut: () => Promise<InboxOutcome>): Promise<InboxOutcome> {
    return carryOut().then(
      (outcome) => {
        if (outcome === 'done') {
          this.#refused.settled(ref, message);
        }
        return outcome;
      },
      (error: unknown) => {
        if (this.#refused.keeps(ref, message, error)) {
          return 'done';
        }
        throw error;
      },
    );
  }

  async #reconcileStuck(ref: ObjectRef, signal: AbortSignal): Promise<InboxOutcome> {
    try {
      return await this.#actions.reconcileStuck(ref, this.#today(), signal);
    } catch (error) {
      // It is due again a little later, and nothing is to wait for it.
      this.#log.warn({ application: placeOf(ref), error }, 'Argo CD is not made to look at a deletion that takes long');
      return 'done';
    }
  }

  /** What takes the place of an Application waits until that one is gone: what stands in the way stands in the way of both. */
  #tellOfWait(ref: ObjectRef, message: ApplicationMessage): void {
    const failure = this.#keeper.failureOf(ref);
    const source = sourceUidOf(message.object);
    const desired = this.#keeper.desired(ref);
    const isNext = copiedFrom(this.#view.get(ref)) !== source && (!desired || sourceUidOf(desired.object) !== source);
    if (failure !== undefined && isState(message) && isNext) {
      this.#reporter.problem(ref, failure, source);
    }
  }

  /** A message about the desired state can be read again. */
  #read(ref: ObjectRef): void {
    if (this.#unreadable.delete(placeOf(ref))) {
      this.#reporter.solved(ref);
    }
  }

  #reconcile(
    ref: ObjectRef,
    occasion: {
      /** The copy that somebody deleted. */
      readonly lastSeen: Application | undefined;
      /** The hub did not change. */
      readonly reverts: boolean;
    },
    signal: AbortSignal,
  ): Promise<InboxOutcome> {
    const { lastSeen, reverts } = occasion;
    const plan = (local: Application | undefined): Plan => {
      const desired = this.#keeper.desired(ref);
      if (desired === undefined) {
        return { action: 'none' };
      }
      const next = planManagedApplication(desired, local, {
        namespace: ref.namespace,
        remapped: this.#namespaces.isRemapped(ref.namespace),
        mismatchPolicy: this.#options.mismatchPolicy,
        adoptionPolicy: this.#options.adoptionPolicy,
        ours: local !== undefined && isUnmarked(local) && local.metadata.uid === desired.copyUid,
        record: desired.record,
        triggers: desired.triggers,
        refreshes: reverts,
      });
      if (next.action === 'update' && next.refreshes === true) {
        this.#keeper.desire(ref, { ...desired, ownRefresh: true });
      }
      return next.action === 'create' && lastSeen !== undefined
        ? { action: 'create', object: recreated(next.object, lastSeen, this.#options.onRecreate, this.#today()) }
        : next;
    };
    return this.#keeper.reconcile(ref, plan, reverts, signal);
  }

  async #remove(ref: ObjectRef, message: ApplicationMessage, signal: AbortSignal): Promise<InboxOutcome> {
    const sourceUid = sourceUidOf(message.object);
    const desired = this.#keeper.desired(ref);
    const last = desired !== undefined && sourceUidOf(desired.object) === sourceUid ? desired.object : undefined;
    this.#operations.forget(ref, sourceUid);
    const copy = this.#view.get(ref);
    if (copiedFrom(copy) === sourceUid) {
      this.#beingRemoved.set(placeOf(ref), { uid: copy?.metadata.uid, source: sourceUid });
      this.#tellOfLeave(ref, copy, message.object);
    } else {
      this.#reporter.gone(ref, sourceUid);
    }
    const plan = (local: Application | undefined) => planDeletion(sourceUid, local, message.object, last);
    const outcome = await this.#keeper.remove(ref, plan, last !== undefined, signal);
    if (outcome === 'done' && this.#beingRemoved.get(placeOf(ref))?.source === sourceUid && this.#isGivenBack(ref)) {
      this.#beingRemoved.delete(placeOf(ref));
      this.#reporter.gone(ref, sourceUid);
    }
    return outcome;
  }

  /** Whether what stands here is an Application of the cluster alone, and stays. */
  #isGivenBack(ref: ObjectRef): boolean {
    const local = this.#view.get(ref);
    return local !== undefined && isUnmarked(local) && !isDeleting(local);
  }

  #tellOfLeave(ref: ObjectRef, copy: Application | undefined, source: Application): void {
    const goes = copy !== undefined && asksForWorkload(copy) && asksForWorkload(source);
    const message =
      isStillThere(source) && copy?.metadata.annotations?.[annotations.takenOver] !== undefined
        ? 'Application is given back: it was here before the principal sent it'
        : goes
          ? 'Application leaves, and Argo CD removes what it deployed'
          : 'Application leaves, what it deployed stays: its last state on the hub does not ask for its removal';
    this.#log.info({ application: placeOf(ref) }, message);
  }

  #localChange(ref: ObjectRef, change: StoreChange<Application>): void {
    const { old, now } = change;
    const place = placeOf(ref);
    const desired = this.#keeper.desired(ref);
    if (desired?.ownRefresh === true && (now === undefined || triggersOf(now)[annotations.refresh] === undefined)) {
      this.#keeper.desire(ref, { ...desired, ownRefresh: false });
    }
    this.#operations.localChange(ref, now);
    const message = this.#actions.overruled(ref, now);
    if (message !== undefined) {
      this.#inbox?.receive({ is: 'termination', ref, id: this.#newId(), message });
    }
    this.#stuckDeletions.follow(ref, isManaged(now) ? now : undefined);
    this.#reporter.changed(ref);
    const removed = this.#beingRemoved.get(place);
    // Somebody's own Application may stand in its place by the time that is seen.
    if (removed !== undefined && old?.metadata.uid === removed.uid && now?.metadata.uid !== removed.uid) {
      this.#beingRemoved.delete(place);
      if (old?.metadata.deletionTimestamp !== undefined) {
        this.#reporter.gone(ref, removed.source);
      }
    }
    this.#keeper.localChange(ref, change);
  }

  #acknowledge(work: CopyWork): void {
    if (work.is !== 'message' && work.is !== 'operation' && work.is !== 'refused') {
      return;
    }
    const { ref, message } = work;
    if (this.#operations.isOpen(ref, message) || (isAwaited(message) && this.#refused.isOpen(ref, message))) {
      return;
    }
    if (work.is === 'message' || isAwaited(message)) {
      this.#connection?.acknowledge(message);
    }
    // A report counts as an answer to a request only after this; with `create` the principal asks for what it missed.
    const { type, object } = message;
    if (
      (type === 'create' && this.#reporter.hasReported(ref)) ||
      type === 'set-operation' ||
      type === 'terminate-operation' ||
      Object.keys(triggersOf(object)).length > 0
    ) {
      this.#reporter.repeat(ref);
    }
  }
}
