import { Inbox, type InboxOutcome, type ObjectRef, type Runtime, type Tuning, type View } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { specChecksum } from '../../checksums.ts';
import type { Copy, CopySync, ObjectMessage } from '../../peer/kind-sync.ts';
import type { ApplicationMessage, PeerConnection, RequestUpdate } from '../../peer/messages.ts';
import { ReliableMessages } from '../../peer/reliable-messages.ts';
import type { SyncStats } from '../../peer/stats.ts';
import type { ApplicationWriter } from '../../writing/application-writer.ts';
import { fieldsOfMirror, isMarked, mirrorDigest, mirroredUid, sourceSpecOf } from '../mirror.ts';
import { MessageHistory, messageId } from './message-history.ts';
import type { MirrorFailure } from './mirror-failure.ts';
import { MirrorKeeper } from './mirror-keeper.ts';
import type { MirrorAdoptionPolicy } from './mirror-plan.ts';
import { MirrorRequests, type ReceivedRequests } from './mirror-requests.ts';

/** What a {@link AgentMirrors} needs of the hub. */
export interface AgentMirrorsOptions {
  readonly agent: string;
  readonly principalUid: string;
  /** What the hub calls the agent's cluster; undefined while there is none. */
  readonly cluster: () => string | undefined;
  readonly adoptionPolicy: MirrorAdoptionPolicy;
  /** The hub's Applications. */
  readonly view: View<Application>;
  /** Names of the Applications in the agent's namespace. */
  readonly names: () => Iterable<string>;
  readonly writer: ApplicationWriter;
  readonly onFailure: (trouble: MirrorFailure) => void;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/** Something to do for one mirror: what the agent said, or a look at what changed. */
type Work =
  | {
      readonly is: 'message';
      readonly name: string;
      readonly id: string;
      readonly message: ApplicationMessage;
      readonly received: ReceivedRequests;
      /** On which it came. */
      readonly connection: PeerConnection | undefined;
    }
  | { readonly is: 'reconcile'; readonly name: string; readonly id: string }
  | { readonly is: 'doubt'; readonly name: string; readonly id: string };

/** The mirrors of one autonomous agent. They are kept as it said last, also while it is away. */
export class AgentMirrors implements CopySync {
  readonly kind = 'Application';
  readonly #options: AgentMirrorsOptions;
  readonly #keeper: MirrorKeeper;
  readonly #history: MessageHistory;
  readonly #inbox: Inbox<Work>;
  readonly #requests: MirrorRequests;
  readonly #messages: ReliableMessages;
  readonly #stop = new AbortController();
  #connection: PeerConnection | undefined;

  constructor(options: AgentMirrorsOptions) {
    this.#options = options;
    const { agent } = options;
    const { log } = options.runtime;
    this.#requests = new MirrorRequests({
      ...options,
      read: (name) => this.#keeper.mirror(name),
      sourceUid: (name) => this.#keeper.desired(name)?.sourceUid,
    });
    this.#messages = new ReliableMessages(options.runtime, options.tuning);
    this.#keeper = new MirrorKeeper({
      ...options,
      requests: this.#requests,
      reconcile: (name) => this.#inbox.receive({ is: 'reconcile', name, id: options.runtime.newId() }),
      isBusy: (name) => this.#inbox.isBusy(name),
      ask: (name) => this.#ask(name),
    });
    this.#history = new MessageHistory({
      isInUse: (name) => this.#keeper.desired(name) !== undefined,
      inUse: () => this.#keeper.size,
    });
    this.#inbox = new Inbox<Work>(
      {
        apply: (work, signal) => this.#apply(work, signal),
        acknowledge: (work) => {
          if (work.is === 'message') {
            this.#acknowledge(work);
          }
        },
        laneOf: ({ name }) => name,
        idOf: ({ id }) => id,
        supersedes,
        onError: (error, { name }, attempt) =>
          log.warn({ agent, application: `${agent}/${name}`, attempt, err: error }, 'mirror not written, will retry'),
        runtime: options.runtime,
        tuning: options.tuning,
      },
      this.#stop.signal,
    );
  }

  connected(connection: PeerConnection): void {
    this.#connection = connection;
    this.#inbox.reconnected();
    this.#messages.connected(connection);
    this.#requests.connected(connection);
  }

  disconnected(): void {
    this.#connection = undefined;
    this.#messages.disconnected();
    this.#requests.disconnected();
  }

  writable(): void {
    this.#messages.writable();
    this.#requests.writable();
  }

  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): boolean {
    if (this.#messages.acknowledged(event.resourceId, event.eventId)) {
      return true;
    }
    const isRequest = this.#requests.acknowledged(event);
    if (isRequest) {
      // Whatever came of it, the mirror is to show it.
      this.#ask(event.resourceId.slice(0, event.resourceId.lastIndexOf('_')));
    }
    return isRequest;
  }

  receive(message: ObjectMessage): boolean {
    if (
      message.target !== 'application' ||
      (message.type !== 'create' && message.type !== 'spec-update' && message.type !== 'delete')
    ) {
      return false;
    }
    const { name, uid = '' } = message.object.metadata;
    if (uid === '' || !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)) {
      return false;
    }
    const is = this.#history.is(message);
    if (is === 'late') {
      this.#connection?.acknowledge(message);
      return true;
    }
    const received = this.#requests.received(name);
    const id = is === 'again' ? this.#options.runtime.newId() : messageId(message);
    this.#inbox.receive({ is: 'message', name, id, message, received, connection: this.#connection });
    return true;
  }

  copies(): Copy[] {
    const copies = [];
    for (const name of this.#keeper.names()) {
      const uid = this.#keeper.shownUid(name);
      if (uid !== '') {
        copies.push({ ref: this.#ref(name), name, uid });
      }
    }
    return copies;
  }

  holding({ namespace, name }: ObjectRef): RequestUpdate {
    const mirror = this.#keeper.mirror(name);
    const uid = this.#keeper.shownUid(name);
    const common = { kind: 'Application', name, namespace } as const;
    if (mirror === undefined || uid === '') {
      return { ...common, uid, checksum: null, ...(uid === '' ? {} : { digest: '' }) };
    }
    const { agent } = this.#options;
    const isSettled =
      isMarked(mirror) &&
      mirroredUid(mirror) === uid &&
      mirror.metadata.deletionTimestamp === undefined &&
      !this.#keeper.isTroubled(name) &&
      !this.#inbox.isBusy(name);
    return {
      ...common,
      uid,
      // None, or an empty one, which is no digest of anything, makes an agent of either kind say what it has.
      checksum: isSettled ? specChecksum(sourceSpecOf(mirror, agent)) : null,
      digest: isSettled ? mirrorDigest(fieldsOfMirror(mirror, agent), mirror) : '',
    };
  }

  localRef({ name }: { readonly name: string }): ObjectRef {
    return this.#ref(name);
  }

  sourceRestarted(): void {
    // The agent hears by the resync what the hub has. Requests that it did not acknowledge are made again anyway.
  }

  stats(): SyncStats {
    return {
      pending: this.#requests.pending + this.#messages.pending,
      inFlight: this.#requests.inFlight,
      queued: this.#inbox.queued,
      retrying: this.#inbox.retrying + this.#keeper.troubled,
    };
  }

  troubles(): MirrorFailure[] {
    return this.#keeper.troubles();
  }

  /** Whether the hub's object of this name and uid is a mirror, whatever users made of it. */
  isMirror(name: string, uid: string | undefined): boolean {
    return uid !== undefined && this.#keeper.desired(name)?.mirrorUid === uid;
  }

  /** Takes up what is there. Called once. */
  begin(): void {
    this.#keeper.begin();
  }

  /** The hub's object of this name changed. */
  hubChange(name: string, now: Application | undefined): void {
    this.#keeper.hubChange(name, now);
  }

  /** What the hub calls the agent's cluster may have changed. */
  clusterChanged(): void {
    this.#keeper.clusterChanged();
  }

  close(): void {
    this.#stop.abort();
    this.#messages.close();
    this.#requests.close();
    this.#keeper.close();
  }

  /** The object's creation has not shown up. */
  doubt({ name }: ObjectRef): void {
    this.#inbox.receive({ is: 'doubt', name, id: this.#options.runtime.newId() });
  }

  /** Makes the agent say what it has of this name. */
  #ask(name: string): void {
    this.#messages.post(`ask-${name}`, () => ({
      target: 'resourceResync',
      type: 'request-update',
      // Without checksum a Go agent answers in any case.
      payload: { ...this.holding(this.#ref(name)), checksum: null },
    }));
  }

  #acknowledge({ name, message, connection }: Work & { readonly is: 'message' }): void {
    if (connection === this.#connection) {
      connection?.acknowledge(message);
    } else {
      // Who said it may have gone, or have lost its memory, since.
      this.#ask(name);
    }
  }

  async #apply(work: Work, signal: AbortSignal): Promise<InboxOutcome> {
    const { name } = work;
    switch (work.is) {
      case 'doubt':
        await this.#options.writer.read(this.#ref(name), signal);
        return 'done';
      case 'reconcile':
        return this.#keeper.reconcile(name, signal);
      case 'message':
        this.#history.said(work.message);
        return this.#keeper.take(work.message, work.received, signal);
    }
  }

  #ref(name: string): ObjectRef {
    return { namespace: this.#options.agent, name };
  }
}

function supersedes(newer: Work, older: Work): boolean {
  if (older.is === 'reconcile') {
    return newer.is === 'reconcile' || (newer.is === 'message' && newer.message.type !== 'delete');
  }
  if (newer.is !== 'message' || older.is !== 'message' || older.message.type === 'delete') {
    return false;
  }
  return newer.message.type !== 'delete' || newer.message.object.metadata.uid === older.message.object.metadata.uid;
}
