import { isEqual, type LabelCompletion } from '../../../base/index.ts';
import {
  Inbox,
  type InboxOutcome,
  type ObjectRef,
  type Runtime,
  type StoreChange,
  type Tuning,
  type View,
} from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { specChecksum } from '../../checksums.ts';
import type { Copy, CopySync, LateObject, ObjectMessage } from '../../peer/kind-sync.ts';
import type { ApplicationMessage, PeerConnection, RequestUpdate, UnreadableMessage } from '../../peer/messages.ts';
import { ReliableMessages } from '../../peer/reliable-messages.ts';
import type { SyncStats } from '../../peer/stats.ts';
import type { PlanWriter } from '../../writing/plan-writer.ts';
import { isMarked, isSkippedOnHub, mirrorDigest, mirroredUid, mirrorSpec, sourceSpecOf } from '../mirror.ts';
import { Departures } from './departures.ts';
import { MessageHistory, messageId } from './message-history.ts';
import type { MirrorFailure } from './mirror-failure.ts';
import { MirrorKeeper } from './mirror-keeper.ts';
import type { MirrorAdoptionPolicy, MirrorChange } from './mirror-plan.ts';
import { MirrorRequests, type ReceivedRequests } from './mirror-requests.ts';

/** What a {@link AgentMirrors} needs of the hub. */
export interface AgentMirrorsOptions {
  readonly agent: string;
  readonly principalUid: string;
  /** The hub's name for the agent's cluster; undefined while there is none. */
  readonly cluster: () => string | undefined;
  readonly adoptionPolicy: MirrorAdoptionPolicy;
  /** The labels of a mirror, made of those that its agent's Application has. */
  readonly labelsOf: LabelCompletion;
  /** The hub's Applications. */
  readonly view: View<Application>;
  /** Names of the Applications in the agent's namespace. */
  readonly names: () => Iterable<string>;
  readonly writer: PlanWriter<Application>;
  readonly onFailure: (failure: MirrorFailure) => void;
  /** Somebody of the hub has changed or deleted a mirror, which is now as before. */
  readonly onPutBack: (mirror: Application, was: MirrorChange) => void;
  /** The agent connected or disconnected. */
  readonly presenceChanged: (isThere: boolean) => void;
  /** Waits until the agent may write again; called before each of its messages is processed. Default: no wait. */
  readonly pace?: ((agent: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly runtime: Runtime;
  readonly tuning?: Tuning | undefined;
}

/** Work for one mirror: a message of the agent, or something that changed on the hub. */
type Work =
  | {
      readonly is: 'message';
      readonly name: string;
      readonly id: string;
      readonly message: ApplicationMessage;
      readonly received: ReceivedRequests;
      /** The connection on which it came. */
      readonly connection: PeerConnection | undefined;
    }
  | { readonly is: 'reconcile'; readonly name: string; readonly id: string }
  | { readonly is: 'verify'; readonly name: string; readonly id: string };

/** The mirrors of one autonomous agent. They are kept as it reported last, also while it is disconnected. */
export class AgentMirrors implements CopySync {
  readonly kind = 'Application';
  readonly #options: AgentMirrorsOptions;
  readonly #keeper: MirrorKeeper;
  readonly #history: MessageHistory;
  readonly #departures: Departures;
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
    this.#departures = new Departures({ clock: options.runtime.clock, ask: (name) => this.#ask(name) });
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
          log.warn({ agent, application: `${agent}/${name}`, attempt, error }, 'mirror not written, will retry'),
        runtime: options.runtime,
        tuning: options.tuning,
      },
      this.#stop.signal,
    );
  }

  connected(connection: PeerConnection): void {
    this.#connection = connection;
    this.#options.presenceChanged(true);
    this.#inbox.reconnected();
    this.#messages.connected(connection);
    this.#requests.connected(connection);
  }

  disconnected(): void {
    this.#connection = undefined;
    this.#options.presenceChanged(false);
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
      // The mirror has to show the result, whatever it is.
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
    if (is === 'late' && !this.#isAnswer(name)) {
      this.#connection?.acknowledge(message);
      return true;
    }
    this.#history.received(message);
    this.#departures.received(message);
    const received = this.#requests.received(name);
    const id = is === 'new' ? messageId(message) : this.#options.runtime.newId();
    this.#inbox.receive({ is: 'message', name, id, message, received, connection: this.#connection });
    return true;
  }

  unreadable({ name, reason }: UnreadableMessage): void {
    this.#keeper.refuse(name, `what the agent sent cannot be read: ${reason}`);
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

  reportOf({ namespace, name }: ObjectRef): RequestUpdate {
    // A report asks, too: the agent answers when it has something else.
    this.#history.asked(name);
    const mirror = this.#keeper.mirror(name);
    const uid = this.#keeper.shownUid(name);
    const common = { kind: 'Application', name, namespace } as const;
    if (mirror === undefined || uid === '') {
      return { ...common, uid, checksum: null, ...(uid === '' ? {} : { digest: '' }) };
    }
    const { agent } = this.#options;
    const fields = this.#keeper.fieldsShown(name, mirror);
    const cluster = this.#options.cluster();
    const isSettled =
      // The cluster is no part of what is compared with the agent: somebody may have changed it while nobody served the agent.
      (cluster === undefined || isEqual(mirror.spec, mirrorSpec(fields, { agent, cluster }))) &&
      isMarked(mirror) &&
      isSkippedOnHub(mirror) &&
      mirroredUid(mirror) === uid &&
      mirror.metadata.deletionTimestamp === undefined &&
      !this.#keeper.hasFailed(name) &&
      !this.#inbox.isBusy(name);
    return {
      ...common,
      uid,
      // None, or an empty one, which is no digest of anything, makes an agent of either kind report what it has. A Go agent
      // compares the spec alone: it would leave out a status that an earlier process acknowledged and the hub refused.
      checksum: isSettled && this.#history.has(name) ? specChecksum(sourceSpecOf(mirror, agent)) : null,
      digest: isSettled ? mirrorDigest(fields, mirror) : '',
    };
  }

  localRef({ name }: { readonly name: string }): ObjectRef {
    return this.#ref(name);
  }

  sourceRestarted(): void {
    // The resync reports to the agent what the hub has. Requests that it did not acknowledge are sent again anyway.
  }

  stats(): SyncStats {
    return {
      pending: this.#requests.pending + this.#messages.pending,
      inFlight: this.#requests.inFlight,
      queued: this.#inbox.queued,
      retrying: this.#inbox.retrying + this.#keeper.retrying,
    };
  }

  oldestMs(): number {
    return this.#requests.oldestMs;
  }

  late(afterMs: number, most: number): readonly LateObject[] {
    return this.#requests.late(afterMs, most);
  }

  failures(): MirrorFailure[] {
    return this.#keeper.failures();
  }

  /** Whether the hub's object of this name and uid is a mirror, whatever users made of it. */
  isMirror(name: string, uid: string | undefined): boolean {
    return uid !== undefined && this.#keeper.desired(name)?.mirrorUid === uid;
  }

  /** Records the mirrors that an earlier process made. Called once. */
  begin(): void {
    this.#keeper.begin();
  }

  /** The hub's object of this name changed. */
  hubChange(name: string, change: StoreChange<Application>): void {
    this.#keeper.hubChange(name, change);
  }

  /** The hub's name for the agent's cluster may have changed. */
  clusterChanged(): void {
    this.#keeper.clusterChanged();
  }

  close(): void {
    this.#stop.abort();
    this.#departures.close();
    this.#messages.close();
    this.#requests.close();
    this.#keeper.close();
  }

  /** A created mirror has not appeared in the cache: read it. */
  verify({ name }: ObjectRef): void {
    this.#inbox.receive({ is: 'verify', name, id: this.#options.runtime.newId() });
  }

  /** Whether what looks like a late copy is the answer to the question whether it is one. Asks that, if it was not asked yet. */
  #isAnswer(name: string): boolean {
    if (this.#history.doubted(name)) {
      return !this.#messages.has(questionAbout(name));
    }
    this.#ask(name, { digest: '' });
    return false;
  }

  /** Asks the agent to report what it has of this name. With an empty digest, an agent of either kind answers in any case. */
  #ask(name: string, more: Pick<RequestUpdate, 'digest'> = {}): void {
    this.#messages.post(questionAbout(name), () => ({
      target: 'resourceResync',
      type: 'request-update',
      // Without checksum a Go agent answers in any case.
      payload: { ...this.reportOf(this.#ref(name)), checksum: null, ...more },
    }));
  }

  #acknowledge({ name, message, connection }: Work & { readonly is: 'message' }): void {
    if (connection === this.#connection) {
      connection?.acknowledge(message);
    } else {
      // The process that sent it may have restarted since.
      this.#ask(name);
    }
  }

  async #apply(work: Work, signal: AbortSignal): Promise<InboxOutcome> {
    const { name } = work;
    await this.#options.pace?.(this.#options.agent, signal);
    switch (work.is) {
      case 'verify':
        await this.#options.writer.read(this.#ref(name), signal);
        return 'done';
      case 'reconcile':
        return this.#keeper.reconcile(name, signal);
      case 'message':
        return this.#keeper.take(work.message, work.received, signal);
    }
  }

  #ref(name: string): ObjectRef {
    return { namespace: this.#options.agent, name };
  }
}

function questionAbout(name: string): string {
  return `ask-${name}`;
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
