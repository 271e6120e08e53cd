import {
  type Clock,
  Inbox,
  type InboxOutcome,
  type ObjectRef,
  type OutboundEvent,
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
import { annotations } from '../../names.ts';
import type { AgentKind, ConnectedPrincipal, Listed, ObjectMessage, SourceSync } from '../../peer/kind-sync.ts';
import type { ApplicationMessage, Message, PeerConnection, RequestUpdate } from '../../peer/messages.ts';
import { SourceLink } from '../../peer/source-link.ts';
import type { SyncStats } from '../../peer/stats.ts';
import { placeOf } from '../../place.ts';
import { isSkipped } from '../../routing.ts';
import { Terminations } from '../../terminations.ts';
import { ApplicationWriter } from '../../writing/application-writer.ts';
import type { Plan } from '../../writing/plan.ts';
import { fieldsOfSource, hubSpecOf, mirrorDigest } from '../mirror.ts';
import { planOwnOperation, planOwnTermination, planOwnTriggers } from './request-plan.ts';

/** How {@link ClusterApplications} work. */
export interface ClusterApplicationsOptions {
  /** Applications of the agent's cluster; others than those of its namespace do not exist to it. */
  readonly applications: Store<Application>;
  /** The agent's namespace. */
  readonly namespace: string;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/** What a user asked for on the mirror. */
interface Intent {
  readonly ref: ObjectRef;
  readonly message: ApplicationMessage;
  /** Not as it came: it is taken up again. */
  readonly again?: string;
}

/**
 * A Go principal takes a creation for done while what was there before is still being deleted. One that follows a deletion
 * so soon is therefore told once more a little later.
 */
const soonMs = 30_000;
const againMs = 5_000;

/**
 * The agent's side of autonomous mode: the cluster owns its Applications, and the principal is told of each as it is now.
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
  readonly #writer: ApplicationWriter;
  readonly #snapshots = new WeakMap<Application, Snapshot<Application>>();
  /** What had started last when an operation was first tried. */
  readonly #tried = new WeakMap<ApplicationMessage, { readonly startedAt: unknown }>();
  /**
   * Operations that wait for the end of another one, by Application. They are not acknowledged before they are set, so that
   * a restart loses none.
   */
  readonly #deferred = new Map<string, ApplicationMessage>();
  readonly #terminations = new Terminations<ApplicationMessage>();
  /** Applications whose deletion the principal was told a moment ago. */
  readonly #justDeleted = new Set<string>();
  #inbox: Inbox<Intent> | undefined;
  readonly #link: SourceLink;
  #isClosed = false;
  /** What the principal calls this agent. */
  #name = '';

  constructor(options: ClusterApplicationsOptions) {
    this.#options = options;
    this.#clock = options.runtime.clock;
    this.#newId = options.runtime.newId;
    this.#view = new View({
      clock: this.#clock,
      changed: (ref) => this.#localChange(ref),
      // Nothing is created here, so what is known was in the cache.
      doubted: (ref) => options.runtime.log.debug({ application: placeOf(ref) }, 'not in the cache'),
    });
    this.#outbox = new Outbox<Application>({
      source: { read: (key) => this.#read(key) },
      // A Go principal does not replace an incarnation; it has to hear that the one before is gone.
      replaces: false,
      runtime: options.runtime,
      tuning: options.tuning,
    });
    this.#link = new SourceLink([this.#outbox], (connection) => this.#send(connection));
    this.#writer = new ApplicationWriter({
      store: options.applications,
      view: this.#view,
      objection: () => undefined,
      ensureNamespace: undefined,
      log: options.runtime.log,
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
          log.warn({ err: error, application: placeOf(ref), attempt }, 'request not carried out, will retry'),
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

  connected(connection: PeerConnection, { agent }: ConnectedPrincipal): void {
    this.#name = agent;
    this.#inbox?.reconnected();
    this.#link.connected(connection);
  }

  disconnected(): void {
    this.#link.disconnected();
  }

  open(): void {
    this.#link.open();
  }

  writable(): void {
    this.#outbox.writable();
  }

  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): boolean {
    return this.#outbox.acknowledged(event.resourceId, event.eventId);
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

  peerReported({ name, uid, checksum, digest }: RequestUpdate): string | undefined {
    const key = this.#key(name);
    const local = this.#local(key);
    if (uid === '') {
      this.#outbox.peerHolds(key, undefined);
    } else if (digest !== undefined) {
      this.#outbox.peerHolds(key, { uid, digest: digest === '' ? undefined : digest });
    } else if (
      local === undefined ||
      this.#outbox.held(key)?.uid !== uid ||
      specChecksum(hubSpecOf(local, this.#name)) !== checksum
    ) {
      // What a Go principal has besides the spec is not known.
      this.#outbox.peerHolds(key, { uid });
    }
    // What is not here now may be here by the time it has told everything.
    return local === undefined && !this.#outbox.knows(key) ? undefined : name;
  }

  peerLacks(id: string): void {
    this.#outbox.peerHolds(this.#key(id), undefined);
  }

  list(): Listed[] {
    const listed = [];
    for (const { metadata } of this.#view.values()) {
      const { name, namespace = '', uid = '' } = metadata;
      if (this.#local(this.#key(name)) !== undefined) {
        listed.push({ id: name, name, namespace, uid });
      }
    }
    return listed;
  }

  stats(): SyncStats {
    return {
      pending: this.#outbox.pending,
      inFlight: this.#outbox.inFlight,
      queued: this.#inbox?.queued ?? 0,
      retrying: this.#inbox?.retrying ?? 0,
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#outbox.close();
  }

  #send(connection: PeerConnection): void {
    this.#outbox.connected({
      send: (delivery) => {
        const isTaken = connection.send(messageFor(delivery));
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
      if (!this.#isClosed && this.#local(key) !== undefined) {
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
    const overruled = this.#terminations.overruled(ref.name, local);
    if (overruled !== undefined) {
      this.#inbox?.receive({ ref, message: overruled, again: this.#newId() });
    }
  }

  #read(key: ResourceKey): Snapshot<Application> | undefined {
    const local = this.#local(key);
    if (local === undefined) {
      return undefined;
    }
    let snapshot = this.#snapshots.get(local);
    if (snapshot === undefined) {
      snapshot = {
        uid: local.metadata.uid ?? '',
        version: local.metadata.resourceVersion ?? '',
        digest: mirrorDigest(fieldsOfSource(local), local),
        object: asSent(local),
      };
      this.#snapshots.set(local, snapshot);
    }
    return snapshot;
  }

  #local(key: ResourceKey): Application | undefined {
    const local = this.#view.get(key);
    return local === undefined || isSkipped(local) ? undefined : local;
  }

  async #apply(intent: Intent, signal: AbortSignal): Promise<InboxOutcome> {
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

  async #operate({ ref, message }: Intent, signal: AbortSignal): Promise<InboxOutcome> {
    const { startedAt } = this.#local(this.#key(ref.name))?.status?.operationState ?? {};
    const before = this.#tried.get(message) ?? { startedAt };
    this.#tried.set(message, before);
    let isLater = false;
    const outcome = await this.#run(
      ref,
      (local) => {
        const plan = planOwnOperation(message.object, local, before);
        isLater = plan.action === 'later';
        return plan.action === 'later' ? { action: 'none' } : plan;
      },
      signal,
    );
    if (isLater && !signal.aborted) {
      this.#deferred.set(ref.name, message);
      // It may have ended while this was decided.
      this.#localChange(ref);
    }
    return outcome;
  }

  async #run(
    ref: ObjectRef,
    plan: (local: Application | undefined) => Plan,
    signal: AbortSignal,
  ): Promise<InboxOutcome> {
    const result = await this.#writer.run(
      ref,
      (local) => plan(local === undefined || isSkipped(local) ? undefined : local),
      signal,
    );
    if (result.is === 'stopped') {
      this.#options.runtime.log.warn({ application: placeOf(ref) }, result.message);
    }
    return result.is === 'unsettled' || (result.is === 'stopped' && result.mayPass) ? 'retry' : 'done';
  }

  #acknowledge({ ref, message, again }: Intent): void {
    // It was acknowledged when it was carried out first.
    if (message.type === 'terminate-operation' && again !== undefined) {
      return;
    }
    if (this.#deferred.get(ref.name)?.eventId !== message.eventId) {
      this.#link.connection?.acknowledge(message);
      // What is told after this is the answer, also when nothing came of it.
      this.#outbox.repeat(this.#key(ref.name));
    }
  }

  #ref(name: string): ObjectRef {
    return { namespace: this.#options.namespace, name };
  }

  #key(name: string): ResourceKey {
    return { kind: 'Application', ...this.#ref(name) };
  }
}

function messageFor(delivery: OutboundEvent<Application>): Message {
  const { key, resourceId, eventId } = delivery;
  const common = { target: 'application', resourceId, eventId } as const;
  if (delivery.type === 'delete') {
    const { uid, version: resourceVersion } = delivery;
    const metadata = { name: key.name, namespace: key.namespace, uid, resourceVersion };
    return { ...common, type: 'delete', object: { metadata, spec: {} } };
  }
  return { ...common, type: delivery.type === 'create' ? 'create' : 'spec-update', object: delivery.snapshot.object };
}

/**
 * The object as the principal is told of it. Marks of a managed past would be taken by a Go principal for the identity of
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
