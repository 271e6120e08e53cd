import {
  type Clock,
  Inbox,
  type InboxOutcome,
  type ObjectRef,
  Outbox,
  type ResourceKey,
  type Runtime,
  type Snapshot,
  type Store,
  type Tuning,
  View,
} from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { specChecksum } from '../../checksums.ts';
import { withAgentWarning } from '../../managed/status.ts';
import { annotations } from '../../names.ts';
import type { AgentKind, ConnectedPrincipal, Listed, ObjectMessage, SourceSync } from '../../peer/kind-sync.ts';
import type { ApplicationMessage, PeerConnection, RequestUpdate } from '../../peer/messages.ts';
import { SourcePeer } from '../../peer/source-peer.ts';
import { stateMessage } from '../../peer/state-message.ts';
import type { SyncStats } from '../../peer/stats.ts';
import { placeOf } from '../../place.ts';
import { isSkipped } from '../../routing.ts';
import { Terminations } from '../../terminations.ts';
import { applicationNames } from '../../writing/kind-names.ts';
import type { Plan } from '../../writing/plan.ts';
import { PlanWriter } from '../../writing/plan-writer.ts';
import { RefusedRequests } from '../../writing/refused-requests.ts';
import { fieldsOfSource, hubSpecOf, mirrorDigest, mirroredUid } from '../mirror.ts';
import type { OperationObjection, OperationRevisions } from './operation-admission.ts';
import { isUnderWay, planComparison, planOwnOperation, planOwnTermination, planOwnTriggers } from './request-plan.ts';
import { SetOperations } from './set-operations.ts';

/** How {@link ClusterApplications} work. */
export interface ClusterApplicationsOptions {
  /** Applications of the agent's cluster; others than those of its namespace do not exist to it. */
  readonly applications: Store<Application>;
  /** The agent's namespace. */
  readonly namespace: string;
  /** Which revisions an operation of the hub may name. Default: those that the cluster knows. */
  readonly revisions?: OperationRevisions | undefined;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/** A request of a user on the mirror. */
interface Intent {
  readonly ref: ObjectRef;
  readonly message: ApplicationMessage;
  /** Set when the request is processed again. */
  readonly again?: string;
  /** It was refused before, and so is not acknowledged yet. */
  readonly wasRefused?: boolean;
}

/**
 * A Go principal takes a creation for done while what was there before is still being deleted. One that follows a deletion
 * so soon is therefore sent once more a little later.
 */
const soonMs = 30_000;
const againMs = 5_000;

/** How long Argo CD has to compare before a revision that it does not know counts as unknown. */
const comparisonMs = 60_000;

/**
 * The agent's side of autonomous mode: the cluster owns its Applications, and the principal gets each as it is now.
 * From the principal it takes only what users ask of Argo CD: refresh, sync, terminate. It knows a store, a connection and
 * a clock, no Kubernetes and no gRPC.
 */
export class ClusterApplications implements AgentKind<SourceSync> {
  readonly kind = 'Application';
  readonly #options: ClusterApplicationsOptions;
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #view: View<Application>;
  readonly #outbox: Outbox<Application>;
  readonly #writer: PlanWriter<Application>;
  readonly #snapshots = new WeakMap<Application, Snapshot<Application>>();
  /** The operation that had started last when a new one was first tried, and when that was. */
  readonly #tried = new WeakMap<ApplicationMessage, { readonly startedAt: unknown; readonly at: number }>();
  /**
   * Operations that wait for the end of another one, by Application. They are not acknowledged before they are set, so that
   * a restart loses none.
   */
  readonly #deferred = new Map<string, ApplicationMessage>();
  readonly #setOperations = new SetOperations();
  readonly #terminations = new Terminations<ApplicationMessage>();
  readonly #refused: RefusedRequests;
  /** Applications whose deletion was sent a moment ago. */
  readonly #justDeleted = new Set<string>();
  #inbox: Inbox<Intent> | undefined;
  readonly #peer: SourcePeer<Application>;
  readonly #stop = new AbortController();
  /** What the principal calls this agent. */
  #name = '';

  constructor(options: ClusterApplicationsOptions) {
    this.#options = options;
    this.#clock = options.runtime.clock;
    this.#newId = options.runtime.newId;
    this.#view = new View({
      clock: this.#clock,
      changed: (ref) => this.#localChange(ref),
      // Nothing is created here, but a refused write has read it past the cache.
      doubted: (ref) => void this.#writer.check(ref, this.#stop.signal),
    });
    this.#outbox = new Outbox<Application>({
      source: { read: (key) => this.#read(key) },
      // A Go principal does not replace an incarnation; the deletion of the one before has to be sent.
      replaces: false,
      runtime: options.runtime,
      tuning: options.tuning,
    });
    this.#peer = new SourcePeer<Application>({
      kind: this.kind,
      states: this.#outbox,
      read: (key) => this.#read(key),
      keys: () => Array.from(this.#view.values(), ({ metadata }) => this.#key(metadata.name)),
      count: () => this.#view.size,
      keyOf: ({ name }) => this.#key(name),
      // What a Go principal has besides the spec is not known.
      hasChecksum: ({ object }, checksum) => specChecksum(hubSpecOf(object, this.#name)) === checksum,
      start: (connection) => this.#send(connection),
      peer: {},
      runtime: options.runtime,
    });
    this.#writer = new PlanWriter({
      names: applicationNames,
      store: options.applications,
      view: this.#view,
      isHidden: isSkipped,
      runtime: options.runtime,
    });
    this.#refused = new RefusedRequests({
      isBusy: ({ name }) => this.#inbox?.isBusy(name) === true,
      again: (ref, message) => this.#inbox?.receive({ ref, message, again: options.runtime.newId(), wasRefused: true }),
      changed: (ref) => this.#shownAnew(ref),
      runtime: options.runtime,
    });
  }

  start(signal: AbortSignal): void {
    const { namespace, applications } = this.#options;
    const { log } = this.#options.runtime;
    this.#inbox = new Inbox<Intent>(
      {
        apply: (intent, aborted) => this.#apply(intent, aborted),
        acknowledge: (intent) => this.#acknowledge(intent),
        laneOf: ({ ref }) => ref.name,
        idOf: ({ message, again }) => again ?? `${message.type}/${message.resourceId}/${message.eventId}`,
        supersedes: () => false,
        once: () => true,
        onError: (error, { ref }, attempt) =>
          log.warn({ error, application: placeOf(ref), attempt }, 'request not carried out, will retry'),
        runtime: this.#options.runtime,
        tuning: this.#options.tuning,
      },
      signal,
    );
    const unfollow = this.#view.follow({
      subscribe: (listener) =>
        applications.subscribe((change) => {
          if ((change.now ?? change.old)?.metadata.namespace === namespace) {
            listener(change);
          }
        }),
    });
    signal.addEventListener('abort', () => {
      unfollow();
      this.close();
    });
  }

  connected(connection: PeerConnection, principal: ConnectedPrincipal): void {
    this.#name = principal.agent;
    this.#inbox?.reconnected();
    this.#peer.connected(connection, principal);
  }

  disconnected(): void {
    this.#peer.disconnected();
  }

  open(): void {
    this.#peer.open();
  }

  writable(): void {
    this.#peer.writable();
  }

  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): boolean {
    return this.#peer.acknowledged(event);
  }

  receive(message: ObjectMessage): boolean {
    if (message.target !== 'application') {
      return false;
    }
    switch (message.type) {
      case 'spec-update':
      case 'set-operation':
      case 'terminate-operation':
        this.#inbox?.receive({ ref: this.#ref(message.object.metadata.name), message });
        return true;
      default:
        // The cluster owns its Applications: nobody creates or deletes them from the hub.
        return false;
    }
  }

  peerReported(update: RequestUpdate): string | undefined {
    return this.#peer.peerReported(update);
  }

  peerLacks(id: string): void {
    this.#peer.peerLacks(id);
  }

  list(): Iterable<Listed> {
    return this.#peer.list();
  }

  stats(): SyncStats {
    const { queued = 0, retrying = 0 } = this.#inbox ?? {};
    return { ...this.#peer.stats(), queued, retrying: retrying + this.#refused.size };
  }

  oldestMs(): number {
    return this.#peer.oldestMs();
  }

  close(): void {
    this.#stop.abort();
    this.#refused.close();
    this.#peer.close();
  }

  #send(connection: PeerConnection): void {
    this.#outbox.connected({
      send: (delivery) => {
        const isTaken =
          delivery.type === 'intent' || connection.send(stateMessage(delivery, { target: 'application' }));
        if (isTaken && delivery.type === 'delete') {
          this.#justDeleted.add(delivery.key.name);
          this.#clock.after(soonMs, () => this.#justDeleted.delete(delivery.key.name));
        } else if (isTaken && this.#justDeleted.delete(delivery.key.name)) {
          this.#repeatLater(delivery.key);
        }
        return isTaken;
      },
    });
  }

  #repeatLater(key: ResourceKey): void {
    this.#clock.after(againMs, () => {
      if (!this.#stop.signal.aborted && this.#local(key) !== undefined) {
        this.#outbox.repeat(key);
      }
    });
  }

  #localChange(ref: ObjectRef): void {
    this.#outbox.changed(this.#key(ref.name));
    const deferred = this.#deferred.get(ref.name);
    const local = this.#view.get(ref);
    if (deferred !== undefined && local?.operation === undefined) {
      this.#deferred.delete(ref.name);
      this.#inbox?.receive({ ref, message: deferred, again: this.#newId() });
    }
    const repeated = [this.#setOperations.lost(ref.name, local), this.#terminations.overruled(ref.name, local)];
    for (const message of repeated) {
      if (message !== undefined) {
        this.#inbox?.receive({ ref, message, again: this.#newId() });
      }
    }
  }

  #read(key: ResourceKey): Snapshot<Application> | undefined {
    const local = this.#local(key);
    if (local === undefined) {
      return undefined;
    }
    let snapshot = this.#snapshots.get(local);
    if (snapshot === undefined) {
      const shown = this.#withRefusal(local);
      snapshot = {
        uid: local.metadata.uid ?? '',
        version: this.#view.versionOf(local),
        digest: mirrorDigest(fieldsOfSource(shown), shown),
        object: asSent(shown),
      };
      this.#snapshots.set(local, snapshot);
    }
    return snapshot;
  }

  /** What is refused of the requests made on the mirror, by the API server or here, is shown there. */
  #withRefusal(local: Application): Application {
    const text = this.#refused.textOf(this.#ref(local.metadata.name));
    return text === undefined
      ? local
      : { ...local, status: withAgentWarning(local.status ?? {}, text, this.#options.runtime.today()) };
  }

  /** Sends an object that has not changed as it is shown now. */
  #shownAnew({ name }: ObjectRef): void {
    const local = this.#local(this.#key(name));
    if (local !== undefined) {
      this.#snapshots.delete(local);
      this.#outbox.repeat(this.#key(name));
    }
  }

  #local(key: ResourceKey): Application | undefined {
    const local = this.#view.get(key);
    return local === undefined || isSkipped(local) ? undefined : local;
  }

  /** Carries out a request. One that the API server refuses is kept, and nothing waits for it. */
  async #apply(intent: Intent, signal: AbortSignal): Promise<InboxOutcome> {
    const { ref, message } = intent;
    try {
      const outcome = await this.#carryOut(intent, signal);
      if (outcome === 'denied') {
        return 'done';
      }
      if (outcome === 'done') {
        this.#refused.settled(ref, message);
      }
      return outcome;
    } catch (error) {
      if (this.#refused.keeps(ref, message, error)) {
        return 'done';
      }
      throw error;
    }
  }

  async #carryOut(intent: Intent, signal: AbortSignal): Promise<InboxOutcome | 'denied'> {
    const { ref, message } = intent;
    switch (message.type) {
      case 'spec-update':
        return this.#run(ref, (local) => planOwnTriggers(message.object, local), signal);
      case 'set-operation':
        return this.#operate(intent, signal);
      default:
        return this.#terminate(intent, signal);
    }
  }

  #terminate({ ref, message }: Intent, signal: AbortSignal): Promise<InboxOutcome> {
    return this.#run(
      ref,
      (local) => {
        const plan = planOwnTermination(message.object, local);
        if (plan.action === 'update' && local !== undefined) {
          this.#terminations.carriedOut(ref.name, local, message);
        }
        return plan;
      },
      signal,
    );
  }

  async #operate(intent: Intent, signal: AbortSignal): Promise<InboxOutcome | 'denied'> {
    const { ref, message } = intent;
    const { startedAt } = this.#local(this.#key(ref.name))?.status?.operationState ?? {};
    const before = this.#tried.get(message) ?? { startedAt, at: this.#clock.now() };
    this.#tried.set(message, before);
    let isLater = false;
    let objection: OperationObjection | undefined;
    const outcome = await this.#run(
      ref,
      (local) => {
        const plan = planOwnOperation(message.object, local, before, this.#options.revisions ?? 'known');
        isLater = plan.action === 'later';
        objection = plan.action === 'deny' ? plan.objection : undefined;
        return plan.action === 'later' || plan.action === 'deny' ? { action: 'none' } : plan;
      },
      signal,
    );
    if (objection !== undefined) {
      return this.#deny(intent, objection, before.at, signal);
    }
    this.#setOperations.carriedOut(ref.name, this.#local(this.#key(ref.name)), message);
    if (isLater && !signal.aborted) {
      this.#deferred.set(ref.name, message);
      // It may have ended while this was decided.
      this.#localChange(ref);
    }
    return outcome;
  }

  /** Tells the hub's users that an operation is not for this cluster. One that may be soon is kept for a while. */
  async #deny(
    { ref, message, wasRefused = false }: Intent,
    { message: text, mayBeKnownSoon }: OperationObjection,
    since: number,
    signal: AbortSignal,
  ): Promise<'denied'> {
    if (mayBeKnownSoon && this.#clock.now() - since < comparisonMs) {
      if (!wasRefused) {
        await this.#run(ref, planComparison, signal);
      }
      this.#refused.postpones(ref, message, text);
    } else {
      this.#refused.denies(ref, message, text);
    }
    return 'denied';
  }

  #run(ref: ObjectRef, plan: (local: Application | undefined) => Plan, signal: AbortSignal): Promise<InboxOutcome> {
    return this.#writer.once(ref, (local) => plan(local === undefined || isSkipped(local) ? undefined : local), signal);
  }

  #acknowledge({ ref, message, again, wasRefused = false }: Intent): void {
    // It was acknowledged when it was carried out first.
    if (message.type === 'terminate-operation' && again !== undefined && !wasRefused) {
      return;
    }
    if (this.#refused.isOpen(ref, message)) {
      return;
    }
    if (this.#deferred.get(ref.name)?.eventId !== message.eventId) {
      this.#peer.connection?.acknowledge(message);
      this.#answer(this.#key(ref.name), message);
    }
  }

  /**
   * The report after the acknowledgement answers a request, also one without effect. While the request is under way here,
   * and the principal was told so, that report is still to come by itself.
   */
  #answer(key: ResourceKey, message: ApplicationMessage): void {
    const local = this.#local(key);
    if (local === undefined || !isUnderWay(message, local) || !this.#outbox.isSent(key)) {
      // The request was made on a mirror. Told to create what it has, a Go principal would drop the operation of it.
      this.#outbox.repeat(key, { uid: mirroredUid(message.object) });
    }
  }

  #ref(name: string): ObjectRef {
    return { namespace: this.#options.namespace, name };
  }

  #key(name: string): ResourceKey {
    return { kind: 'Application', ...this.#ref(name) };
  }
}

/**
 * The object as it is sent to the principal. A Go principal would take marks of a managed past for the identity of
 * the mirror.
 */
function asSent(local: Application): Application {
  const {
    [annotations.sourceUid]: sourceUid,
    [annotations.principalUid]: principalUid,
    [annotations.namespaceRemapped]: remapped,
    ...others
  } = local.metadata.annotations ?? {};
  return sourceUid === undefined && principalUid === undefined && remapped === undefined
    ? local
    : { ...local, metadata: { ...local.metadata, annotations: others } };
}
