import {
  type Backoff,
  type Clock,
  type Delivery,
  Inbox,
  type InboxOutcome,
  keyString,
  Outbox,
  type PeerCopy,
  type ResourceKey,
  type Snapshot,
} from '../../sync/index.ts';
import type { Application } from '../application.ts';
import { specChecksum } from '../checksums.ts';
import { annotations } from '../names.ts';
import { Errands } from './errands.ts';
import { displayName, type SyncLog } from './log.ts';
import type { ApplicationMessage, ErrorMessage, Message, PeerConnection, ResyncMessage } from './messages.ts';
import type { SyncStats } from './stats.ts';

/** A message of an agent, with what was known of the hub's own requests when it arrived. */
export interface Report {
  /** The hub's Application that it is about. */
  readonly key: ResourceKey;
  readonly message: ApplicationMessage | ErrorMessage;
  /** The requests of the hub's object that the agent had got by then: only to these can the report be an answer. */
  readonly delivered: Delivered;
  readonly terminating: boolean;
}

/** What an agent has got of the requests on a hub object; undefined where it has not got what is there. */
export interface Delivered {
  /** Digest of `operation`, empty when there was none. */
  readonly operation: string | undefined;
  /** Digest of the trigger annotations, empty when there were none. */
  readonly triggers: string | undefined;
}

/** How an agent calls an Application. */
export interface Told {
  readonly name: string;
  readonly namespace: string;
  /** It says that the namespace stands for another one on the hub. */
  readonly remapped: boolean;
}

/** What a {@link PrincipalPeer} needs of the hub. */
export interface PrincipalPeerOptions {
  readonly agent: string;
  readonly principalUid: string;
  /** The Application as the agent should have it. */
  readonly read: (key: ResourceKey) => Snapshot<Application> | undefined;
  /** All that the agent should have. */
  readonly keys: () => ResourceKey[];
  /** What the agent has got of the requests on the hub's object. */
  readonly delivered: (key: ResourceKey) => Delivered;
  readonly apply: (report: Report, signal: AbortSignal) => Promise<InboxOutcome>;
  /** The hub's key of what the agent speaks of. */
  readonly hubKey: (told: Told) => ResourceKey;
  readonly log: SyncLog;
  readonly clock: Clock;
  readonly random: () => number;
  readonly newId: () => string;
  readonly maxInFlight: number | undefined;
  readonly concurrency: number | undefined;
  readonly resend: Backoff | undefined;
}

/** How long a new agent has to say what it holds, before everything is sent as if it held nothing. */
const introductionMs = 2_000;

/** One agent as the principal sees it: what to send, what came, and the connection if there is one. */
export class PrincipalPeer {
  readonly #options: PrincipalPeerOptions;
  readonly #outbox: Outbox<Application>;
  readonly #errands: Errands;
  readonly #inbox: Inbox<Report>;
  readonly #stop = new AbortController();
  /** What the agent said to hold on this connection. */
  readonly #reported = new Set<string>();
  /** Resync messages of this connection: a repeated one would speak of what was, not of what is. */
  readonly #heard = new Set<string>();
  #connection: PeerConnection | undefined;
  /** The agent told what it holds since this process runs. */
  #introduced = false;
  #cancelIntroduction: (() => void) | undefined;

  constructor(options: PrincipalPeerOptions) {
    this.#options = options;
    const { clock, random } = options;
    const delivery = {
      clock,
      random,
      ...(options.maxInFlight === undefined ? {} : { maxInFlight: options.maxInFlight }),
      ...(options.resend === undefined ? {} : { resend: options.resend }),
    };
    this.#outbox = new Outbox<Application>({ ...delivery, source: { read: options.read } });
    this.#errands = new Errands({ ...delivery, newId: options.newId, resend: options.resend });
    this.#inbox = new Inbox<Report>(
      {
        apply: options.apply,
        acknowledge: ({ message }) => this.#connection?.acknowledge(message),
        laneOf: ({ key }) => keyString(key),
        idOf: ({ message }) => `${message.type}/${message.resourceId}/${message.eventId}`,
        supersedes: (newer, older) => older.message.type !== 'delete' && newer.message.type === older.message.type,
        onError: (error, { key }, attempt) =>
          options.log.warn(
            { agent: options.agent, application: displayName(key), attempt, err: error },
            'report not written, will retry',
          ),
        clock,
        random,
        ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
      },
      this.#stop.signal,
    );
  }

  connected(connection: PeerConnection): void {
    this.#connection = connection;
    this.#inbox.reconnected();
    this.#reported.clear();
    this.#heard.clear();
    this.#outbox.disconnected();
    this.#errands.connected(connection);
    if (this.#introduced) {
      this.#open(connection);
      return;
    }
    this.#errands.post('introduction', () => ({
      target: 'resourceResync',
      type: 'request-resource-resync',
      payload: {},
    }));
    this.#cancelIntroduction?.();
    this.#cancelIntroduction = this.#options.clock.after(introductionMs, () => this.#introduce());
  }

  disconnected(connection: PeerConnection): void {
    if (this.#connection === connection) {
      this.#connection = undefined;
      this.#cancelIntroduction?.();
      this.#errands.disconnected();
      this.#outbox.disconnected();
    }
  }

  writable(): void {
    this.#errands.writable();
    this.#outbox.writable();
  }

  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): void {
    if (!this.#errands.acknowledged(event.resourceId, event.eventId)) {
      this.#outbox.acknowledged(event.resourceId, event.eventId);
    } else if (!this.#errands.has('introduction')) {
      this.#introduce();
    }
  }

  receive(message: Message): void {
    if (message.target === 'resourceResync') {
      if (!this.#heard.has(message.eventId)) {
        this.#heard.add(message.eventId);
        this.#resync(message);
      }
      this.#connection?.acknowledge(message);
    } else if (
      message.target === 'application' &&
      (message.type === 'status-update' || message.type === 'delete' || message.type === 'error')
    ) {
      const key = this.#keyOf(message);
      this.#inbox.receive({
        key,
        message,
        delivered: this.#options.delivered(key),
        terminating: this.#outbox.requested(key, 'terminate-operation'),
      });
    } else {
      const { target, type } = message;
      this.#options.log.warn({ agent: this.#options.agent, target, type }, 'a managed agent may not send this');
      this.#connection?.acknowledge(message);
    }
  }

  changed(key: ResourceKey): void {
    this.#outbox.changed(key);
  }

  /** Tells the agent as if it had nothing: it answers with a report. */
  repeat(key: ResourceKey): void {
    this.#outbox.repeat(key);
  }

  request(key: ResourceKey, intent: 'set-operation' | 'terminate-operation'): void {
    this.#outbox.request(key, intent);
  }

  withdraw(key: ResourceKey, intent: 'set-operation' | 'terminate-operation'): void {
    this.#outbox.withdraw(key, intent);
  }

  requested(key: ResourceKey, intent: 'set-operation' | 'terminate-operation'): boolean {
    return this.#outbox.requested(key, intent);
  }

  held(key: ResourceKey): PeerCopy | undefined {
    return this.#outbox.held(key);
  }

  /** The agent let it be known what it has. */
  holds(key: ResourceKey, copy: PeerCopy | undefined): void {
    this.#outbox.peerHolds(key, copy);
  }

  stats(): SyncStats {
    return {
      pending: this.#outbox.pending + this.#errands.pending,
      inFlight: this.#outbox.inFlight,
      queued: this.#inbox.queued,
      retrying: this.#inbox.retrying,
    };
  }

  close(): void {
    this.#stop.abort();
    this.#cancelIntroduction?.();
    this.#outbox.close();
    this.#errands.close();
  }

  #introduce(): void {
    this.#cancelIntroduction?.();
    if (!this.#introduced && this.#connection !== undefined) {
      this.#introduced = true;
      this.#open(this.#connection);
    }
  }

  #open(connection: PeerConnection): void {
    this.#outbox.connected({ send: (delivery) => connection.send(this.#messageFor(delivery)) });
  }

  #messageFor(delivery: Delivery<Application>): Message {
    const { key, resourceId, eventId } = delivery;
    const common = { target: 'application', resourceId, eventId, principalUid: this.#options.principalUid } as const;
    if (delivery.type === 'delete') {
      const { uid, version: resourceVersion } = delivery;
      const metadata = { name: key.name, namespace: key.namespace, uid, resourceVersion };
      return { ...common, type: 'delete', object: { metadata, spec: {} } };
    }
    const { object } = delivery.snapshot;
    if (delivery.type === 'intent') {
      const type = delivery.intent === 'set-operation' ? 'set-operation' : 'terminate-operation';
      return { ...common, type, object };
    }
    // An operation is a request of its own, so that it is made once.
    const { operation: _, ...state } = object;
    return { ...common, type: delivery.type === 'create' ? 'create' : 'spec-update', object: state };
  }

  #resync(message: ResyncMessage): void {
    switch (message.type) {
      case 'request-update': {
        const { kind, name, uid, checksum, digest, namespace } = message.payload;
        if (kind !== 'Application') {
          return;
        }
        const key = this.#options.hubKey({ name, namespace: namespace ?? '', remapped: false });
        this.#reported.add(keyString(key));
        if (uid === '') {
          this.#outbox.peerHolds(key, undefined);
          return;
        }
        if (digest === undefined && this.#outbox.held(key)?.uid === uid && this.#hasSpec(key, checksum)) {
          return;
        }
        this.#outbox.peerHolds(key, { uid, digest: digest === undefined ? undefined : `${digest}|` });
        return;
      }
      case 'request-synced-resource-list':
        // The agent started. What it did not report before this, it does not have; a Go agent reports in any order, and
        // then gets something that it has already.
        for (const key of this.#options.keys()) {
          if (!this.#reported.has(keyString(key))) {
            this.#outbox.peerHolds(key, undefined);
          }
        }
        return;
      default:
        this.#options.log.warn({ agent: this.#options.agent, type: message.type }, 'a managed agent may not send this');
    }
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
