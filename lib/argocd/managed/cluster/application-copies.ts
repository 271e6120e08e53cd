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
import { annotations } from '../../names.ts';
import type { AgentKind, ConnectedPrincipal, Copy, CopySync, ObjectMessage } from '../../peer/kind-sync.ts';
import type { ApplicationMessage, PeerConnection, RequestUpdate } from '../../peer/messages.ts';
import type { SyncStats } from '../../peer/stats.ts';
import { placeOf } from '../../place.ts';
import { triggersOf } from '../../triggers.ts';
import { ApplicationWriter } from '../../writing/application-writer.ts';
import { ConflictBackoff } from '../../writing/conflict-backoff.ts';
import { Failures } from '../../writing/failures.ts';
import type { Plan } from '../../writing/plan.ts';
import { sourceUidOf } from '../copy.ts';
import { AgentNamespaces, type AgentNamespacesOptions } from './agent-namespaces.ts';
import { CopyActions } from './copy-actions.ts';
import { type AdoptionPolicy, type MismatchPolicy, planManagedApplication } from './copy-plan.ts';
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

/** How an {@link ApplicationCopies} works. */
export interface ApplicationCopiesOptions extends AgentNamespacesOptions {
  readonly applications: Store<Application>;
  /** Makes a missing namespace; without it, that one is missing is told on the hub's Application. */
  readonly ensureNamespace?: ((namespace: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly mismatchPolicy: MismatchPolicy;
  readonly adoptionPolicy: AdoptionPolicy;
  readonly onRecreate: RecreatePolicy;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/**
 * The managed cluster's side of managed mode: makes Applications what the principal says, puts back what others change,
 * and reports status. It knows stores, a connection and a clock, no Kubernetes and no gRPC.
 *
 * Writing is level-triggered: what the principal said last is remembered per Application, and every message, every
 * local change and every retry only leads to one look at it and at the object, in the Application's own lane. Reporting
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
  readonly #desired = new Map<string, DesiredCopy>();
  readonly #failures: Failures;
  /** Copies that go with their source, by place: the principal is told when they are gone, whatever becomes of their marks. */
  readonly #beingRemoved = new Map<string, { readonly uid: string | undefined; readonly source: string }>();
  readonly #conflicts: ConflictBackoff;
  readonly #stuckDeletions: StuckDeletions;
  readonly #reporter: Reporter;
  readonly #writer: ApplicationWriter;
  readonly #actions: CopyActions;
  readonly #operations: Operations;
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
      doubted: (ref) => this.#inbox?.receive({ is: 'doubt', ref, id: this.#newId() }),
    });
    this.#today = options.runtime.today;
    this.#reporter = new Reporter({
      view: this.#view,
      namespaces: this.#namespaces,
      additionsFor: (ref) => ({
        problem: this.#failures.of(placeOf(ref)),
        warning: this.#conflicts.warningOf(ref),
        ownRefresh: this.#desired.get(placeOf(ref))?.ownRefresh === true,
      }),
      runtime: options.runtime,
      tuning: options.tuning,
    });
    this.#failures = new Failures(options.runtime);
    this.#conflicts = new ConflictBackoff({
      noun: 'Application',
      logFields: (ref) => ({ application: placeOf(ref) }),
      runtime: options.runtime,
      changed: (ref) => this.#reporter.repeat(ref),
    });
    this.#stuckDeletions = new StuckDeletions({
      runtime: options.runtime,
      nudge: (ref) => this.#inbox?.receive({ is: 'nudge', ref, id: this.#newId() }),
    });
    this.#writer = new ApplicationWriter({
      store: options.applications,
      view: this.#view,
      objection: (namespace) => this.#namespaces.objection(namespace),
      ensureNamespace: options.ensureNamespace,
      log: this.#log,
    });
    this.#actions = new CopyActions({ writer: this.#writer, view: this.#view, log: this.#log });
    this.#operations = new Operations({
      runtime: options.runtime,
      view: this.#view,
      actions: this.#actions,
      again: (ref, message) => this.#inbox?.receive({ is: 'operation', ref, id: this.#newId(), message }),
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
        once: (work) => work.is === 'message' && !isState(work.message),
        isOwn: (work) => work.is !== 'message',
        onError: (error, work, attempt) =>
          this.#log.warn({ err: error, application: placeOf(work.ref), attempt }, 'write failed, will retry'),
        runtime: this.#options.runtime,
        tuning: this.#options.tuning,
      },
      signal,
    );
    const unfollow = this.#view.follow(this.#namespaces.within(this.#options.applications));
    for (const application of this.#view.values()) {
      const place = placeOf(refOf(application));
      if (isManaged(application) && application.metadata.deletionTimestamp === undefined) {
        this.#desired.set(place, desiredCopyAsFound(application));
        this.#operations.found(application);
      } else if (isManaged(application)) {
        this.#beingRemoved.set(place, { uid: application.metadata.uid, source: copiedFrom(application) });
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
    this.#conflicts.close();
    this.#stuckDeletions.close();
    this.#failures.close();
    this.#operations.close();
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
    this.#inbox?.receive({ is: 'message', ref: this.#namespaces.toLocal(name, namespace), message });
    return true;
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

  holding(ref: ObjectRef): RequestUpdate {
    return heldCopy(ref, this.#view.get(ref), {
      hubNamespace: this.#namespaces.toHub(ref.namespace),
      isUnderWay: this.#failures.has(placeOf(ref)) || this.#inbox?.isBusy(placeOf(ref)) === true,
    });
  }

  localRef({ name, namespace }: { readonly name: string; readonly namespace: string }): ObjectRef {
    return this.#namespaces.toLocal(name, namespace);
  }

  /** The principal knows no status any more. */
  sourceRestarted(): void {
    this.#reporter.repeatAll();
  }

  stats(): SyncStats {
    return {
      pending: this.#reporter.pending,
      inFlight: this.#reporter.inFlight,
      queued: (this.#inbox?.queued ?? 0) + this.#operations.size,
      retrying: (this.#inbox?.retrying ?? 0) + this.#failures.size + this.#conflicts.active,
    };
  }

  async #apply(work: CopyWork, signal: AbortSignal): Promise<InboxOutcome> {
    if (work.is === 'doubt') {
      await this.#writer.read(work.ref, signal);
      return 'done';
    }
    if (work.is === 'look') {
      return this.#bringInStep(work.ref, { lastSeen: work.lastSeen, putsBack: true }, signal);
    }
    if (work.is === 'nudge') {
      return this.#actions.nudge(work.ref, this.#today(), signal);
    }
    const { ref, message } = work;
    if (work.is === 'operation') {
      return this.#operations.resume(ref, message, signal);
    }
    if (work.is === 'termination') {
      return this.#actions.terminate(ref, message, signal);
    }
    const place = placeOf(ref);
    switch (message.type) {
      case 'create':
      case 'spec-update': {
        this.#desired.set(place, desiredCopyAfter(message, this.#desired.get(place)));
        if (this.#beingRemoved.get(place)?.source === sourceUidOf(message.object)) {
          this.#beingRemoved.delete(place);
        }
        const outcome = await this.#bringInStep(ref, {}, signal);
        // A Go principal sends an operation along.
        return outcome === 'done' && message.type === 'create' && message.object.operation !== undefined
          ? this.#operations.start(ref, message, signal)
          : outcome;
      }
      case 'delete':
        return this.#remove(ref, message, signal);
      case 'set-operation':
        return this.#operations.start(ref, message, signal);
      case 'terminate-operation':
        return this.#actions.terminate(ref, message, signal);
      case 'status-update':
        return 'done';
    }
  }

  /** The one place that makes a local Application what the principal wants. */
  async #bringInStep(
    ref: ObjectRef,
    occasion: {
      /** What somebody deleted. */
      readonly lastSeen?: Application | undefined;
      /** The hub did not change. */
      readonly putsBack?: boolean;
    },
    signal: AbortSignal,
  ): Promise<InboxOutcome> {
    const place = placeOf(ref);
    const { lastSeen, putsBack = false } = occasion;
    let wrote = false;
    const plan = (local: Application | undefined): Plan => {
      const desired = this.#desired.get(place);
      if (desired === undefined) {
        return { action: 'none' };
      }
      const next = planManagedApplication(desired, local, {
        namespace: ref.namespace,
        remapped: this.#namespaces.isRemapped(ref.namespace),
        mismatchPolicy: this.#options.mismatchPolicy,
        adoptionPolicy: this.#options.adoptionPolicy,
        ours: local !== undefined && isUnmarked(local) && local.metadata.uid === desired.copyUid,
        triggers: desired.triggers,
        refreshes: putsBack,
      });
      wrote ||= next.action === 'create' || (next.action === 'update' && next.patch.spec !== undefined);
      if (next.action === 'update' && next.refreshes === true) {
        this.#desired.set(place, { ...desired, ownRefresh: true });
      }
      return next.action === 'create' && lastSeen !== undefined
        ? { action: 'create', object: recreated(next.object, lastSeen, this.#options.onRecreate, this.#today()) }
        : next;
    };
    const result = await this.#writer.run(ref, plan, signal);
    if (putsBack && wrote && result.is === 'done') {
      this.#conflicts.recordPutBack(ref);
    }
    switch (result.is) {
      case 'done':
        this.#solved(ref);
        this.#settle(ref, result.copy);
        return 'done';
      case 'gone':
        this.#desired.delete(place);
        this.#operations.forget(ref, result.sourceUid);
        this.#solved(ref);
        this.#conflicts.forget(ref);
        this.#reporter.gone(ref, result.sourceUid);
        return 'done';
      case 'stopped':
        this.#settle(ref, undefined);
        this.#problem(ref, result.message, result.rejected);
        return 'done';
      case 'unsettled':
        return 'retry';
    }
  }

  #settle(ref: ObjectRef, copy: Application | undefined): void {
    const before = this.#desired.get(placeOf(ref));
    if (before === undefined) {
      return;
    }
    const desired = settledCopy(before, copy);
    this.#desired.set(placeOf(ref), desired);
    const now = this.#view.get(ref);
    // What was looked at a moment ago, and left as it is, would be left again: only something else is a reason to look.
    if (copy !== undefined && now !== copy && (now === undefined || hasCopyDrifted(now, desired))) {
      this.#conflicts.whenDue(ref, () => this.#look(ref, undefined));
    }
  }

  async #remove(ref: ObjectRef, message: ApplicationMessage, signal: AbortSignal): Promise<InboxOutcome> {
    const sourceUid = sourceUidOf(message.object);
    const place = placeOf(ref);
    const desired = this.#desired.get(place);
    const last = desired !== undefined && sourceUidOf(desired.object) === sourceUid ? desired.object : undefined;
    this.#operations.forget(ref, sourceUid);
    const copy = this.#view.get(ref);
    if (copiedFrom(copy) === sourceUid) {
      this.#beingRemoved.set(place, { uid: copy?.metadata.uid, source: sourceUid });
    } else {
      this.#reporter.gone(ref, sourceUid);
    }
    const outcome = await this.#actions.delete(ref, sourceUid, last, signal);
    if (outcome === 'retry') {
      return outcome;
    }
    if (last !== undefined) {
      this.#desired.delete(place);
      this.#solved(ref);
      this.#conflicts.forget(ref);
    }
    return outcome;
  }

  /** Something stands in the way: the principal's user must hear it. */
  #problem(ref: ObjectRef, message: string, retry: boolean): void {
    const again = retry ? () => this.#look(ref, undefined) : undefined;
    if (!this.#failures.met(placeOf(ref), message, again)) {
      return;
    }
    this.#log.error({ application: placeOf(ref) }, `Application cannot be brought in step: ${message}`);
    this.#reporter.problem(ref, message);
  }

  #solved(ref: ObjectRef): void {
    if (this.#failures.solved(placeOf(ref))) {
      this.#reporter.solved(ref);
    }
  }

  #localChange(ref: ObjectRef, { old, now }: StoreChange<Application>): void {
    const place = placeOf(ref);
    const desired = this.#desired.get(place);
    if (desired?.ownRefresh === true && (now === undefined || triggersOf(now)[annotations.refresh] === undefined)) {
      this.#desired.set(place, { ...desired, ownRefresh: false });
    }
    this.#operations.localChange(ref, now);
    const message = this.#actions.overruled(ref, now);
    if (message !== undefined) {
      this.#inbox?.receive({ is: 'termination', ref, id: this.#newId(), message });
    }
    this.#stuckDeletions.follow(ref, isManaged(now) ? now : undefined);
    this.#reporter.changed(ref);
    const removed = this.#beingRemoved.get(place);
    if (now === undefined && removed !== undefined && old?.metadata.uid === removed.uid) {
      this.#beingRemoved.delete(place);
      if (old?.metadata.deletionTimestamp !== undefined) {
        this.#reporter.gone(ref, removed.source);
      }
    }
    if (desired !== undefined && (now === undefined || hasCopyDrifted(now, desired))) {
      this.#conflicts.whenDue(ref, () => this.#look(ref, now === undefined ? old : undefined));
    }
  }

  #look(ref: ObjectRef, lastSeen: Application | undefined): void {
    this.#inbox?.receive({ is: 'look', ref, id: this.#newId(), lastSeen });
  }

  #acknowledge(work: CopyWork): void {
    if (work.is !== 'message' && work.is !== 'operation') {
      return;
    }
    const { ref, message } = work;
    if (this.#operations.isOpen(ref, message)) {
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
