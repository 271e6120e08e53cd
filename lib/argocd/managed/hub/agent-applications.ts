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
import type { Listed, ObjectMessage, SourceSync } from '../../peer/kind-sync.ts';
import type { ApplicationMessage, ErrorMessage, Message, PeerConnection, RequestUpdate } from '../../peer/messages.ts';
import { SourceLink } from '../../peer/source-link.ts';
import type { SyncStats } from '../../peer/stats.ts';
import { placeOf } from '../../place.ts';
import type { AgentReport, DeliveredRequests } from './agent-report.ts';
import { EarlyReports } from './early-reports.ts';

/** How an agent calls an Application. */
export interface ReportedRef {
  readonly name: string;
  readonly namespace: string;
  /** It says that the namespace stands for another one on the hub. */
  readonly remapped: boolean;
}

/** What a {@link AgentApplications} needs of the hub. */
export interface AgentApplicationsOptions {
  readonly agent: string;
  readonly principalUid: string;
  /** The Application as the agent should have it. */
  readonly read: (key: ResourceKey) => Snapshot<Application> | undefined;
  /** All that the agent should have. */
  readonly keys: () => Iterable<ResourceKey>;
  /** How many these are. */
  readonly count: () => number;
  /** What the agent has got of the requests on the hub's object. */
  readonly delivered: (key: ResourceKey) => DeliveredRequests;
  readonly apply: (report: AgentReport, signal: AbortSignal) => Promise<InboxOutcome>;
  /** The hub's key of what the agent speaks of. */
  readonly hubKey: (reported: ReportedRef) => ResourceKey;
  /** The agent is there, or gone. */
  readonly presenceChanged: (isThere: boolean) => void;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

type IntentType = 'set-operation' | 'terminate-operation';

/** How many Applications that an agent should not have are remembered until it has deleted them. */
const mostStrays = 10_000;

/** One agent as the principal sees it: what to send, what came, and the connection if there is one. */
export class AgentApplications implements SourceSync {
  readonly kind = 'Application';
  readonly #options: AgentApplicationsOptions;
  readonly #outbox: Outbox<Application>;
  /** On a way of their own: an operation that waits for the end of another one must not hold up the wish to end that. */
  readonly #terminations: Outbox<Application>;
  readonly #inbox: Inbox<AgentReport>;
  readonly #early = new EarlyReports();
  #again = 0;
  readonly #deliveredNow = ({ key }: AgentReport) => this.#options.delivered(key);
  readonly #stop = new AbortController();
  readonly #link: SourceLink;
  /** The log has, since this agent connected, the warning that it holds too many Applications that it should not have. */
  #warnedOfStrays = false;

  constructor(options: AgentApplicationsOptions) {
    this.#options = options;
    const { runtime, tuning } = options;
    const source = { read: options.read };
    this.#outbox = new Outbox<Application>({ runtime, tuning, source });
    this.#terminations = new Outbox<Application>({ runtime, tuning, source, sendsDeletes: false });
    this.#link = new SourceLink([this.#outbox, this.#terminations], (connection) => this.#send(connection));
    this.#inbox = new Inbox<AgentReport>(
      {
        apply: options.apply,
        acknowledge: ({ message, again }) => {
          if (again === undefined) {
            this.#link.connection?.acknowledge(message);
          }
        },
        laneOf: ({ key }) => keyString(key),
        idOf: ({ message, again = '' }) => `${message.type}/${message.resourceId}/${message.eventId}${again}`,
        supersedes: (newer, older) => older.message.type !== 'delete' && newer.message.type === older.message.type,
        onError: (error, { key }, attempt) =>
          runtime.log.warn(
            { agent: options.agent, application: placeOf(key), attempt, err: error },
            'report not written, will retry',
          ),
        runtime,
        tuning,
      },
      this.#stop.signal,
    );
  }

  connected(connection: PeerConnection): void {
    this.#warnedOfStrays = false;
    this.#options.presenceChanged(true);
    this.#inbox.reconnected();
    this.#early.clear();
    this.#link.connected(connection);
  }

  disconnected(): void {
    this.#options.presenceChanged(false);
    this.#link.disconnected();
  }

  open(): void {
    this.#link.open();
  }

  writable(): void {
    this.#outbox.writable();
    this.#terminations.writable();
  }

  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): boolean {
    const isOurs =
      this.#outbox.acknowledged(event.resourceId, event.eventId) ||
      this.#terminations.acknowledged(event.resourceId, event.eventId);
    const early = isOurs ? this.#early.acknowledged(event.resourceId, this.#deliveredNow) : undefined;
    if (early !== undefined) {
      this.#inbox.receive({ ...early, again: `/${++this.#again}` });
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
    this.#early.came(report, this.#options.read(key)?.object);
    this.#inbox.receive(report);
    return true;
  }

  changed(key: ResourceKey): void {
    this.#outbox.changed(key);
    if (this.#terminations.knows(key) && this.#options.read(key) === undefined) {
      this.#terminations.changed(key);
    }
  }

  /** Tells the agent as if it had nothing: it answers with a report. */
  repeat(key: ResourceKey): void {
    this.#outbox.repeat(key);
  }

  /** Passes on what a user asks of Argo CD; also that the user takes back an operation, which then is none. */
  request(key: ResourceKey, intent: IntentType): void {
    this.#outboxFor(intent).request(key, intent);
  }

  withdraw(key: ResourceKey, intent: IntentType): void {
    this.#outboxFor(intent).withdraw(key, intent);
  }

  /** Whether the agent has not done it yet. */
  requested(key: ResourceKey, intent: IntentType): boolean {
    return this.#outboxFor(intent).requested(key, intent);
  }

  held(key: ResourceKey): PeerCopy | undefined {
    return this.#outbox.held(key);
  }

  /** The agent let it be known what it has. */
  peerHolds(key: ResourceKey, copy: PeerCopy | undefined): void {
    if (!this.#isStray(key) || (copy !== undefined && this.#admitsStrays())) {
      this.#outbox.peerHolds(key, copy);
    }
  }

  /** The agent reported about a copy of what it should have. */
  seen(key: ResourceKey, uid: string): void {
    this.#outbox.seen(key, uid);
  }

  peerReported({ name, uid, checksum, digest, namespace = '' }: RequestUpdate): string | undefined {
    const key = this.#options.hubKey({ name, namespace, remapped: false });
    if (uid === '') {
      this.#lacks(key);
    } else if (digest !== undefined) {
      this.peerHolds(key, { uid, digest: `${digest}|` });
    } else if (this.#outbox.held(key)?.uid !== uid || !this.#hasSpec(key, checksum)) {
      this.peerHolds(key, { uid, digest: this.#digestAt(key, uid, checksum) });
    }
    // What it should not have now it may be meant to have by the time it has told everything.
    return this.#options.read(key) === undefined && !this.#outbox.knows(key) ? undefined : placeOf(key);
  }

  peerLacks(id: string): void {
    const [namespace = '', name = ''] = id.split('/');
    this.#lacks({ kind: 'Application', namespace, name });
  }

  list(): Listed[] {
    return Array.from(this.#options.keys()).flatMap((key) => {
      const uid = this.#options.read(key)?.uid;
      return uid === undefined ? [] : [{ id: placeOf(key), name: key.name, namespace: key.namespace, uid }];
    });
  }

  stats(): SyncStats {
    return {
      pending: this.#outbox.pending + this.#terminations.pending,
      inFlight: this.#outbox.inFlight + this.#terminations.inFlight,
      queued: this.#inbox.queued,
      retrying: this.#inbox.retrying,
    };
  }

  close(): void {
    this.#stop.abort();
    this.#outbox.close();
    this.#terminations.close();
  }

  /** What the agent was to carry out on a copy that it does not have any more, it has not carried out as far as anybody knows. */
  #lacks(key: ResourceKey): void {
    this.peerHolds(key, undefined);
    const { operation, status } = this.#options.read(key)?.object ?? {};
    const isAsked = operation !== undefined && status?.operationState?.phase !== 'Terminating';
    if (isAsked && !this.requested(key, 'set-operation')) {
      this.request(key, 'set-operation');
    }
  }

  /** Neither should the agent have it, nor is anything known of it. */
  #isStray(key: ResourceKey): boolean {
    return this.#options.read(key) === undefined && !this.#outbox.knows(key);
  }

  /** Bounds what an agent can make this side remember. What is over the bound comes with the next resync. */
  #admitsStrays(): boolean {
    const { agent, count } = this.#options;
    const { log } = this.#options.runtime;
    if (this.#outbox.size < count() + mostStrays) {
      return true;
    }
    if (!this.#warnedOfStrays) {
      log.warn({ agent, most: mostStrays }, 'the agent has too many Applications that it should not have');
      this.#warnedOfStrays = true;
    }
    return false;
  }

  #send(connection: PeerConnection): void {
    this.#outbox.connected({ send: (delivery) => connection.send(this.#messageFor(delivery)) });
    this.#terminations.connected({
      send: (delivery) =>
        delivery.type === 'intent'
          ? connection.send(this.#messageFor(delivery))
          : // The state goes its own way.
            this.#terminations.acknowledged(delivery.resourceId, delivery.eventId),
    });
  }

  #outboxFor(intent: IntentType): Outbox<Application> {
    return intent === 'terminate-operation' ? this.#terminations : this.#outbox;
  }

  #messageFor(delivery: OutboundEvent<Application>): Message {
    const { key, resourceId, eventId } = delivery;
    const unstamped = { target: 'application', resourceId, eventId } as const;
    const common = { ...unstamped, principalUid: this.#options.principalUid };
    if (delivery.type === 'delete') {
      const { uid, version: resourceVersion } = delivery;
      const metadata = { name: key.name, namespace: key.namespace, uid, resourceVersion };
      return { ...common, type: 'delete', object: { metadata, spec: {} } };
    }
    const { object } = delivery.snapshot;
    if (delivery.type === 'intent') {
      // argocd-agent's principal names itself in everything but this.
      return delivery.intent === 'set-operation'
        ? { ...unstamped, type: 'set-operation', object }
        : { ...common, type: 'terminate-operation', object };
    }
    // An operation is a request of its own, so that it is made once.
    const { operation: _, ...state } = object;
    return { ...common, type: delivery.type === 'create' ? 'create' : 'spec-update', object: state };
  }

  /**
   * The state that an agent has which only says the checksum of its spec: if that is the hub's, the hub's, as argocd-agent
   * takes it; but it may not have heard of the requests.
   */
  #digestAt(key: ResourceKey, uid: string, checksum: string | null): string | undefined {
    const now = this.#options.read(key);
    return now?.uid === uid && this.#hasSpec(key, checksum)
      ? `${now.digest.slice(0, now.digest.lastIndexOf('|'))}|`
      : undefined;
  }

  #hasSpec(key: ResourceKey, checksum: string | null): boolean {
    const now = this.#options.read(key);
    return now !== undefined && specChecksum(now.object.spec) === checksum;
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
