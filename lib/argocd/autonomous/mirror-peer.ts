import { type Backoff, type Clock, Inbox, type InboxOutcome, type ObjectRef, type View } from '../../sync/index.ts';
import type { Application } from '../application.ts';
import { specChecksum } from '../checksums.ts';
import type { CopyWriter } from '../managed/copy-writer.ts';
import { Errands } from '../managed/errands.ts';
import { Fights } from '../managed/fights.ts';
import { displayName, type SyncLog } from '../managed/log.ts';
import type { ApplicationMessage, PeerConnection, RequestUpdate } from '../managed/messages.ts';
import type { SyncStats } from '../managed/stats.ts';
import type { Copy, MirrorPart, ObjectMessage } from '../parts/part.ts';
import { isSkipped } from '../routing.ts';
import { fieldsOfMirror, isMarked, type MirrorPlace, mirrorDigest, mirroredUid, sourceSpecOf } from './mirror.ts';
import {
  isAstray,
  type MirrorAdoptionPolicy,
  planMirror,
  planMirrorDeletion,
  settled,
  type Wanted,
  wantedAfter,
  wantedAsFound,
} from './mirror-plan.ts';
import { MissingNamespace } from './missing-namespace.ts';
import { type Heard, Requests } from './requests.ts';
import { type MirrorTrouble, Troubles } from './troubles.ts';

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
  readonly log: SyncLog;
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
      readonly message: ApplicationMessage;
      readonly heard: Heard;
      /** On which it came. */
      readonly connection: PeerConnection | undefined;
    }
  | { readonly is: 'look'; readonly name: string; readonly id: string }
  | { readonly is: 'doubt'; readonly name: string; readonly id: string };

/** The agent's word on one of its Applications, with what it had got of the hub's requests by then. */
interface Report {
  readonly source: Application;
  readonly heard: Heard;
}

/** The mirrors of one autonomous agent. They are kept as it said last, also while it is away. */
export class MirrorPeer implements MirrorPart {
  readonly kind = 'Application';
  readonly #options: MirrorPeerOptions;
  readonly #wanted = new Map<string, Wanted>();
  readonly #inbox: Inbox<Work>;
  readonly #requests: Requests;
  readonly #errands: Errands;
  readonly #troubles: Troubles;
  readonly #fights: Fights;
  readonly #stop = new AbortController();
  #connection: PeerConnection | undefined;
  #cluster: string | undefined;

  constructor(options: MirrorPeerOptions) {
    this.#options = options;
    const { agent, clock, random, log } = options;
    this.#requests = new Requests({
      ...options,
      read: (name) => this.#mirror(name),
      sourceUid: (name) => this.#wanted.get(name)?.sourceUid,
    });
    this.#errands = new Errands(options);
    this.#fights = new Fights({ clock, random, log, changed: () => undefined });
    this.#troubles = new Troubles({
      clock,
      random,
      told: (name, message) => {
        log.error({ agent, application: `${agent}/${name}` }, `Application cannot be mirrored: ${message}`);
        options.onTrouble({ agent, name, message });
      },
    });
    this.#inbox = new Inbox<Work>(
      {
        apply: (work, signal) => this.#apply(work, signal),
        acknowledge: (work) => {
          if (work.is === 'message') this.#acknowledge(work);
        },
        laneOf: ({ name }) => name,
        idOf: (work) =>
          work.is === 'message' ? `${work.message.type}/${work.message.resourceId}/${work.message.eventId}` : work.id,
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

  /** Takes up what is there. Called once. */
  begin(): void {
    const { agent, cluster } = this.#options;
    this.#cluster = cluster();
    for (const name of this.#options.names()) {
      const mirror = this.#mirror(name);
      if (mirror !== undefined && isMarked(mirror)) {
        this.#wanted.set(name, wantedAsFound(mirror, agent));
      }
      this.#requests.follow(name, mirror);
    }
    this.#lookAtAll();
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
    const heard = this.#requests.heard(name);
    this.#inbox.receive({ is: 'message', name, message, heard, connection: this.#connection });
    return true;
  }

  copies(): Copy[] {
    const copies = [];
    // What stands on the hub, and what should but cannot: the agent may have dropped it since.
    for (const name of new Set([...this.#options.names(), ...this.#wanted.keys()])) {
      const uid = this.#shownUid(name);
      if (uid !== '') {
        copies.push({ ref: this.#ref(name), name, uid });
      }
    }
    return copies;
  }

  holding({ namespace, name }: ObjectRef): RequestUpdate {
    const mirror = this.#mirror(name);
    const uid = this.#shownUid(name);
    const common = { kind: 'Application', name, namespace } as const;
    if (mirror === undefined || uid === '') {
      return { ...common, uid, checksum: null, ...(uid === '' ? {} : { digest: '' }) };
    }
    const { agent } = this.#options;
    const isSettled =
      mirroredUid(mirror) === uid &&
      mirror.metadata.deletionTimestamp === undefined &&
      !this.#troubles.has(name) &&
      !this.#inbox.isBusy(name);
    return {
      ...common,
      uid,
      checksum: specChecksum(sourceSpecOf(mirror, agent)),
      // Empty, which is no digest of anything, makes the agent say what it has.
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
      retrying: this.#inbox.retrying + this.#troubles.size + this.#fights.active,
    };
  }

  troubles(): MirrorTrouble[] {
    const { agent } = this.#options;
    return this.#troubles.list().map((trouble) => ({ agent, ...trouble }));
  }

  close(): void {
    this.#stop.abort();
    this.#errands.close();
    this.#requests.close();
    this.#troubles.close();
    this.#fights.close();
  }

  /** The hub's object of this name changed. */
  hubChange(name: string, now: Application | undefined): void {
    const mirror = this.#mirror(name);
    this.#requests.follow(name, mirror);
    const wanted = this.#wanted.get(name);
    const place = this.#place();
    if (wanted === undefined) {
      if (!this.#inbox.isBusy(name)) {
        this.#askIfUnknown(name);
      }
    } else if (now === undefined || this.#troubles.has(name) || (place !== undefined && isAstray(now, wanted, place))) {
      this.#fights.whenDue(this.#ref(name), () => this.#look(name));
    }
  }

  /** The object's creation has not shown up. */
  doubt({ name }: ObjectRef): void {
    this.#inbox.receive({ is: 'doubt', name, id: this.#options.newId() });
  }

  /** What the hub calls the agent's cluster may have changed. */
  clusterChanged(): void {
    const cluster = this.#options.cluster();
    if (cluster !== this.#cluster) {
      this.#cluster = cluster;
      for (const [name, wanted] of this.#wanted) {
        this.#wanted.set(name, { ...wanted, settledSpec: undefined });
      }
      this.#lookAtAll();
    }
  }

  /** Puts right what is not as the agent said. */
  #lookAtAll(): void {
    const place = this.#place();
    for (const [name, wanted] of this.#wanted) {
      const mirror = this.#options.view.get(this.#ref(name));
      if (
        mirror === undefined ||
        this.#troubles.has(name) ||
        (place !== undefined && isAstray(mirror, wanted, place))
      ) {
        this.#look(name);
      }
    }
  }

  #look(name: string): void {
    this.#inbox.receive({ is: 'look', name, id: this.#options.newId() });
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
        return this.#bringInStep(name, undefined, signal);
      case 'message': {
        const { type, object } = work.message;
        if (type === 'delete') {
          return this.#remove(name, object.metadata.uid ?? '', signal);
        }
        this.#wanted.set(name, wantedAfter(object, this.#wanted.get(name)));
        return this.#bringInStep(name, { source: object, heard: work.heard }, signal);
      }
    }
  }

  /** The one place that makes a mirror what the agent says. */
  async #bringInStep(name: string, report: Report | undefined, signal: AbortSignal): Promise<InboxOutcome> {
    const { agent, adoptionPolicy, writer } = this.#options;
    const wanted = this.#wanted.get(name);
    const place = this.#place();
    if (wanted === undefined) {
      return 'done';
    }
    if (place === undefined) {
      this.#troubles.met(name, `the hub's Argo CD has no cluster for agent ${agent}`);
      return 'retry';
    }
    const now = this.#options.today();
    let writes = false;
    const plan = (mirror: Application | undefined) => {
      if (mirror !== undefined && isSkipped(mirror)) {
        return { action: 'none' } as const;
      }
      if (mirror !== undefined && report !== undefined) {
        this.#requests.expect(name, mirror, report.source);
      }
      const next = planMirror(wanted, mirror, {
        name,
        place,
        adoptionPolicy,
        now,
        report: mirror && report && { source: report.source, context: this.#requests.context(mirror, report.heard) },
      });
      writes ||= next.action === 'create' || next.action === 'update';
      return next;
    };
    try {
      const result = await writer.run(this.#ref(name), plan, signal);
      this.#requests.follow(name, this.#mirror(name));
      if (writes && report === undefined) {
        this.#fights.putBack(this.#ref(name));
      }
      switch (result.is) {
        case 'done':
          this.#troubles.solved(name);
          this.#settle(name, result.copy);
          return 'done';
        case 'stopped':
          return this.#stopped(name, result);
        default:
          return 'retry';
      }
    } catch (error) {
      if (!(error instanceof MissingNamespace)) {
        throw error;
      }
      this.#troubles.met(name, error.message);
      return 'retry';
    }
  }

  #stopped(name: string, { message, rejected, mayPass }: { message: string; rejected: boolean; mayPass: boolean }) {
    if (mayPass) {
      this.#troubles.met(name, message);
      return 'retry';
    }
    // What the agent said is remembered, and tried again when something changes.
    this.#troubles.met(name, message, rejected ? () => this.#look(name) : undefined);
    return 'done';
  }

  #settle(name: string, mirror: Application | undefined): void {
    const before = this.#wanted.get(name);
    const place = this.#place();
    if (before === undefined) {
      return;
    }
    const wanted = settled(before, mirror);
    this.#wanted.set(name, wanted);
    const now = this.#options.view.get(this.#ref(name));
    if (mirror !== undefined && place !== undefined && (now === undefined || isAstray(now, wanted, place))) {
      this.#fights.whenDue(this.#ref(name), () => this.#look(name));
    }
  }

  async #remove(name: string, sourceUid: string, signal: AbortSignal): Promise<InboxOutcome> {
    const wanted = this.#wanted.get(name);
    const mirrorUid = wanted?.sourceUid === sourceUid ? wanted.mirrorUid : undefined;
    const result = await this.#options.writer.run(
      this.#ref(name),
      (mirror) =>
        mirror === undefined || isSkipped(mirror)
          ? { action: 'none' }
          : planMirrorDeletion(sourceUid, mirror, mirrorUid),
      signal,
    );
    if (result.is === 'stopped') {
      const { agent, log } = this.#options;
      log.error({ agent, application: displayName(this.#ref(name)) }, `mirror not deleted: ${result.message}`);
    }
    if (result.is === 'unsettled' || (result.is === 'stopped' && result.mayPass)) {
      return 'retry';
    }
    if (wanted?.sourceUid === sourceUid) {
      this.#wanted.delete(name);
      this.#troubles.solved(name);
      this.#fights.forget(this.#ref(name));
    }
    this.#askIfUnknown(name);
    return 'done';
  }

  /** Nobody but this program makes mirrors: of another one the agent says what is to become of it. */
  #askIfUnknown(name: string): void {
    const mirror = this.#mirror(name);
    if (mirror !== undefined && mirror.metadata.deletionTimestamp === undefined && !this.#wanted.has(name)) {
      this.#ask(name);
    }
  }

  /** UID of the agent's Application that is shown under this name, or should be; empty when there is none. */
  #shownUid(name: string): string {
    const mirror = this.#mirror(name);
    const wanted = this.#wanted.get(name);
    if (mirror === undefined || mirror.metadata.uid === wanted?.mirrorUid) {
      return wanted?.sourceUid ?? '';
    }
    return mirroredUid(mirror);
  }

  /** The mirror of this name, if there is one. */
  #mirror(name: string): Application | undefined {
    const object = this.#options.view.get(this.#ref(name));
    const isOurs =
      object !== undefined && (mirroredUid(object) !== '' || object.metadata.uid === this.#wanted.get(name)?.mirrorUid);
    return isOurs && !isSkipped(object) ? object : undefined;
  }

  #place(): MirrorPlace | undefined {
    const { agent, cluster } = this.#options;
    const name = cluster();
    return name === undefined ? undefined : { agent, cluster: name };
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
