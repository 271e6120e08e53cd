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
  type Snapshot,
  type Store,
  type StoreChange,
  systemClock,
  View,
} from '../../sync/index.ts';
import type { Application } from '../application.ts';
import { annotations } from '../names.ts';
import { idOf, isState, nameOf, supersedes, type Work } from './agent-work.ts';
import { Announcements } from './announcements.ts';
import { sourceUidOf } from './copy.ts';
import { CopyWriter } from './copy-writer.ts';
import { Errands } from './errands.ts';
import type { SyncLog } from './log.ts';
import type { ApplicationMessage, Message, PeerConnection, ResyncMessage } from './messages.ts';
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
import { isAstray, isUnmarked, settled, type Wanted, wantedAfter, wantedAsFound } from './wanted.ts';

/** How an {@link AgentSync} works. */
export interface AgentSyncOptions {
  readonly applications: Store<Application>;
  /** Namespace of the copies. */
  readonly namespace: string;
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
export class AgentSync {
  readonly #options: AgentSyncOptions;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #newId: () => string;
  readonly #log: SyncLog;

  readonly #view: View<Application>;
  readonly #wanted = new Map<string, Wanted>();
  /** What had started last when an operation was first tried. */
  readonly #operations = new WeakMap<ApplicationMessage, { readonly startedAt: unknown }>();
  readonly #problems = new Map<string, Problem>();
  readonly #snapshots = new WeakMap<Application, { problem: string | undefined; snapshot: Snapshot<Application> }>();
  readonly #reports: Outbox<Application>;
  readonly #errands: Errands;
  readonly #announcements: Announcements;
  readonly #writer: CopyWriter;
  #inbox: Inbox<Work> | undefined;
  #connection: PeerConnection | undefined;
  #announcedOn: PeerConnection | undefined;

  constructor(options: AgentSyncOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#newId = options.newId ?? randomUUID;
    this.#log = options.log;
    this.#view = new View({
      clock: this.#clock,
      changed: (ref, change) => this.#localChange(ref, change),
      doubted: (ref) => this.#inbox?.receive({ is: 'doubt', name: ref.name, id: this.#newId() }),
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
    const { namespace, log } = options;
    this.#announcements = new Announcements(
      this.#view,
      this.#errands,
      namespace,
      (name) => this.#problems.has(name) || this.#inbox?.isBusy(name) === true,
    );
    this.#writer = new CopyWriter(options.applications, this.#view, namespace, log);
  }

  /** Starts to follow the store. Call it when the store's cache is filled, and before the first connection. */
  start(signal: AbortSignal): void {
    this.#inbox = new Inbox<Work>(
      {
        apply: (work, aborted) => this.#apply(work, aborted),
        acknowledge: (work) => this.#acknowledge(work),
        laneOf: (work) => (work.is === 'resync' ? '' : nameOf(work)),
        idOf,
        supersedes,
        once: (work) => work.is === 'message' && !isState(work.message),
        onError: (error, work, attempt) =>
          this.#log.warn(
            { err: error, application: work.is === 'resync' ? undefined : nameOf(work), attempt },
            'write failed, will retry',
          ),
        clock: this.#clock,
        random: this.#random,
        ...(this.#options.concurrency === undefined ? {} : { concurrency: this.#options.concurrency }),
      },
      signal,
    );
    const unfollow = this.#view.follow(this.#options.applications);
    for (const application of this.#view.values()) {
      if (this.#isManaged(application) && application.metadata.deletionTimestamp === undefined) {
        this.#wanted.set(application.metadata.name, wantedAsFound(application));
      }
    }
    signal.addEventListener('abort', () => {
      unfollow();
      this.#reports.close();
      this.#errands.close();
      for (const problem of this.#problems.values()) {
        problem.cancelRetry();
      }
    });
  }

  /** The principal is there. */
  connected(connection: PeerConnection): void {
    this.#connection = connection;
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
          object: delivery.snapshot.object,
        }),
    });
    if (this.#announcedOn === undefined) {
      this.#announcedOn = connection;
      this.#announcements.postAll();
      this.#announcements.postList();
    }
  }

  /** The connection is gone; ignored when a newer one has taken its place. */
  disconnected(connection: PeerConnection): void {
    if (this.#connection === connection) {
      this.#connection = undefined;
      this.#errands.disconnected();
      this.#reports.disconnected();
    }
  }

  /** The connection takes more after it had refused. */
  writable(): void {
    this.#errands.writable();
    this.#reports.writable();
  }

  /** The principal processed an event of ours. */
  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): void {
    if (!this.#errands.acknowledged(event.resourceId, event.eventId)) {
      this.#reports.acknowledged(event.resourceId, event.eventId);
    }
  }

  /** Takes a message of the principal. It is acknowledged when it is done. */
  receive(message: Message): void {
    if (message.target === 'application' && message.type !== 'error' && message.type !== 'status-update') {
      this.#inbox?.receive({ is: 'message', message });
    } else if (message.target === 'resourceResync') {
      this.#inbox?.receive({ is: 'resync', message });
    } else {
      this.#log.warn({ target: message.target, type: message.type }, 'a managed agent takes no such message');
      this.#connection?.acknowledge(message);
    }
  }

  /** Figures for metrics. */
  stats(): SyncStats {
    return {
      pending: this.#reports.pending + this.#errands.pending,
      inFlight: this.#reports.inFlight,
      queued: this.#inbox?.queued ?? 0,
      retrying: (this.#inbox?.retrying ?? 0) + this.#problems.size,
    };
  }

  async #apply(work: Work, signal: AbortSignal): Promise<InboxOutcome> {
    if (work.is === 'resync') {
      return this.#resync(work.message, signal);
    }
    if (work.is === 'doubt') {
      await this.#writer.read(work.name, signal);
      return 'done';
    }
    if (work.is === 'look') {
      return this.#bringInStep(work.name, work.lastSeen, undefined, signal);
    }
    const { message } = work;
    const name = message.object.metadata.name;
    switch (message.type) {
      case 'create':
      case 'spec-update':
        this.#wanted.set(name, wantedAfter(message, this.#wanted.get(name)));
        return this.#bringInStep(
          name,
          undefined,
          message.type === 'create' ? message.object.operation : undefined,
          signal,
        );
      case 'delete':
        return this.#remove(message, signal);
      case 'set-operation':
        return this.#operate(name, message, signal);
      case 'terminate-operation':
        return this.#runOnce(name, (local) => planTermination(message.object, local), signal);
      case 'status-update':
        return 'done';
    }
  }

  /** The one place that makes a local Application what the principal wants. */
  async #bringInStep(
    name: string,
    lastSeen: Application | undefined,
    operation: Readonly<Record<string, unknown>> | undefined,
    signal: AbortSignal,
  ): Promise<InboxOutcome> {
    const plan = (local: Application | undefined): Plan => {
      const wanted = this.#wanted.get(name);
      if (wanted === undefined) {
        return { action: 'none' };
      }
      const next = planManagedApplication(wanted, local, {
        namespace: this.#options.namespace,
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
    const result = await this.#writer.run(name, plan, signal);
    switch (result.is) {
      case 'done':
        this.#solved(name);
        this.#settle(name, result.copy);
        return 'done';
      case 'gone':
        this.#wanted.delete(name);
        this.#solved(name);
        this.#gone(name, result.sourceUid);
        return 'done';
      case 'stopped':
        this.#settle(name, undefined);
        this.#problem(name, result.message, result.rejected);
        return 'done';
      case 'unsettled':
        return 'retry';
    }
  }

  #settle(name: string, copy: Application | undefined): void {
    const before = this.#wanted.get(name);
    if (before === undefined) {
      return;
    }
    const wanted = settled(before, copy);
    this.#wanted.set(name, wanted);
    const now = this.#view.get(this.#refOf(name));
    if (copy !== undefined && (now === undefined || isAstray(now, wanted))) {
      this.#look(name, undefined);
    }
  }

  async #operate(name: string, message: ApplicationMessage, signal: AbortSignal): Promise<InboxOutcome> {
    const before = this.#operations.get(message);
    const startedAt = this.#view.get(this.#refOf(name))?.status?.operationState?.startedAt;
    this.#operations.set(message, before ?? { startedAt });
    return this.#runOnce(name, (local) => planOperation(message.object, local, before), signal);
  }

  async #remove(message: ApplicationMessage, signal: AbortSignal): Promise<InboxOutcome> {
    const name = message.object.metadata.name;
    const sourceUid = sourceUidOf(message.object);
    const wanted = this.#wanted.get(name);
    if (wanted !== undefined && sourceUidOf(wanted.object) === sourceUid) {
      this.#wanted.delete(name);
      this.#solved(name);
    }
    return this.#runOnce(name, (local) => planDeletion(sourceUid, local), signal);
  }

  /** For what is not a state to keep: when it cannot be done, it is said in the log, and over. */
  async #runOnce(
    name: string,
    plan: (local: Application | undefined) => Plan,
    signal: AbortSignal,
  ): Promise<InboxOutcome> {
    const result = await this.#writer.run(name, plan, signal);
    if (result.is === 'stopped') {
      this.#log.warn({ application: name }, result.message);
    }
    return result.is === 'unsettled' ? 'retry' : 'done';
  }

  /** Tells the principal, which keeps its deleted object until it hears this. */
  #gone(name: string, sourceUid: string): void {
    this.#log.info({ application: name }, 'Application is gone');
    const metadata = {
      name,
      namespace: this.#options.namespace,
      uid: sourceUid,
      annotations: { [annotations.sourceUid]: sourceUid },
    };
    this.#errands.post(`gone-${name}`, () => ({
      target: 'application',
      type: 'delete',
      object: { metadata, spec: {} },
    }));
  }

  /** Something stands in the way: the principal's user must hear it. */
  #problem(name: string, message: string, retry: boolean): void {
    const before = this.#problems.get(name);
    before?.cancelRetry();
    const attempt = (before?.attempt ?? 0) + 1;
    const cancelRetry = retry
      ? this.#clock.after(backoffDelay(retryRefused, attempt, this.#random()), () => this.#look(name, undefined))
      : () => undefined;
    this.#problems.set(name, { message, attempt, cancelRetry });
    if (before?.message === message) {
      return;
    }
    this.#log.error({ application: name, attempt }, `Application cannot be brought in step: ${message}`);
    if (this.#isManaged(this.#view.get(this.#refOf(name)))) {
      this.#reports.changed(keyOf(name, this.#options.namespace));
    } else {
      const error = { resourceName: name, resourceNamespace: this.#options.namespace, message };
      this.#errands.post(`error-${name}`, () => ({ target: 'application', type: 'error', error }));
    }
  }

  #solved(name: string): void {
    const problem = this.#problems.get(name);
    if (problem !== undefined) {
      problem.cancelRetry();
      this.#problems.delete(name);
      this.#errands.withdraw(`error-${name}`);
      this.#reports.repeat(keyOf(name, this.#options.namespace));
    }
  }

  #localChange(ref: ObjectRef, { old, now }: StoreChange<Application>): void {
    if (ref.namespace !== this.#options.namespace) {
      return;
    }
    this.#reports.changed(keyOf(ref.name, ref.namespace));
    const wanted = this.#wanted.get(ref.name);
    if (wanted !== undefined && (now === undefined || isAstray(now, wanted))) {
      this.#look(ref.name, now === undefined ? old : undefined);
    }
  }

  #look(name: string, lastSeen: Application | undefined): void {
    this.#inbox?.receive({ is: 'look', name, id: this.#newId(), lastSeen });
  }

  #report(key: ResourceKey): Snapshot<Application> | undefined {
    const local = this.#view.get(key);
    if (local === undefined || !this.#isManaged(local)) {
      return undefined;
    }
    const problem = this.#problems.get(key.name)?.message;
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
      // The principal believes a report about an operation or a refresh only if it comes after this acknowledgement.
      const { type, object } = work.message;
      if (
        type === 'set-operation' ||
        type === 'terminate-operation' ||
        Object.keys(newTriggers(object, undefined)).length > 0
      ) {
        this.#reports.repeat(keyOf(object.metadata.name, this.#options.namespace));
      }
    }
  }

  async #resync(message: ResyncMessage, signal: AbortSignal): Promise<InboxOutcome> {
    switch (message.type) {
      case 'request-resource-resync':
        // The principal restarted: it knows neither what is here nor how it fares.
        if (this.#announcedOn !== this.#connection) {
          this.#announcedOn = this.#connection;
          this.#announcements.postAll();
        }
        this.#reports.repeatAll();
        for (const { metadata } of this.#view.values()) {
          this.#reports.changed(keyOf(metadata.name, metadata.namespace ?? ''));
        }
        // The acknowledgement then tells the principal that it has heard of everything that is here.
        await this.#errands.allDelivered(signal);
        return 'done';
      case 'response-synced-resource':
        if (message.payload.kind === 'Application') {
          this.#announcements.post(message.payload.name);
        }
        return 'done';
      default:
        this.#log.warn({ type: message.type }, 'a managed agent takes no such message');
        return 'done';
    }
  }

  #isManaged(local: Application | undefined): boolean {
    return local !== undefined && local.metadata.namespace === this.#options.namespace && !isUnmarked(local);
  }

  #refOf(name: string): ObjectRef {
    return { namespace: this.#options.namespace, name };
  }
}

function keyOf(name: string, namespace: string): ResourceKey {
  return { kind: 'Application', namespace, name };
}
