import { randomUUID } from 'node:crypto';
import {
  type Backoff,
  backoffDelay,
  type Clock,
  Inbox,
  type InboxOutcome,
  type ObjectRef,
  Outbox,
  type ResourceKey,
  refOf,
  type Snapshot,
  type Store,
  type StoreChange,
  systemClock,
  View,
} from '../../sync/index.ts';
import type { Application } from '../application.ts';
import { annotations } from '../names.ts';
import type { AgentKind, Copy, MirrorPart, ObjectMessage, PrincipalPeerInfo } from '../parts/part.ts';
import { idOf, isState, placeOf, supersedes, type Work } from './agent-work.ts';
import { announcementOf, copiedFrom } from './announcements.ts';
import { sourceUidOf } from './copy.ts';
import { CopyWriter } from './copy-writer.ts';
import { Errands } from './errands.ts';
import { displayName, type SyncLog } from './log.ts';
import type { ApplicationMessage, PeerConnection, RequestUpdate } from './messages.ts';
import {
  type AdoptionPolicy,
  type MismatchPolicy,
  newTriggers,
  type Plan,
  planDeletion,
  planManagedApplication,
  planOperation,
  planTermination,
} from './plan.ts';
import { type RecreatePolicy, recreated } from './recreate.ts';
import type { SyncStats } from './stats.ts';
import { reportDigest, withAgentError } from './status.ts';
import { Territory, type TerritoryOptions } from './territory.ts';
import { isAstray, isUnmarked, settled, type Wanted, wantedAfter, wantedAsFound } from './wanted.ts';

/** How an {@link AgentSync} works. */
export interface AgentSyncOptions extends TerritoryOptions {
  readonly applications: Store<Application>;
  /** Makes a missing namespace; without it, that one is missing is told on the hub's Application. */
  readonly ensureNamespace?: ((namespace: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly mismatchPolicy: MismatchPolicy;
  readonly adoptionPolicy: AdoptionPolicy;
  readonly onRecreate: RecreatePolicy;
  readonly log: SyncLog;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly newId?: () => string;
  /** Wall-clock time, for condition times. */
  readonly today?: () => Date;
  readonly maxInFlight?: number;
  readonly concurrency?: number;
  readonly resend?: Backoff;
}

interface Problem {
  readonly message: string;
  readonly attempt: number;
  readonly cancelRetry: () => void;
}

const retryRefused: Backoff = { baseMs: 2_000, factor: 2, capMs: 300_000, jitter: 0.5 };
/**
 * The managed cluster's side of managed mode: makes Applications what the principal says, puts back what others change,
 * and reports status. It knows stores, a connection and a clock, no Kubernetes and no gRPC.
 *
 * Writing is level-triggered: what the principal said last is remembered per Application, and every message, every
 * local change and every retry only leads to one look at it and at the object, in the Application's own lane. Reporting
 * is an outbox that reads the object when the link takes it.
 */
export class AgentSync implements AgentKind<MirrorPart> {
  readonly kind = 'Application';
  readonly #options: AgentSyncOptions;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #newId: () => string;
  readonly #log: SyncLog;

  readonly #territory: Territory;
  readonly #view: View<Application>;
  readonly #wanted = new Map<string, Wanted>();
  /** What had started last when an operation was first tried. */
  readonly #operations = new WeakMap<ApplicationMessage, { readonly startedAt: unknown }>();
  readonly #problems = new Map<string, Problem>();
  readonly #snapshots = new WeakMap<Application, { problem: string | undefined; snapshot: Snapshot<Application> }>();
  readonly #reports: Outbox<Application>;
  readonly #errands: Errands;
  readonly #writer: CopyWriter;
  #inbox: Inbox<Work> | undefined;
  #connection: PeerConnection | undefined;

  constructor(options: AgentSyncOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#newId = options.newId ?? randomUUID;
    this.#log = options.log;
    this.#territory = new Territory(options);
    this.#view = new View({
      clock: this.#clock,
      changed: (ref, change) => this.#localChange(ref, change),
      doubted: (ref) => this.#inbox?.receive({ is: 'doubt', ref, id: this.#newId() }),
    });
    const delivery = {
      clock: this.#clock,
      random: this.#random,
      ...(options.resend === undefined ? {} : { resend: options.resend }),
      ...(options.maxInFlight === undefined ? {} : { maxInFlight: options.maxInFlight }),
    };
    this.#reports = new Outbox<Application>({
      ...delivery,
      source: { read: (key) => this.#report(key) },
      // That an Application is gone is said only to a principal that waits for it (see `gone`).
      sendsDeletes: false,
    });
    this.#errands = new Errands({ ...delivery, newId: this.#newId, resend: options.resend });
    this.#writer = new CopyWriter({
      store: options.applications,
      view: this.#view,
      objection: (namespace) => this.#territory.objection(namespace),
      ensureNamespace: options.ensureNamespace,
      log: this.#log,
    });
  }

  /** Starts to follow the store. Call it when the store's cache is filled, and before the first connection. */
  start(signal: AbortSignal): void {
    this.#inbox = new Inbox<Work>(
      {
        apply: (work, aborted) => this.#apply(work, aborted),
        acknowledge: (work) => this.#acknowledge(work),
        laneOf: (work) => placeOf(work.ref),
        idOf,
        supersedes,
        once: (work) => work.is === 'message' && !isState(work.message),
        onError: (error, work, attempt) =>
          this.#log.warn({ err: error, application: displayName(work.ref), attempt }, 'write failed, will retry'),
        clock: this.#clock,
        random: this.#random,
        ...(this.#options.concurrency === undefined ? {} : { concurrency: this.#options.concurrency }),
      },
      signal,
    );
    const unfollow = this.#view.follow(this.#territory.within(this.#options.applications));
    for (const application of this.#view.values()) {
      if (isManaged(application) && application.metadata.deletionTimestamp === undefined) {
        this.#wanted.set(placeOf(refOf(application)), wantedAsFound(application));
      }
    }
    signal.addEventListener('abort', () => {
      unfollow();
      this.close();
    });
  }

  /** Stops all timers. */
  close(): void {
    this.#reports.close();
    this.#errands.close();
    for (const problem of this.#problems.values()) {
      problem.cancelRetry();
    }
  }

  connected(connection: PeerConnection, { principalNamespace }: PrincipalPeerInfo): void {
    this.#connection = connection;
    this.#territory.principalNamespace = principalNamespace;
    this.#inbox?.reconnected();
    this.#errands.connected(connection);
    this.#reports.connected({
      send: (delivery) =>
        !('snapshot' in delivery) ||
        connection.send({
          target: 'application',
          type: 'status-update',
          resourceId: delivery.resourceId,
          eventId: delivery.eventId,
          object: this.#territory.asReported(delivery.snapshot.object),
        }),
    });
  }

  disconnected(): void {
    this.#connection = undefined;
    this.#errands.disconnected();
    this.#reports.disconnected();
  }

  writable(): void {
    this.#errands.writable();
    this.#reports.writable();
  }

  acknowledged({ resourceId, eventId }: { readonly resourceId: string; readonly eventId: string }): boolean {
    return this.#errands.acknowledged(resourceId, eventId) || this.#reports.acknowledged(resourceId, eventId);
  }

  receive(message: ObjectMessage): boolean {
    if (message.target !== 'application' || message.type === 'error' || message.type === 'status-update') {
      return false;
    }
    const { name, namespace } = message.object.metadata;
    this.#inbox?.receive({ is: 'message', ref: this.#territory.toLocal(name, namespace), message });
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
    return announcementOf(ref, this.#view.get(ref), {
      hubNamespace: this.#territory.toHub(ref.namespace),
      isUnderWay: this.#problems.has(placeOf(ref)) || this.#inbox?.isBusy(placeOf(ref)) === true,
    });
  }

  localRef({ name, namespace }: { readonly name: string; readonly namespace: string }): ObjectRef {
    return this.#territory.toLocal(name, namespace);
  }

  /** The principal knows no status any more. */
  sourceRestarted(): void {
    this.#reports.repeatAll();
    for (const application of this.#view.values()) {
      this.#reports.changed(keyOf(refOf(application)));
    }
  }

  stats(): SyncStats {
    return {
      pending: this.#reports.pending + this.#errands.pending,
      inFlight: this.#reports.inFlight,
      queued: this.#inbox?.queued ?? 0,
      retrying: (this.#inbox?.retrying ?? 0) + this.#problems.size,
    };
  }

  async #apply(work: Work, signal: AbortSignal): Promise<InboxOutcome> {
    if (work.is === 'doubt') {
      await this.#writer.read(work.ref, signal);
      return 'done';
    }
    if (work.is === 'look') {
      return this.#bringInStep(work.ref, work.lastSeen, undefined, signal);
    }
    const { ref, message } = work;
    const place = placeOf(ref);
    switch (message.type) {
      case 'create':
      case 'spec-update':
        this.#wanted.set(place, wantedAfter(message, this.#wanted.get(place)));
        return this.#bringInStep(
          ref,
          undefined,
          message.type === 'create' ? message.object.operation : undefined,
          signal,
        );
      case 'delete':
        return this.#remove(ref, message, signal);
      case 'set-operation':
        return this.#operate(ref, message, signal);
      case 'terminate-operation':
        return this.#runOnce(ref, (local) => planTermination(message.object, local), signal);
      case 'status-update':
        return 'done';
    }
  }

  /** The one place that makes a local Application what the principal wants. */
  async #bringInStep(
    ref: ObjectRef,
    lastSeen: Application | undefined,
    operation: Readonly<Record<string, unknown>> | undefined,
    signal: AbortSignal,
  ): Promise<InboxOutcome> {
    const place = placeOf(ref);
    const plan = (local: Application | undefined): Plan => {
      const wanted = this.#wanted.get(place);
      if (wanted === undefined) {
        return { action: 'none' };
      }
      const next = planManagedApplication(wanted, local, {
        namespace: ref.namespace,
        remapped: this.#territory.isRemapped(ref.namespace),
        mismatchPolicy: this.#options.mismatchPolicy,
        adoptionPolicy: this.#options.adoptionPolicy,
        ours: local !== undefined && isUnmarked(local) && local.metadata.uid === wanted.copyUid,
        triggers: wanted.triggers,
        operation,
      });
      return next.action === 'create' && lastSeen !== undefined
        ? { action: 'create', object: recreated(next.object, lastSeen, this.#options.onRecreate) }
        : next;
    };
    const result = await this.#writer.run(ref, plan, signal);
    switch (result.is) {
      case 'done':
        this.#solved(ref);
        this.#settle(ref, result.copy);
        return 'done';
      case 'gone':
        this.#wanted.delete(place);
        this.#solved(ref);
        this.#gone(ref, result.sourceUid);
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
    const before = this.#wanted.get(placeOf(ref));
    if (before === undefined) {
      return;
    }
    const wanted = settled(before, copy);
    this.#wanted.set(placeOf(ref), wanted);
    const now = this.#view.get(ref);
    if (copy !== undefined && (now === undefined || isAstray(now, wanted))) {
      this.#look(ref, undefined);
    }
  }

  async #operate(ref: ObjectRef, message: ApplicationMessage, signal: AbortSignal): Promise<InboxOutcome> {
    const before = this.#operations.get(message);
    const startedAt = this.#view.get(ref)?.status?.operationState?.startedAt;
    this.#operations.set(message, before ?? { startedAt });
    return this.#runOnce(ref, (local) => planOperation(message.object, local, before), signal);
  }

  async #remove(ref: ObjectRef, message: ApplicationMessage, signal: AbortSignal): Promise<InboxOutcome> {
    const sourceUid = sourceUidOf(message.object);
    const wanted = this.#wanted.get(placeOf(ref));
    if (wanted !== undefined && sourceUidOf(wanted.object) === sourceUid) {
      this.#wanted.delete(placeOf(ref));
      this.#solved(ref);
    }
    return this.#runOnce(ref, (local) => planDeletion(sourceUid, local), signal);
  }

  /** For what is not a state to keep: what cannot be done is said in the log, and over unless it may pass later. */
  async #runOnce(
    ref: ObjectRef,
    plan: (local: Application | undefined) => Plan,
    signal: AbortSignal,
  ): Promise<InboxOutcome> {
    const result = await this.#writer.run(ref, plan, signal);
    if (result.is === 'stopped') {
      this.#log.warn({ application: displayName(ref) }, result.message);
    }
    return result.is === 'unsettled' || (result.is === 'stopped' && result.mayPass) ? 'retry' : 'done';
  }

  /** Tells the principal, which keeps its deleted object until it hears this. */
  #gone(ref: ObjectRef, sourceUid: string): void {
    this.#log.info({ application: displayName(ref) }, 'Application is gone');
    const metadata = { ...ref, uid: sourceUid, annotations: { [annotations.sourceUid]: sourceUid } };
    this.#errands.post(`gone-${placeOf(ref)}`, () => ({
      target: 'application',
      type: 'delete',
      object: this.#territory.asReported({ metadata, spec: {} }),
    }));
  }

  /** Something stands in the way: the principal's user must hear it. */
  #problem(ref: ObjectRef, message: string, retry: boolean): void {
    const place = placeOf(ref);
    const before = this.#problems.get(place);
    before?.cancelRetry();
    const attempt = (before?.attempt ?? 0) + 1;
    const cancelRetry = retry
      ? this.#clock.after(backoffDelay(retryRefused, attempt, this.#random()), () => this.#look(ref, undefined))
      : () => undefined;
    this.#problems.set(place, { message, attempt, cancelRetry });
    if (before?.message === message) {
      return;
    }
    this.#log.error({ application: displayName(ref), attempt }, `Application cannot be brought in step: ${message}`);
    if (isManaged(this.#view.get(ref))) {
      this.#reports.changed(keyOf(ref));
    } else {
      const error = () => ({ ...this.#territory.toldOf(ref), message });
      this.#errands.post(`error-${place}`, () => ({ target: 'application', type: 'error', error: error() }));
    }
  }

  #solved(ref: ObjectRef): void {
    const place = placeOf(ref);
    const problem = this.#problems.get(place);
    if (problem !== undefined) {
      problem.cancelRetry();
      this.#problems.delete(place);
      this.#errands.withdraw(`error-${place}`);
      this.#reports.repeat(keyOf(ref));
    }
  }

  #localChange(ref: ObjectRef, { old, now }: StoreChange<Application>): void {
    this.#reports.changed(keyOf(ref));
    const wanted = this.#wanted.get(placeOf(ref));
    if (wanted !== undefined && (now === undefined || isAstray(now, wanted))) {
      this.#look(ref, now === undefined ? old : undefined);
    }
  }

  #look(ref: ObjectRef, lastSeen: Application | undefined): void {
    this.#inbox?.receive({ is: 'look', ref, id: this.#newId(), lastSeen });
  }

  #report(key: ResourceKey): Snapshot<Application> | undefined {
    const local = this.#view.get(key);
    if (local === undefined || !isManaged(local)) {
      return undefined;
    }
    const problem = this.#problems.get(placeOf(key))?.message;
    const known = this.#snapshots.get(local);
    if (known !== undefined && known.problem === problem) {
      return known.snapshot;
    }
    const object =
      problem === undefined
        ? local
        : { ...local, status: withAgentError(local.status ?? {}, problem, this.#options.today?.() ?? new Date()) };
    const snapshot = {
      uid: local.metadata.uid ?? '',
      version: local.metadata.resourceVersion ?? '',
      digest: `${problem ?? ''}/${reportDigest(local)}`,
      object,
    };
    this.#snapshots.set(local, { problem, snapshot });
    return snapshot;
  }

  #acknowledge(work: Work): void {
    if (work.is === 'look' || work.is === 'doubt') {
      return;
    }
    this.#connection?.acknowledge(work.message);
    if (work.is === 'message') {
      // A report counts as an answer to a request only after this; with `create` the principal asks for what it missed.
      const { type, object } = work.message;
      if (
        (type === 'create' && this.#reports.held(keyOf(work.ref)) !== undefined) ||
        type === 'set-operation' ||
        type === 'terminate-operation' ||
        Object.keys(newTriggers(object, undefined)).length > 0
      ) {
        this.#reports.repeat(keyOf(work.ref));
      }
    }
  }
}

function isManaged(local: Application | undefined): boolean {
  return local !== undefined && !isUnmarked(local);
}

function keyOf({ namespace, name }: ObjectRef): ResourceKey {
  return { kind: 'Application', namespace, name };
}
