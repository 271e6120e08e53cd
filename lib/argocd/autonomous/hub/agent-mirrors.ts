import type { Logger } from '../../../base/index.ts';
import { type Backoff, type Clock, Inbox, type InboxOutcome, type ObjectRef, type View } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { specChecksum } from '../../checksums.ts';
import type { Copy, MirrorPart, ObjectMessage } from '../../peer/kind-sync.ts';
import type { ApplicationMessage, PeerConnection, RequestUpdate } from '../../peer/messages.ts';
import { Errands } from '../../peer/reliable-messages.ts';
import type { SyncStats } from '../../peer/stats.ts';
import type { CopyWriter } from '../../writing/copy-writer.ts';
import { fieldsOfMirror, isMarked, mirrorDigest, mirroredUid, sourceSpecOf } from '../mirror.ts';
import { idOf, Words } from './message-history.ts';
import type { MirrorTrouble } from './mirror-failure.ts';
import { MirrorKeeper } from './mirror-keeper.ts';
import type { MirrorAdoptionPolicy } from './mirror-plan.ts';
import { type Heard, Requests } from './mirror-requests.ts';

/** What a {@link MirrorPeer} needs of the hub. */
export interface MirrorPeerOptions {
  readonly agent: string;
  readonly principalUid: string;
  /** What the hub calls the agent's cluster; undefined while there is none. */
  readonly cluster: () => string | undefined;
  readonly adoptionPolicy: MirrorAdoptionPolicy;
  /** The hub's Applications. */
  readonly view: View<Application>;
  /** Names of the Applications in the agent's namespace. */
  readonly names: () => Iterable<string>;
  readonly writer: CopyWriter;
  readonly onTrouble: (trouble: MirrorTrouble) => void;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: () => number;
  readonly newId: () => string;
  readonly today: () => Date;
  readonly maxInFlight: number | undefined;
  readonly concurrency: number | undefined;
  readonly resend: Backoff | undefined;
}

/** Something to do for one mirror: what the agent said, or a look at what changed. */
type Work =
  | {
      readonly is: 'message';
      readonly name: string;
      readonly id: string;
      readonly message: ApplicationMessage;
      readonly heard: Heard;
      /** On which it came. */
      readonly connection: PeerConnection | undefined;
    }
  | { readonly is: 'look'; readonly name: string; readonly id: string }
  | { readonly is: 'doubt'; readonly name: string; readonly id: string };

/** The mirrors of one autonomous agent. They are kept as it said last, also while it is away. */
export class MirrorPeer implements MirrorPart {
  readonly kind = 'Application';
  readonly #options: MirrorPeerOptions;
  readonly #keeper: MirrorKeeper;
  readonly #words: Words;
  readonly #inbox: Inbox<Work>;
  readonly #requests: Requests;
  readonly #errands: Errands;
  readonly #stop = new AbortController();
  #connection: PeerConnection | undefined;

  constructor(options: MirrorPeerOptions) {
    this.#options = options;
    const { agent, clock, random, log } = options;
    this.#requests = new Requests({
      ...options,
      read: (name) => this.#keeper.mirror(name),
      sourceUid: (name) => this.#keeper.wanted(name)?.sourceUid,
    });
    this.#errands = new Errands(options);
    this.#keeper = new MirrorKeeper({
      ...options,
      requests: this.#requests,
      look: (name) => this.#inbox.receive({ is: 'look', name, id: options.newId() }),
      isBusy: (name) => this.#inbox.isBusy(name),
      ask: (name) => this.#ask(name),
    });
    this.#words = new Words({
      isInUse: (name) => this.#keeper.wanted(name) !== undefined,
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
    this.#errands.connected(connection);
    this.#requests.connected(connection);
  }

  disconnected(): void {
    this.#connection = undefined;
    this.#errands.disconnected();
    this.#requests.disconnected();
  }

  writable(): void {
    this.#errands.writable();
    this.#requests.writable();
  }

  acknowledged(event: { readonly resourceId: string; readonly eventId: string }): boolean {
    if (this.#errands.acknowledged(event.resourceId, event.eventId)) {
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
    const is = this.#words.is(message);
    if (is === 'late') {
      this.#connection?.acknowledge(message);
      return true;
    }
    const heard = this.#requests.heard(name);
    const id = is === 'again' ? this.#options.newId() : idOf(message);
    this.#inbox.receive({ is: 'message', name, id, message, heard, connection: this.#connection });
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
      pending: this.#requests.pending + this.#errands.pending,
      inFlight: this.#requests.inFlight,
      queued: this.#inbox.queued,
      retrying: this.#inbox.retrying + this.#keeper.troubled,
    };
  }

  troubles(): MirrorTrouble[] {
    return this.#keeper.troubles();
  }

  /** Whether the hub's object of this name and uid is a mirror, whatever users made of it. */
  isMirror(name: string, uid: string | undefined): boolean {
    return uid !== undefined && this.#keeper.wanted(name)?.mirrorUid === uid;
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
    this.#errands.close();
    this.#requests.close();
    this.#keeper.close();
  }

  /** The object's creation has not shown up. */
  doubt({ name }: ObjectRef): void {
    this.#inbox.receive({ is: 'doubt', name, id: this.#options.newId() });
  }

  /** Makes the agent say what it has of this name. */
  #ask(name: string): void {
    this.#errands.post(`ask-${name}`, () => ({
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
      case 'look':
        return this.#keeper.look(name, signal);
      case 'message':
        this.#words.said(work.message);
        return this.#keeper.take(work.message, work.heard, signal);
    }
  }

  #ref(name: string): ObjectRef {
    return { namespace: this.#options.agent, name };
  }
}

function supersedes(newer: Work, older: Work): boolean {
  if (older.is === 'look') {
    return newer.is === 'look' || (newer.is === 'message' && newer.message.type !== 'delete');
  }
  if (newer.is !== 'message' || older.is !== 'message' || older.message.type === 'delete') {
    return false;
  }
  return newer.message.type !== 'delete' || newer.message.object.metadata.uid === older.message.object.metadata.uid;
}
