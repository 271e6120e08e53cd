import {
  Inbox,
  type InboxOutcome,
  keyString,
  type OutboundEvent,
  Outbox,
  type PeerCopy,
  type ResourceKey,
  type Runtime,
  type Snapshot,
  type Tuning,
} from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { specChecksum } from '../../checksums.ts';
import { annotations } from '../../names.ts';
import type { ConnectedPrincipal, LateObject, Listed, ObjectMessage, SourceSync } from '../../peer/kind-sync.ts';
import type {
  ApplicationMessage,
  ErrorMessage,
  Message,
  PeerConnection,
  RequestUpdate,
  UnreadableMessage,
} from '../../peer/messages.ts';
import { SourcePeer } from '../../peer/source-peer.ts';
import { stateMessage } from '../../peer/state-message.ts';
import type { SyncStats } from '../../peer/stats.ts';
import { placeOf } from '../../place.ts';
import type { AgentReport, DeliveredRequests } from './agent-report.ts';
import { EarlyReports } from './early-reports.ts';
import { Parting } from './parting.ts';
import { RefusedReports } from './refused-reports.ts';

/** How an agent calls an Application. */
export interface ReportedRef {
  readonly name: string;
  readonly namespace: string;
  /** It reports that the namespace stands for another one on the hub. */
  readonly remapped: boolean;
}

/** What a {@link AgentApplications} needs of the hub. */
export interface AgentApplicationsOptions {
  readonly agent: string;
  readonly principalUid: string;
  /** The Application as the agent should have it. */
  readonly read: (key: ResourceKey) => Snapshot<Application> | undefined;
  /** Whether the agent gets nothing about it, and keeps what it has. */
  readonly withholds: (key: ResourceKey) => boolean;
  /** Whether the agent must not have it, as far as the hub's AppProject says. */
  readonly denies: (key: ResourceKey) => boolean;
  /** All that the agent should have. */
  readonly keys: () => Iterable<ResourceKey>;
  /** How many these are. */
  readonly count: () => number;
  /**
   * The last state of an Application of this source UID that the agent should not have, as the hub has it now; undefined: it is
   * gone. It rejects when that is not known now, or when the agent should have it after all.
   */
  readonly left: (key: ResourceKey, uid: string, signal: AbortSignal) => Promise<Left | undefined>;
  /** Whether an Application of this source UID, as far as it is known, is still on the hub and asks for its workload's deletion. */
  readonly asksForWorkload: (key: ResourceKey, uid: string) => boolean;
  /** What the agent has received of the requests on the hub's object. */
  readonly delivered: (key: ResourceKey) => DeliveredRequests;
  /** Whether the hub's object has told of an operation that began then, and no later one. */
  readonly hasShown: (key: ResourceKey, startedAt: string) => boolean;
  readonly apply: (report: AgentReport, signal: AbortSignal) => Promise<InboxOutcome>;
  /** The API server has refused for a while what the agent reports about an Application; undefined: it is written. */
  readonly refused: (key: ResourceKey, reason: string | undefined) => void;
  /** The hub's key of what the agent speaks of. */
  readonly hubKey: (reported: ReportedRef) => ResourceKey;
  /** The agent has an Application that the hub does not have and that was made for another principal. It is kept. */
  readonly foundForeign: (key: ResourceKey) => void;
  /** The agent connected or disconnected. */
  readonly presenceChanged: (isThere: boolean) => void;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/** What a deletion tells of an Application that is still on the hub. */
export type Left = Pick<Application, 'metadata'>;

type Deletion = OutboundEvent<Application> & { readonly type: 'delete' };
type IntentType = 'set-operation' | 'terminate-operation';

/** One agent as the principal sees it: what to send, what came, and the connection if there is one. */
export class AgentApplications implements SourceSync {
  readonly kind = 'Application';
  readonly #options: AgentApplicationsOptions;
  readonly #outbox: Outbox<Application>;
  /** A separate outbox: an operation that waits for the end of another one must not delay the termination of that one. */
  readonly #terminations: Outbox<Application>;
  readonly #inbox: Inbox<AgentReport>;
  readonly #early = new EarlyReports();
  readonly #parting = new Parting<IntentType>();
  readonly #refused: RefusedReports;
  #again = 0;
  readonly #deliveredNow = ({ key }: AgentReport) => this.#options.delivered(key);
  readonly #stop = new AbortController();
  readonly #peer: SourcePeer<Application>;
  /** It has reported what it has. */
  #isOpen = false;
  /** Whose agent it is, by what it reported last. */
  #agentIs: 'ours' | 'original' | undefined;

  constructor(options: AgentApplicationsOptions) {
    this.#options = options;
    const { runtime, tuning } = options;
    const source = {
      read: (key: ResourceKey) => this.#partingState(key) ?? this.#stateFor(key),
      withholds: options.withholds,
    };
    this.#outbox = new Outbox<Application>({ runtime, tuning, source });
    this.#terminations = new Outbox<Application>({ runtime, tuning, source, sendsDeletes: false });
    const { agent, read, keys, count } = options;
    this.#peer = new SourcePeer<Application>({
      kind: this.kind,
      states: this.#outbox,
      requests: this.#terminations,
      read,
      keys,
      count,
      keyOf: ({ name, namespace = '' }) => options.hubKey({ name, namespace, remapped: false }),
      // Of a deletion no checksum tells.
      hasChecksum: ({ object }, checksum) => !isBeingDeleted(object) && specChecksum(object.spec) === checksum,
      // argocd-agent takes the rest for equal too; but the agent may not have received the requests.
      assumed: ({ digest }) => `${digest.slice(0, digest.lastIndexOf('|'))}|`,
      stateOf: (digest) => `${digest}|`,
      lacks: (key) => this.#requestOperationAgain(key),
      start: (connection) => this.#send(connection),
      peer: { agent },
      runtime,
    });
    this.#inbox = new Inbox<AgentReport>(
      {
        apply: (report, signal) => this.#apply(report, signal),
        acknowledge: ({ message, again }) => {
          if (again === undefined) {
            this.#peer.connection?.acknowledge(message);
          }
        },
        laneOf: ({ key }) => keyString(key),
        idOf: ({ message, again = '' }) => `${message.type}/${message.resourceId}/${message.eventId}${again}`,
        supersedes: ({ message: newer }, { message: older }) =>
          older.type !== 'delete' && (newer.type === older.type || newer.type === 'delete'),
        onError: (error, { key }, attempt) =>
          runtime.log.warn(
            { agent: options.agent, application: placeOf(key), attempt, error },
            'report not written, will retry',
          ),
        runtime,
        tuning,
      },
      this.#stop.signal,
    );
    this.#refused = new RefusedReports({
      agent,
      // A report that came meanwhile is newer.
      isOutdated: (key) => this.#inbox.isBusy(keyString(key)),
      again: (report) => this.#process(report),
      told: options.refused,
      runtime,
    });
  }

  connected(connection: PeerConnection, peer: ConnectedPrincipal): void {
    this.#options.presenceChanged(true);
    this.#inbox.reconnected();
    this.#early.clear();
    this.#peer.connected(connection, peer);
  }

  disconnected(): void {
    this.#options.presenceChanged(false);
    this.#peer.disconnected();
  }

  open(marksEnd: boolean): void {
    if (marksEnd) {
      this.#agentIs = 'ours';
    }
    this.#isOpen = true;
    for (const name of this.#parting.names()) {
      this.#endParting(name);
    }
    this.#peer.open();
  }

  writable(): void {
    this.#peer.writable();
  }

  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): boolean {
    const isOurs = this.#peer.acknowledged(event);
    if (isOurs) {
      this.#endParting(event.resourceId.slice(0, event.resourceId.lastIndexOf('_')));
    }
    const early = isOurs ? this.#early.acknowledged(event.resourceId, this.#deliveredNow) : undefined;
    if (early !== undefined) {
      this.#process(early);
    }
    return isOurs;
  }

  receive(message: ObjectMessage): boolean {
    if (
      message.target !== 'application' ||
      (message.type !== 'status-update' && message.type !== 'delete' && message.type !== 'error')
    ) {
      return false;
    }
    const key = this.#keyOf(message);
    const report = {
      key,
      message,
      delivered: this.#options.delivered(key),
      terminating: this.requested(key, 'terminate-operation'),
    };
    this.#early.came(report, this.#options.read(key)?.object, (startedAt) => this.#options.hasShown(key, startedAt));
    this.#inbox.receive(report);
    return true;
  }

  unreadable({ name, namespace, reason }: UnreadableMessage): void {
    const key = this.#options.hubKey({ name, namespace, remapped: false });
    if (this.#options.read(key) !== undefined) {
      this.#refused.unreadable(key, reason);
    }
  }

  changed(key: ResourceKey): void {
    // Where another one has come, what has vanished is gone from the hub.
    const now = this.#options.read(key);
    const vanished = now === undefined ? undefined : this.#parting.takeVanished(key);
    if (vanished !== undefined && vanished !== now?.uid && this.#outbox.isHeld(key)) {
      this.#partUnknown(key, vanished);
    }
    this.#outbox.changed(key);
    if (this.#terminations.knows(key) && this.#options.read(key) === undefined) {
      this.#terminations.changed(key);
    }
  }

  /**
   * An Application left in this state, which does not ask for its workload. An agent that deletes its copy with the finalizers that
   * it has, as argocd-agent's does, must have this state before that.
   */
  left(key: ResourceKey, last: Snapshot<Application>): void {
    const held = this.#outbox.held(key);
    if (held === undefined && this.#isOpen) {
      if (this.#agentIs !== 'ours' && this.#outbox.isHeld(key)) {
        // It was sent, and has perhaps not arrived: what the agent then makes of the last state must not deploy anything.
        this.#partUnknown(key, last.uid);
      }
      return;
    }
    // What it has it may be about to report.
    const mayHaveIt = held === undefined || held.uid === last.uid;
    if (mayHaveIt && held?.digest !== last.digest) {
      this.#parting.add(key, last);
    }
  }

  /**
   * The cache has lost an Application with a finalizer. If it is gone from the hub, it had none in the end: the cache has missed who
   * took it off.
   */
  vanished(key: ResourceKey, uid: string): void {
    if (this.#agentIs !== 'ours') {
      this.#parting.vanished(key, uid);
    }
  }

  /** Sends the Application as if the agent had nothing: the agent answers with a report. */
  repeat(key: ResourceKey): void {
    this.#outbox.repeat(key);
    this.#endParting(key.name);
  }

  /** Passes on what a user asks of Argo CD; also that the user takes back an operation, which then is none. */
  request(key: ResourceKey, intent: IntentType): void {
    if (!this.#parting.ask(key, intent)) {
      this.#outboxFor(intent).request(key, intent);
    }
  }

  withdraw(key: ResourceKey, intent: IntentType): void {
    this.#parting.takeBack(key, intent);
    this.#outboxFor(intent).withdraw(key, intent);
  }

  /** Whether the agent has not acknowledged it yet. */
  requested(key: ResourceKey, intent: IntentType): boolean {
    return this.#parting.isAsked(key, intent) || this.#outboxFor(intent).requested(key, intent);
  }

  held(key: ResourceKey): PeerCopy | undefined {
    return this.#outbox.held(key);
  }

  /**
   * The agent reported what it has. A copy that the hub has nothing for is deleted, unless it was made for another
   * principal: this one may have been restored from a backup, or its Applications are still to come.
   * @param principalUid the principal that the copy was made for, if the agent reports it
   */
  peerHolds(key: ResourceKey, copy: PeerCopy | undefined, principalUid?: string): void {
    if (copy !== undefined && this.#isForeign(principalUid) && !this.#peer.isKnown(key)) {
      this.#options.foundForeign(key);
    } else {
      if (copy !== undefined) {
        this.#partFirst(key, copy.uid);
      }
      this.#peer.peerHolds(key, copy);
      this.#endParting(key.name);
    }
  }

  /** The agent reported a copy that nobody is deleting of what the hub has deleted: it made it of that very word. */
  alive(key: ResourceKey, uid: string): void {
    const now = this.#options.read(key);
    const held = this.#outbox.held(key);
    if (now?.uid === uid && held?.uid === uid && held.digest === now.digest) {
      this.#outbox.repeat(key, { uid });
    }
  }

  /** The agent reported about a copy of what it should have. */
  seen(key: ResourceKey, uid: string): void {
    this.#outbox.seen(key, uid);
  }

  peerReported(update: RequestUpdate): string | undefined {
    const { name, namespace = '', uid, principalUid } = update;
    if (uid !== '') {
      this.#agentIs = update.digest === undefined ? 'original' : 'ours';
    }
    const key = this.#options.hubKey({ name, namespace, remapped: false });
    if (uid === '' || !this.#isForeign(principalUid)) {
      this.#partFirst(key, uid);
      const place = this.#peer.peerReported(update);
      this.#endParting(name);
      return place;
    }
    // Without a digest, the present state is sent, and the copy becomes one of this principal.
    this.peerHolds(key, { uid }, principalUid);
    return this.#peer.isKnown(key) ? placeOf(key) : undefined;
  }

  peerLacks(id: string): void {
    this.#peer.peerLacks(id);
    this.#endParting(id.slice(id.indexOf('/') + 1));
  }

  list(): Iterable<Listed> {
    return this.#peer.list();
  }

  stats(): SyncStats {
    const { queued, retrying } = this.#inbox;
    return { ...this.#peer.stats(), queued, retrying: retrying + this.#refused.size };
  }

  oldestMs(): number {
    return this.#peer.oldestMs();
  }

  late(afterMs: number, most: number): readonly LateObject[] {
    return this.#peer.late(afterMs, most);
  }

  close(): void {
    this.#stop.abort();
    this.#refused.close();
    this.#peer.close();
  }

  async #apply(report: AgentReport, signal: AbortSignal): Promise<InboxOutcome> {
    try {
      const outcome = await this.#options.apply(report, signal);
      if (outcome === 'done') {
        this.#refused.written(report);
      }
      return outcome;
    } catch (error) {
      if (this.#refused.keeps(report, error)) {
        return 'done';
      }
      throw error;
    }
  }

  /** Processes a report that is acknowledged once more. */
  #process(report: AgentReport): void {
    this.#inbox.receive({ ...report, again: `/${++this.#again}` });
  }

  /** The agent has no copy, so it cannot have executed the operation that was sent for it. */
  #requestOperationAgain(key: ResourceKey): void {
    const { operation, status } = this.#options.read(key)?.object ?? {};
    const isAsked = operation !== undefined && status?.operationState?.phase !== 'Terminating';
    if (isAsked && !this.requested(key, 'set-operation')) {
      this.request(key, 'set-operation');
    }
  }

  #isForeign(principalUid: string | undefined): boolean {
    return principalUid !== undefined && principalUid !== this.#options.principalUid;
  }

  #send(connection: PeerConnection): void {
    this.#outbox.connected({
      send: (delivery) => {
        if (delivery.type !== 'delete') {
          return connection.send(this.#messageFor(delivery));
        }
        void this.#sendDeletion(connection, delivery);
        return true;
      },
    });
    this.#terminations.connected({
      send: (delivery) =>
        delivery.type === 'intent'
          ? connection.send(this.#messageFor(delivery))
          : // The state goes its own way.
            this.#terminations.acknowledged(delivery.resourceId, delivery.eventId),
    });
  }

  /** What the agent is to have; what it never had, and what is being deleted, may be nothing that it should hear of. */
  #stateFor(key: ResourceKey): Snapshot<Application> | undefined {
    const now = this.#options.read(key);
    if (now === undefined || !this.#isOverAlready(key, now)) {
      return now;
    }
    // It goes as if the agent had said that it is gone.
    const { namespace, name } = key;
    const object = { metadata: { namespace, name }, spec: {} };
    const message = { target: 'application', type: 'delete', resourceId: name, eventId: now.version, object } as const;
    this.#process({ key, message, delivered: this.#options.delivered(key), terminating: false });
    return undefined;
  }

  /**
   * An agent of argocd-agent makes what it lacks, and deploys it, whether it is being deleted or not. So it hears nothing of a
   * deletion of what it never had; nor does an agent of unknown kind of what it must not have.
   */
  #isOverAlready(key: ResourceKey, { object }: Snapshot<Application>): boolean {
    const makesIt = this.#agentIs === 'original' || (this.#agentIs === undefined && this.#options.denies(key));
    return makesIt && isBeingDeleted(object) && !this.#outbox.isHeld(key);
  }

  /** The state to send of what has left, while the agent has a copy of it. */
  #partingState(key: ResourceKey): Snapshot<Application> | undefined {
    const last = this.#parting.lastOf(key);
    return last !== undefined && this.#outbox.held(key)?.uid === last.uid ? last : undefined;
  }

  #endParting(name: string): void {
    for (const { key, asked } of this.#parting.takeParted(name, (one) => this.#outbox.held(one))) {
      this.#outbox.changed(key);
      for (const intent of asked) {
        this.request(key, intent);
      }
    }
  }

  /**
   * A deletion says with which finalizers the Application left, so that no workload is deleted that its last state does not ask
   * for. What cannot be sent now, the outbox sends again.
   */
  async #sendDeletion(connection: PeerConnection, delivery: Deletion): Promise<void> {
    const { agent, left, runtime, principalUid } = this.#options;
    try {
      const last = await left(delivery.key, delivery.uid, this.#stop.signal);
      if (last === undefined && this.#parting.takeVanished(delivery.key) === delivery.uid) {
        this.#partUnknown(delivery.key, delivery.uid);
      } else if (this.#peer.connection === connection && this.#partingState(delivery.key)?.uid !== delivery.uid) {
        connection.send(stateMessage(delivery, { target: 'application', principalUid }, undefined, last));
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) {
        runtime.log.warn({ agent, application: placeOf(delivery.key), error }, 'deletion not sent, will retry');
      }
    }
  }

  /** The agent may have a copy, in whatever state: it is to have one without finalizers before it is told of the deletion. */
  #partUnknown(key: ResourceKey, uid: string): void {
    this.#parting.addUnknown(key, uid);
    this.#outbox.repeat(key, { uid });
  }

  /**
   * An agent of argocd-agent deletes its copy with the finalizers that the copy has. Of one that this principal has not sent, nobody
   * knows them: the agent has it since before a start of the principal, and what it was made for has vanished since. So it gets
   * a state without finalizers that deploys nothing, and the deletion when it has that.
   */
  #partFirst(key: ResourceKey, uid: string): void {
    const { read, asksForWorkload } = this.#options;
    const [now, held] = [read(key), this.#outbox.held(key)];
    // What it has told of the present Application is newer than what it tells of a former one: it repeats reports.
    const isSent = now?.uid === uid || held?.digest !== undefined || (now !== undefined && held?.uid === now.uid);
    if (this.#agentIs !== 'original' || isSent || this.#parting.knows(key, uid)) {
      return;
    }
    // Beyond that nothing is recorded, and so nothing is deleted.
    if (!asksForWorkload(key, uid) && this.#peer.mayRecord(key)) {
      this.#parting.addUnknown(key, uid);
    }
  }

  #outboxFor(intent: IntentType): Outbox<Application> {
    return intent === 'terminate-operation' ? this.#terminations : this.#outbox;
  }

  #messageFor(delivery: Exclude<OutboundEvent<Application>, Deletion>): Message {
    const common = { target: 'application', principalUid: this.#options.principalUid } as const;
    const { snapshot, resourceId, eventId } = delivery;
    if (delivery.type !== 'intent') {
      // An operation is a request of its own, so that it is made once.
      const { operation: _, ...object } = snapshot.object;
      return stateMessage({ ...delivery, snapshot: { ...snapshot, object } }, common);
    }
    const { object } = snapshot;
    // argocd-agent's principal names itself in everything but this.
    return delivery.intent === 'set-operation'
      ? { target: 'application', resourceId, eventId, type: 'set-operation', object }
      : { ...common, resourceId, eventId, type: 'terminate-operation', object };
  }

  #keyOf(message: ApplicationMessage | ErrorMessage): ResourceKey {
    if (message.type === 'error') {
      const { resourceName: name, resourceNamespace: namespace } = message.error;
      return this.#options.hubKey({ name, namespace, remapped: false });
    }
    const { name, namespace = '', annotations: marks } = message.object.metadata;
    return this.#options.hubKey({ name, namespace, remapped: marks?.[annotations.namespaceRemapped] !== undefined });
  }
}

function isBeingDeleted({ metadata }: Application): boolean {
  return metadata.deletionTimestamp !== undefined;
}
