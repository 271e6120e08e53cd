import { BoundedSet, becomes, type Logger, sleep, wellKnown, withDeadline } from '../../lib/base/index.ts';
import { type KubeClient, type KubeObject, type Requeue, WorkQueue } from '../../lib/kube/index.ts';
import { GrpcError, grpcStatus, type ReplicaHandlers, type ReplicaStream } from '../../lib/wire/index.ts';
import type {
  AgentState,
  ConfirmMissingResourceResult,
  ConfirmMissingResourcesRequest,
  ConfirmMissingResourcesResponse,
  ReplicationSnapshot,
  ReplicationStatus,
  Resource,
} from '../../proto/gen/replicationapi/replication.ts';
import { DeletedObjects } from './deleted-objects.ts';
import { Follower, sentObject } from './follower.ts';
import { mostRefused } from './incoming-changes.ts';
import {
  deletedHereReason,
  isKeptOut,
  isLeavingKeptOut,
  isOnlyKeptOut,
  keptOutReason,
  notListedReason,
  type ReplicatedKind,
  unreadableReason,
  wasOnBothHubs,
} from './kinds.ts';
import { replicatedKey } from './news.ts';
import { keysOnBothHubs, OnBothHubs } from './on-both-hubs.ts';

/** As in argocd-agent. */
const mostFollowers = 10;
/** How long a snapshot waits for the caches, ms. */
const catchUpMs = 15_000;
/** Until an object that is there is looked for again in the caches. */
const lookAgainMs = 250;
/** Objects that take part no more and are remembered. */
const mostLeft = 20_000;
/** Objects of a snapshot that are written between two turns of the event loop. */
const objectsPerTurn = 200;

/** What {@link ReplicationSource} needs to know of the principal. */
export interface ReplicationSourceOptions {
  /** A kind that comes later is told to {@link ReplicationSource.begin}. */
  readonly kinds: readonly ReplicatedKind[];
  readonly client: Pick<KubeClient, 'get' | 'listPage' | 'mergePatch'>;
  readonly principalUid: string;
  readonly namespace: string;
  /** The agents with a cluster Secret; the mode is empty when it is not known. */
  agents(): readonly { readonly name: string; readonly mode: string; readonly isConnected: boolean }[];
  /** The agent that has an Application; undefined when none has. */
  agentOf(application: KubeObject): string | undefined;
  /**
   * What both hubs had before this source, by {@link replicatedKey}: the {@link ReplicationSource.bothHad} of the source before, when
   * this hub was the active one all the time, or what it had as a standby. Users may have deleted some of it since.
   */
  readonly bothHadBefore?: ReadonlySet<string> | undefined;
  /** Why standbys had better follow another principal of this hub; undefined if they need not. */
  readonly cutOff?: (() => string | undefined) | undefined;
  /** Limit for a standby to take its first snapshot, ms. */
  readonly firstAckMs: number;
  /** Called when an event was sent. */
  sent(): void;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** What standbys lack of a hub that is not active any more. */
export interface Undelivered {
  /** Objects whose newest state has been sent, or was to be, and has not been acknowledged. */
  readonly objects: number;
  /** Whether a standby follows, which has all others. */
  readonly isFollowed: boolean;
  /** Whether these are all: the caches have caught up with what users have changed. */
  readonly isKnown: boolean;
}

/**
 * What an active principal sends to standbys: a snapshot, then each object's newest state whenever it changes. Objects of the
 * hub are sent, never messages of agents: an agent's status is in its Application, and answers to requests of Argo CD's UI
 * (which have what live resources hold) are nobody else's business. argocd-agent's principal sends both.
 */
export class ReplicationSource {
  readonly #options: ReplicationSourceOptions;
  /** In the order in which a standby needs them. */
  readonly #kinds: ReplicatedKind[];
  readonly #followers = new Map<object, Follower>();
  readonly #deletions: WorkQueue;
  readonly #onBothHubs: OnBothHubs;
  readonly #deletedHere: DeletedObjects;
  /** UIDs of objects that a standby may have, and that were deleted or got the label. */
  readonly #left = new BoundedSet<string>(mostLeft);
  /** Called when a standby has acknowledged something or is gone, and when a deletion is sent. */
  readonly #onProgress = new Set<() => void>();
  #lastChange = 0;
  #refusal: string | undefined;

  constructor(options: ReplicationSourceOptions) {
    this.#options = options;
    const { client, namespace, logger, signal } = options;
    const kinds = [...options.kinds];
    this.#kinds = kinds;
    this.#deletedHere = new DeletedObjects({ client, namespace, logger, signal });
    this.#onBothHubs = new OnBothHubs({ kinds, client, logger });
    this.#deletions = new WorkQueue({
      name: 'replicated-deletions',
      handler: (key, stop) => this.#deleted(key, stop),
      concurrency: 4,
      observer: {
        added: () => undefined,
        started: () => undefined,
        // One that failed is due again only after this call.
        ended: () => queueMicrotask(() => this.#progressed()),
        retried: () => undefined,
      },
      logger,
    });
    void this.#deletions.run(signal);
    void this.#onBothHubs.run(signal);
    for (const kind of kinds) {
      this.#follow(kind);
    }
    this.#compare(kinds);
  }

  /** The objects of a kind take part that did not before. Standbys start over, as its events alone would leave out what is there. */
  begin(kind: ReplicatedKind): void {
    this.#kinds.splice(
      this.#kinds.findIndex(({ name }) => name === 'Application'),
      0,
      kind,
    );
    this.#follow(kind);
    this.#compare([kind]);
    this.end(`objects of kind ${kind.name} are replicated from now on`);
  }

  /** Objects that both hubs have had, by key: those that are here, and those that were deleted here. */
  bothHad(): ReadonlySet<string> {
    return new Set([...this.#deletedHere.added, ...keysOnBothHubs(this.#kinds)]);
  }

  /** The standbys that follow now. */
  get followers(): readonly Follower[] {
    return [...this.#followers.values()];
  }

  /** Objects that the slowest standby has not acknowledged, with deletions that it has not been told yet; and for how long. */
  get lag(): { readonly objects: number; readonly ms: number } {
    const { followers } = this;
    if (followers.length === 0) {
      return { objects: 0, ms: 0 };
    }
    const untold = this.#deletions.isIdle ? 0 : Math.max(1, this.#deletions.length);
    return {
      objects: Math.max(...followers.map(({ lag }) => lag)) + untold,
      ms: Math.max(...followers.map(({ lagMs }) => lagMs)),
    };
  }

  /** Unix seconds of the last change; 0 when there was none. */
  get lastChange(): number {
    return this.#lastChange;
  }

  subscribe(stream: ReplicaStream, connection: object, identity: string): ReplicaHandlers {
    const { logger, principalUid, sent, firstAckMs } = this.#options;
    const refusal = this.#refusal ?? this.#options.cutOff?.();
    if (refusal !== undefined) {
      throw new GrpcError(grpcStatus.unavailable, refusal);
    }
    if (this.#followers.size >= mostFollowers && !this.#followers.has(connection)) {
      throw new GrpcError(grpcStatus.resourceExhausted, `${mostFollowers} standbys follow this principal already`);
    }
    this.#followers
      .get(connection)
      ?.stream.end(new GrpcError(grpcStatus.aborted, 'replaced by a newer stream of this connection'));
    const follower: Follower = new Follower(identity, stream, firstAckMs, {
      principalUid,
      agentOf: (kind, object) => this.#agentOf(kind, object) ?? this.#options.namespace,
      sent,
      ready: () => {
        logger.info({ peer: stream.address, identity }, 'a standby has taken the snapshot and follows');
        this.#deletedHere.followed();
        this.#onBothHubs.addAll((kind, object) => follower.mayHave(kind, object));
      },
      acknowledged: (kind, object) => this.#onBothHubs.add(kind, object),
      progressed: () => this.#progressed(),
      closed: () => {
        if (this.#followers.get(connection) === follower) {
          this.#followers.delete(connection);
        }
        this.#progressed();
        logger.warn({ peer: stream.address, identity }, 'a standby follows no more');
      },
    });
    this.#followers.set(connection, follower);
    logger.info({ peer: stream.address, identity }, 'a standby begins to follow');
    return follower;
  }

  /**
   * All that the hub has. The first one of a connection is of caches that have caught up: the standby may have followed another
   * principal of this hub, and acknowledged what that knew. @throws GrpcError when they do not catch up
   */
  async snapshot(connection: object): Promise<ReplicationSnapshot> {
    const follower = this.#followers.get(connection);
    if (follower?.isReady !== true) {
      await this.#cachesCaughtUp(catchUpMs).catch(({ message }: Error) => {
        throw new GrpcError(grpcStatus.unavailable, `the newest objects of this hub are not known: ${message}`);
      });
    }
    const lastSequenceNum = follower?.sequence ?? 0n;
    const agents = new Map<string, AgentState>();
    for (const { name, mode, isConnected } of this.#options.agents()) {
      agents.set(name, { name, mode: mode || 'unknown', connected: isConnected, resources: [] });
    }
    const principalResources: Resource[] = [];
    let written = 0;
    for (const kind of this.#kinds) {
      for (const object of kind.informer.list()) {
        if (!kind.includes(object)) {
          continue;
        }
        const resource = resourceOf(kind, object, true);
        if (kind.name === 'ClusterSecret' || kind.name === 'ApplicationSet' || kind.name === 'GPGKey') {
          principalResources.push(resource);
        } else {
          this.#entry(agents, this.#agentOf(kind, object)).resources.push(resource);
        }
        if (++written % objectsPerTurn === 0) {
          await sleep(0);
        }
      }
    }
    return { agents: [...agents.values()], lastSequenceNum, principalResources };
  }

  status(connection: object): ReplicationStatus {
    const follower = this.#followers.get(connection);
    return {
      currentSequenceNum: follower?.sequence ?? 0n,
      pendingEvents: follower?.lag ?? 0,
      lastEventUnix: BigInt(this.#lastChange),
      connectedReplicas: this.#followers.size,
    };
  }

  /**
   * Tells a standby what became of objects that it has and that were not in its snapshot. As in argocd-agent, nothing is said
   * when something was sent since: it might arrive before the answer.
   */
  async confirm(request: ConfirmMissingResourcesRequest, connection: object): Promise<ConfirmMissingResourcesResponse> {
    const results: ConfirmMissingResourceResult[] = [];
    const isDeletedHere = await this.#deletedHere.read().catch((error: unknown) => {
      this.#options.logger.warn({ error }, 'the ConfigMap with the objects that were deleted here cannot be read');
      return undefined;
    });
    const isCurrent = () => this.#followers.get(connection)?.sequence === request.snapshotSequenceNum;
    for (const resource of request.resources) {
      const known = isCurrent()
        ? await this.#whatBecameOf(resource, isDeletedHere)
        : unknown(resource, 'events were sent since the snapshot');
      results.push(known);
    }
    return {
      results: isCurrent()
        ? results
        : request.resources.map((one) => unknown(one, 'events were sent since the snapshot')),
    };
  }

  /** Objects that a standby says that it cannot write: acknowledgements do not stand for them. @throws GrpcError when there are too many */
  refused(resources: readonly Resource[], connection: object): void {
    const follower = this.#followers.get(connection);
    if (follower === undefined) {
      throw new GrpcError(grpcStatus.failedPrecondition, 'this connection has no stream of events');
    }
    if (resources.length > mostRefused) {
      throw new GrpcError(grpcStatus.invalidArgument, `more than ${mostRefused} objects are refused`);
    }
    const refused = new Map<string, { kind: ReplicatedKind; object: KubeObject | undefined }>();
    for (const { kind: kindName, namespace, name } of resources) {
      const kind = this.#kinds.find((one) => one.name === kindName);
      if (kind !== undefined && name !== '') {
        const found = kind.informer.get({ namespace, name });
        refused.set(replicatedKey(kind, { namespace, name }), { kind, object: found });
      }
    }
    follower.refuses(refused);
  }

  /** Objects that standbys cannot write, by {@link replicatedKey}. */
  get refusedObjects(): string[] {
    return [...new Set(this.followers.flatMap(({ refused }) => [...refused]))];
  }

  /**
   * Resolves when every standby has acknowledged everything, at once when none follows, or after `ms`.
   * @param catchesUp also what the API server has taken before this call and the caches have not
   */
  async drained(ms: number, catchesUp: boolean): Promise<Undelivered> {
    const until = performance.now() + ms;
    const isKnown =
      catchesUp &&
      (await this.#cachesCaughtUp(ms).then(
        () => true,
        (error: unknown) => {
          this.#options.logger.warn({ error }, 'what users have changed last on this hub is not known');
          return false;
        },
      ));
    const left = () => this.followers.reduce((sum, follower) => sum + follower.lag, 0) + this.#deletions.length;
    const isInStep = () => left() === 0 && this.#deletions.isIdle && this.followers.every(({ isReady }) => isReady);
    await becomes(
      isInStep,
      (look) => {
        this.#onProgress.add(look);
        return () => this.#onProgress.delete(look);
      },
      until - performance.now(),
    );
    return { objects: left(), isFollowed: this.followers.some(({ isReady }) => isReady), isKnown };
  }

  /** No standby may begin to follow from now on, or go on with its beginning: the end would wait for its snapshot. */
  refuse(reason: string): void {
    this.#refusal = reason;
    for (const { stream } of this.followers.filter(({ isReady }) => !isReady)) {
      stream.end(new GrpcError(grpcStatus.unavailable, reason));
    }
  }

  /** Judges again whether the standbys may follow, by the judgement of new ones. */
  judge(): void {
    for (const { stream } of this.followers) {
      stream.judge();
    }
  }

  /** Ends the streams of all standbys. */
  end(reason: string): void {
    for (const { stream } of this.followers) {
      stream.end(new GrpcError(grpcStatus.unavailable, reason));
    }
  }

  /** What is not here any more was deleted while this principal could not see it. */
  #compare(kinds: readonly ReplicatedKind[]): void {
    const gone = new Set(this.#options.bothHadBefore);
    for (const kind of gone.size > 0 ? kinds : []) {
      for (const { metadata } of kind.informer.list()) {
        gone.delete(replicatedKey(kind, metadata));
      }
    }
    for (const key of gone) {
      if (kinds.some(({ name }) => key.startsWith(`${name}/`))) {
        this.#deletedHere.add(key);
      }
    }
  }

  #follow(kind: ReplicatedKind): void {
    kind.informer.subscribe({
      added: (now, isInitial) => isInitial || this.#changed(kind, now),
      updated: (old, now) => {
        if (kind.includes(now)) {
          this.#changed(kind, now);
        } else if (kind.includes(old)) {
          this.#gone(kind, old);
        }
        this.#changedKeptOut(kind, now, old);
      },
      deleted: (last) => (isKeptOut(last) ? this.#goneWhileKeptOut(kind, last) : this.#gone(kind, last)),
    });
    kind.keptOut?.subscribe({
      added: (now) => this.#changedKeptOut(kind, now),
      updated: (old, now) => this.#changedKeptOut(kind, now, old),
      deleted: (last) => this.#goneWhileKeptOut(kind, last),
    });
  }

  #progressed(): void {
    for (const look of this.#onProgress) {
      look();
    }
  }

  /** @throws when that takes longer than `ms` */
  async #cachesCaughtUp(ms: number): Promise<void> {
    const { signal } = this.#options;
    const caches = new Set(this.#kinds.flatMap(({ informer, keptOut = informer }) => [informer, keptOut]));
    await withDeadline(signal, ms, (late) => Promise.all([...caches].map((cache) => cache.caughtUp(late))));
  }

  #changed(kind: ReplicatedKind, object: KubeObject): void {
    if (!kind.includes(object)) {
      return;
    }
    this.#lastChange = Math.floor(Date.now() / 1000);
    for (const follower of this.#followers.values()) {
      follower.changed(kind, object);
    }
  }

  /** It may only have got the label that keeps it out, which looks like a deletion. */
  #gone(kind: ReplicatedKind, last: KubeObject): void {
    this.#onBothHubs.forget(last);
    if (!kind.includes(last)) {
      return;
    }
    this.#leaves(kind, last);
    this.#lookForDeletion(kind, last, false);
  }

  /**
   * The label is of one hub alone, a deletion is not: what both hubs have had is deleted on the other one, too. It may also only have
   * lost the label, which looks the same.
   */
  #goneWhileKeptOut(kind: ReplicatedKind, last: KubeObject): void {
    if (!isOnlyKeptOut(kind, last)) {
      return;
    }
    this.#onBothHubs.forget(last);
    if (this.#mayHaveTakenPart(last)) {
      this.#leaves(kind, last);
      this.#lookForDeletion(kind, last, true);
    }
  }

  /** With a finalizer it does not vanish: who would let it go takes no notice of it. Its deletion counts from its beginning on. */
  #changedKeptOut(kind: ReplicatedKind, now: KubeObject, old?: KubeObject): void {
    if (isLeavingKeptOut(now) && (old === undefined || !isLeavingKeptOut(old))) {
      this.#goneWhileKeptOut(kind, now);
    }
  }

  /** Whether a standby may have an object that is kept out. */
  #mayHaveTakenPart(object: KubeObject): boolean {
    return this.#left.has(object.metadata.uid ?? '') || wasOnBothHubs(object, this.#kinds);
  }

  #leaves(kind: ReplicatedKind, last: KubeObject): void {
    this.#left.add(last.metadata.uid ?? '');
    if (wasOnBothHubs(last, this.#kinds)) {
      this.#deletedHere.add(replicatedKey(kind, last.metadata));
    }
  }

  #lookForDeletion(kind: ReplicatedKind, { metadata }: KubeObject, wasKeptOut: boolean): void {
    if (this.#followers.size > 0) {
      const { namespace = '', name, uid = '' } = metadata;
      this.#deletions.add(JSON.stringify([kind.name, namespace, name, uid, wasKeptOut]));
    }
  }

  async #deleted(key: string, signal: AbortSignal): Promise<Requeue | undefined> {
    const [kindName, namespace, name, uid, wasKeptOut] = JSON.parse(key) as [string, string, string, string, boolean];
    const kind = this.#kinds.find((one) => one.name === kindName);
    if (kind === undefined) {
      return undefined;
    }
    const present = await this.#options.client.get(kind.type, { namespace, name }, signal);
    if (present?.metadata.uid === uid && !isLeavingKeptOut(present)) {
      if (isInCache(kind, present)) {
        return undefined;
      }
      if (await this.#isSelected(kind, present, signal)) {
        // Only of what a cache has it shows the deletion.
        return { requeueAfterMs: lookAgainMs };
      }
      if (wasKeptOut || isKeptOut(present)) {
        return undefined;
      }
    }
    // By the label a standby knows that it may have one of that name which is its own.
    const labels = wasKeptOut ? { labels: { [wellKnown.ignoreSyncLabel]: 'true' } } : {};
    const last = { metadata: { namespace, name, uid, ...labels } };
    this.#lastChange = Math.floor(Date.now() / 1000);
    for (const follower of this.#followers.values()) {
      follower.gone(kind, last);
    }
    return undefined;
  }

  /** Whether one of the caches has the object or will get it, whatever label it has. */
  async #isSelected(kind: ReplicatedKind, object: KubeObject, signal: AbortSignal): Promise<boolean> {
    if (!kind.includes(object) && !isOnlyKeptOut(kind, object)) {
      return false;
    }
    const { labelSelector = '' } = kind;
    const { namespace, name } = object.metadata;
    const selection = { namespace, labelSelector, fieldSelector: `metadata.name=${name}`, limit: 1, signal };
    return labelSelector === '' || (await this.#options.client.listPage(kind.type, selection)).items.length > 0;
  }

  async #whatBecameOf(
    resource: Resource,
    isDeletedHere: ((key: string) => boolean) | undefined,
  ): Promise<ConfirmMissingResourceResult> {
    const { namespace, name } = resource;
    const kind = this.#kinds.find((one) => one.name === resource.kind);
    if (kind === undefined || name === '') {
      return unknown(resource, notListedReason);
    }
    const found = kind.informer.get({ namespace, name });
    if (found !== undefined && kind.includes(found)) {
      return { resource: resourceOf(kind, found, true), status: 'exists', reason: '' };
    }
    try {
      const present = await this.#options.client.get(kind.type, { namespace, name }, this.#options.signal);
      if (
        present !== undefined &&
        !isLeavingKeptOut(present) &&
        !this.#tookItsPlace(present, resource, isDeletedHere)
      ) {
        // The standby has it: a principal before this one may have told.
        this.#left.add(present.metadata.uid ?? '');
        return unknown({ ...resource, uid: present.metadata.uid ?? '' }, keptOutReason);
      }
      if (isDeletedHere === undefined) {
        return unknown(resource, unreadableReason);
      }
      const reason = isDeletedHere(replicatedKey(kind, { namespace, name })) ? deletedHereReason : '';
      return { resource, status: 'deleted', reason };
    } catch (error) {
      this.#options.logger.warn({ error }, 'an object that a standby asks about cannot be read');
      return unknown(resource, unreadableReason);
    }
  }

  /**
   * Whether what is there, and maybe kept out, is another object than the one of its name that a standby has. By its UID, which not
   * every standby tells; else by the records of deletions, when it has never taken part itself.
   */
  #tookItsPlace(
    present: KubeObject,
    { kind, namespace, name, uid }: Resource,
    isDeletedHere: ((key: string) => boolean) | undefined,
  ): boolean {
    if (this.#left.has(uid)) {
      return present.metadata.uid !== uid;
    }
    const isDeleted = isDeletedHere?.(`${kind}/${namespace}/${name}`) === true;
    return isDeleted && isKeptOut(present) && !this.#mayHaveTakenPart(present);
  }

  #agentOf(kind: ReplicatedKind, object: KubeObject): string | undefined {
    return kind.name === 'Application' ? this.#options.agentOf(object) : undefined;
  }

  /** The resources of an agent; objects that are of none stand under the principal's namespace, as in argocd-agent. */
  #entry(agents: Map<string, AgentState>, agent = this.#options.namespace): AgentState {
    const known = agents.get(agent) ?? { name: agent, mode: 'unknown', connected: false, resources: [] };
    agents.set(agent, known);
    return known;
  }
}

/** Whether the cache for objects with its label, or without, has an object that is there. */
function isInCache(kind: ReplicatedKind, object: KubeObject): boolean {
  const { informer, keptOut = informer } = kind;
  const isApart = isKeptOut(object);
  const found = (isApart ? keptOut : informer).get(object.metadata);
  const isIt = found !== undefined && found.metadata.uid === object.metadata.uid;
  return isIt && (isApart ? isKeptOut(found) : kind.includes(found));
}

function resourceOf(kind: ReplicatedKind, object: KubeObject, withData: boolean): Resource {
  const { name, namespace = '', uid = '' } = object.metadata;
  const data = withData ? Buffer.from(JSON.stringify(sentObject(object))) : Buffer.alloc(0);
  return { name, namespace, kind: kind.name, uid, specChecksum: Buffer.alloc(0), data };
}

function unknown(resource: Resource, reason: string): ConfirmMissingResourceResult {
  return { resource, status: 'unknown', reason };
}
