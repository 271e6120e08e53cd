import { Backoff, becomes, type Logger, onAbort, Semaphore, sleep, withDeadline } from '../../lib/base/index.ts';
import type { KubeObject } from '../../lib/kube/index.ts';
import {
  type ClientTls,
  connectPrimary,
  decodeEvent,
  eventTypes,
  type PrimaryConnection,
  targets,
  WireError,
} from '../../lib/wire/index.ts';
import type {
  ConfirmMissingResourceResult,
  ReplicatedEvent,
  ReplicationSnapshot,
  Resource,
} from '../../proto/gen/replicationapi/replication.ts';
import { mostNamed } from './hub-role.ts';
import { type IncomingChange, IncomingChanges } from './incoming-changes.ts';
import type { KeptObjects } from './kept-objects.ts';
import {
  deletedHereReason,
  isKeptOut,
  keptOutReason,
  notListedReason,
  notTellingReason,
  type ReplicatedKind,
  unreadableReason,
  wasOnBothHubs,
} from './kinds.ts';
import type { StandbyMetrics } from './metrics.ts';
import { News, replicatedKey } from './news.ts';
import { RefusalReports } from './refusal-reports.ts';
import { type StandbyWriter, UnusableObjectError } from './standby-writer.ts';
import { type HaState, isPrimaryAnswer, refusedStateIn } from './states.ts';

/** As in argocd-agent: how often the active principal is asked whether something was missed. */
const reconcileMs = 60_000;
/** Between two snapshots that messages ask for which cannot be followed one by one. */
const snapshotPauseMs = 5_000;
const writersOfSnapshot = 16;
/**
 * How long the first acknowledgement waits for objects of the snapshot that could not be written at once: the active hub marks
 * all of them as objects of both hubs then. An object that this API server never takes must not keep the standby from following.
 */
const unwrittenMs = 60_000;
/** How long what has arrived may take to be written before this hub becomes active. */
const lastWritesMs = 10_000;
/** How long it may take then to put back what was changed here. */
const lastComparisonMs = 5_000;
/** How long this hub's own caches may take to catch up with its API server, ms. */
const catchUpMs = 15_000;
/** Objects asked about at a time. */
const mostAskedAbout = 5_000;
/** argocd-agent's, with jitter: there, a principal that is down is tried again without a pause. */
const defaultBackoff = { initialMs: 1_000, maxMs: 30_000, factor: 1.5 };

/** What {@link Standby} needs. */
export interface StandbyOptions {
  /** `host:port` of the other principal. */
  readonly server: string;
  /** Asked for before every connection. */
  tls(): ClientTls | 'plaintext';
  readonly kinds: readonly ReplicatedKind[];
  readonly writer: StandbyWriter;
  /** Told what the active hub has. */
  readonly kept: KeptObjects;
  /** Called with the agents of each snapshot, before its objects are written. */
  agents(modes: ReadonlyMap<string, string>): void;
  /** Called when everything that the active hub had has been written, or could not be written yet. */
  synced(): void;
  /** The connection has ended, or could not be made. `peer`: what the other principal said about itself. */
  disconnected(peer: { readonly isReachable: boolean; readonly state: HaState | undefined }): void;
  /** Whether this hub is about to become active, so that what has arrived is written first. */
  isPromoted(): boolean;
  readonly metrics: StandbyMetrics;
  readonly backoff?: typeof defaultBackoff;
  /** Default: connectPrimary. */
  readonly connect?: typeof connectPrimary;
  readonly logger: Logger;
}

/**
 * Follows the active principal: takes a snapshot, then writes each change, and acknowledges what the API server has taken.
 * Starts over whenever the connection ends.
 */
export class Standby {
  readonly #options: StandbyOptions;
  #changes: IncomingChanges | undefined;
  #news: News | undefined;
  #lastEventAt = 0;
  #lastSequence = 0n;
  #isConnected = false;

  constructor(options: StandbyOptions) {
    this.#options = options;
  }

  /** Unix seconds of the last event; 0 when there was none. */
  get lastEventAt(): number {
    return this.#lastEventAt;
  }

  /** Number of the last event that was received. */
  get lastSequence(): bigint {
    return this.#lastSequence;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** What has been received and not been written yet. */
  get lag(): { readonly objects: number; readonly ms: number } {
    const { kept } = this.#options;
    return {
      objects: (this.#changes?.lag ?? 0) + kept.lag,
      ms: Math.max(this.#changes?.lagMs ?? 0, kept.lagMs),
    };
  }

  /** Objects that this API server does not take as the active hub has them. */
  get refusedObjects(): string[] {
    return [...new Set([...(this.#changes?.refused.keys() ?? []), ...this.#options.kept.refused])];
  }

  /** What was changed here and could not be put back so far, by name. */
  get unrestored(): string[] {
    return this.#options.kept.refused;
  }

  /** What was changed here and cannot be put back within `ms`, by name. @throws Error when that is not known in time */
  changedHere(ms: number, signal: AbortSignal): Promise<string[]> {
    return this.#options.kept.settled(ms, signal);
  }

  /** A kind that could not be listed here can be: it is compared as a whole. */
  compareAgain(): void {
    this.#news?.need();
  }

  /** Follows until aborted, and keeps what it has. */
  async run(signal: AbortSignal): Promise<void> {
    const { kept, isPromoted, logger } = this.#options;
    const keeping = new AbortController();
    const ended = kept.run(keeping.signal);
    try {
      await this.#followAll(signal);
      if (isPromoted()) {
        await this.#lastComparison(logger);
      }
    } finally {
      keeping.abort();
      await ended;
    }
  }

  /** Another principal of this hub may have got the order to promote, without knowing what the active hub had. */
  async #lastComparison(logger: Logger): Promise<void> {
    try {
      const objects = await this.#options.kept.settled(lastComparisonMs, new AbortController().signal);
      if (objects.length > 0) {
        logger.error({ objects: objects.slice(0, mostNamed) }, 'objects are not as the active hub had them last');
      }
    } catch (error) {
      logger.warn({ error }, 'it is not known whether all objects are as the active hub had them last');
    }
  }

  async #followAll(signal: AbortSignal): Promise<void> {
    const { logger, metrics, server } = this.#options;
    const backoff = new Backoff(this.#options.backoff ?? defaultBackoff);
    while (!signal.aborted) {
      try {
        await this.#connection(signal, () => backoff.reset());
      } catch (error) {
        if (signal.aborted) {
          break;
        }
        const state = refusedStateIn(error);
        const isReachable = state !== undefined || isPrimaryAnswer(error);
        this.#options.disconnected({ isReachable, state });
        const retryInMs = Math.round(backoff.next());
        const { message } = error as Error;
        const hint = error instanceof WireError && error.hint !== undefined ? { hint: error.hint } : undefined;
        logger.warn({ server, ...hint, retryInMs }, `the active principal is not followed: ${message}`);
        metrics.reconnected();
        await sleep(retryInMs, signal);
      }
    }
  }

  async #connection(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const { server, tls, connect = connectPrimary } = this.#options;
    const end = new AbortController();
    const unlisten = onAbort(signal, () => end.abort(signal.reason));
    let connection: PrimaryConnection | undefined;
    try {
      connection = await connect({ server, tls: tls(), signal: end.signal });
      await this.#follow(connection, end, signal, succeeded);
    } catch (error) {
      // The end of the stream says more than the calls that ended with it.
      const reason: unknown = end.signal.aborted ? end.signal.reason : error;
      throw connection === undefined || reason instanceof WireError ? reason : await connection.explain(reason);
    } finally {
      unlisten();
      this.#isConnected = false;
      connection?.destroy();
      end.abort();
    }
  }

  async #follow(
    connection: PrimaryConnection,
    end: AbortController,
    stop: AbortSignal,
    succeeded: () => void,
  ): Promise<void> {
    const { logger, synced, kept } = this.#options;
    let acknowledged = -1n;
    const writing = new AbortController();
    const onDone = new Set<() => void>();
    const isWritten = (ms: number, signal?: AbortSignal) =>
      becomes(
        () => changes.holdingUp === 0,
        (look) => {
          onDone.add(look);
          return () => onDone.delete(look);
        },
        ms,
        signal,
      );
    const changes: IncomingChanges = new IncomingChanges({
      write: (change, signal) => this.#write(change, signal),
      done: (sequence) => {
        for (const look of onDone) {
          look();
        }
        if (isFollowing && sequence > acknowledged) {
          acknowledged = sequence;
          stream.acknowledge(sequence);
        }
      },
      refused: () => reports.changed(),
      full: (isFull) => (isFull ? stream.pause() : stream.resume()),
      logger,
    });
    const reports = new RefusalReports({ connection, changes, logger, signal: end.signal });
    this.#changes = changes;
    kept.pending((key) => changes.isPending(key));
    this.#lastSequence = 0n;
    let isFollowing = false;
    const news = new News();
    this.#news = news;
    const stream = connection.subscribe({
      event: (event) => this.#received(event, changes, news),
      ended: (error) => end.abort(error),
    });
    const running = changes.run(writing.signal);
    try {
      const first = await this.#firstSnapshot(connection, changes, news, end.signal);
      if (changes.holdingUp > 0) {
        logger.warn(
          { objects: changes.holdingUp, atMostSeconds: unwrittenMs / 1_000 },
          'objects of the active hub cannot be written here yet; this principal follows when they are, or after this time',
        );
        await isWritten(unwrittenMs, end.signal);
        end.signal.throwIfAborted();
      }
      isFollowing = true;
      acknowledged = first;
      stream.acknowledge(first);
      this.#isConnected = true;
      succeeded();
      synced();
      logger.info({ server: this.#options.server, sequence: String(first) }, 'the active principal is followed');
      await this.#reconcile(connection, changes, news, end.signal);
      throw end.signal.reason;
    } finally {
      // Otherwise the next one that follows gets all that is not written.
      if (stop.aborted && this.#options.isPromoted()) {
        await isWritten(lastWritesMs);
      }
      writing.abort();
      await running;
      kept.pending(() => false);
      kept.write(changes.pending);
      this.#changes = undefined;
      this.#news = undefined;
    }
  }

  /**
   * Takes a snapshot, and another one while it is not known what became of an object that both hubs have had: acknowledged is what
   * this hub has alike, deletions included. An object that the active hub cannot tell of must not keep the standby from following.
   */
  async #firstSnapshot(
    connection: PrimaryConnection,
    changes: IncomingChanges,
    news: News,
    signal: AbortSignal,
  ): Promise<bigint> {
    await this.#cachesCaughtUp(signal);
    const until = performance.now() + unwrittenMs;
    const backoff = new Backoff({ initialMs: 500, maxMs: snapshotPauseMs });
    for (;;) {
      const { sequence, unknown } = await this.#takeSnapshot(connection, changes, news, signal);
      if (unknown === 0) {
        return sequence;
      }
      const isLate = performance.now() > until;
      this.#options.logger.warn(
        { objects: unknown, atMostSeconds: unwrittenMs / 1_000 },
        isLate
          ? 'the active hub does not tell what became of objects that were on both hubs: they stay here'
          : 'the active hub cannot tell yet what became of objects that were on both hubs; this principal follows when it can',
      );
      if (isLate) {
        return sequence;
      }
      await sleep(backoff.next(), signal);
      signal.throwIfAborted();
    }
  }

  /**
   * What this principal, or one before it, has written last may not be in the caches. It would not be missed on the active hub then.
   * @throws when that takes too long
   */
  async #cachesCaughtUp(signal: AbortSignal): Promise<void> {
    const caches = this.#options.kinds.map(({ informer }) => informer).filter(({ hasSynced }) => hasSynced);
    const all = (late: AbortSignal) => Promise.all([...new Set(caches)].map((cache) => cache.caughtUp(late)));
    await withDeadline(signal, catchUpMs, all);
  }

  /** Takes a snapshot whenever one is needed, until aborted. */
  async #reconcile(
    connection: PrimaryConnection,
    changes: IncomingChanges,
    news: News,
    signal: AbortSignal,
  ): Promise<void> {
    while (!signal.aborted) {
      const isDue = await news.wait(reconcileMs, signal);
      if (signal.aborted) {
        return;
      }
      if (!isDue) {
        const { currentSequenceNum } = await connection.status();
        if (currentSequenceNum <= this.#lastSequence || changes.holdingUp > 0) {
          continue;
        }
      }
      this.#options.metrics.reconciled();
      await this.#takeSnapshot(connection, changes, news, signal);
      await sleep(snapshotPauseMs, signal);
    }
  }

  #received(event: ReplicatedEvent, changes: IncomingChanges, news: News): void {
    const { metrics, logger, kinds, writer, kept } = this.#options;
    metrics.received();
    const expected = this.#lastSequence + 1n;
    if (event.sequenceNum > expected && this.#isConnected) {
      metrics.gap();
      logger.warn(
        { from: String(expected), to: String(event.sequenceNum) },
        'events of the active principal are missing',
      );
      news.need();
    }
    this.#lastSequence = event.sequenceNum;
    this.#lastEventAt = Math.floor(Date.now() / 1000);
    try {
      const { type, target, data } = decodeEvent(event.event);
      const kind = kinds.find((one) => one.target === target);
      if (kind === undefined) {
        changes.skip(event.sequenceNum);
        return;
      }
      if (event.direction === 'inbound' || !followed.has(type)) {
        // argocd-agent sends what an agent sent, which is about the objects of the agent's own cluster.
        if (target === targets.application || target === targets.appProject) {
          news.need();
        }
        changes.skip(event.sequenceNum);
        return;
      }
      const object = writer.parse(kind, data);
      const { namespace, name } = object.metadata;
      const ref = { namespace, name };
      news.touched(kind, ref);
      const isGone = type === eventTypes.delete;
      if (isGone) {
        kept.drop(kind, ref);
      } else {
        kept.want(kind, ref, data);
      }
      const what = isGone ? { object: undefined, wasKeptOut: isKeptOut(object) } : { object };
      changes.add({ kind, ref, ...what, sequence: event.sequenceNum });
    } catch (error) {
      if (!(error instanceof WireError) && !(error instanceof UnusableObjectError)) {
        throw error;
      }
      metrics.failed();
      logger.warn(
        { sequence: String(event.sequenceNum) },
        `an event of the active principal is left out: ${error.message}`,
      );
      changes.skip(event.sequenceNum);
    }
  }

  async #write({ kind, ref, object, wasKeptOut }: IncomingChange, signal: AbortSignal): Promise<void> {
    const { writer, kinds } = this.#options;
    const key = replicatedKey(kind, ref);
    const isCopy = (local: KubeObject) =>
      wasKeptOut !== true || writer.originOf(key) !== undefined || wasOnBothHubs(local, kinds);
    try {
      await (object === undefined ? writer.remove(kind, ref, signal, { isCopy }) : writer.put(kind, object, signal));
      this.#options.metrics.processed();
    } catch (error) {
      if (!signal.aborted) {
        this.#options.metrics.failed();
      }
      throw error;
    }
  }

  /**
   * Makes this hub like the active one. Returns the number from which events follow, and of how many objects that are missing on the
   * active hub it is not known whether they were deleted there.
   */
  async #takeSnapshot(
    connection: PrimaryConnection,
    changes: IncomingChanges,
    news: News,
    signal: AbortSignal,
  ): Promise<{ readonly sequence: bigint; readonly unknown: number }> {
    const { kinds, agents, logger, metrics, kept } = this.#options;
    news.begin();
    const snapshot = await connection.snapshot();
    const { lastSequenceNum } = snapshot;
    if (lastSequenceNum > this.#lastSequence) {
      this.#lastSequence = lastSequenceNum;
      changes.startFrom(lastSequenceNum);
    }
    agents(new Map(snapshot.agents.map(({ name, mode }) => [name, mode])));
    metrics.snapshot(snapshot.agents.length);
    const present = new Set<string>();
    for (const kind of kinds) {
      const turns = new Semaphore(writersOfSnapshot);
      const work = resourcesOf(snapshot, kind.name).map((resource) =>
        turns.run(async () => {
          present.add(replicatedKey(kind, resource));
          if (resource.data.length === 0 || news.isTouched(kind, resource)) {
            return;
          }
          await this.#putFromSnapshot(kind, resource, lastSequenceNum, changes, news, signal);
        }, signal),
      );
      await Promise.all(work);
    }
    kept.dropAllBut((key) => present.has(key) || news.isTouchedKey(key));
    const unknown = await this.#removeMissing(connection, snapshot, present, news, signal);
    logger.info(
      { objects: present.size, agents: snapshot.agents.length },
      'a snapshot of the active hub was taken over',
    );
    news.end();
    return { sequence: lastSequenceNum, unknown };
  }

  async #putFromSnapshot(
    kind: ReplicatedKind,
    resource: Resource,
    sequence: bigint,
    changes: IncomingChanges,
    news: News,
    signal: AbortSignal,
  ): Promise<void> {
    const { writer, logger, metrics, kept } = this.#options;
    let object: KubeObject;
    try {
      object = writer.parse(kind, resource.data);
    } catch (error) {
      metrics.failed();
      const { kind: kindName, namespace, name } = resource;
      logger.warn({ kind: kindName, object: `${namespace}/${name}` }, (error as Error).message);
      return;
    }
    kept.want(kind, resource, resource.data);
    try {
      await writer.put(kind, object, signal, { fromCache: true, isCurrent: () => !news.isTouched(kind, resource) });
    } catch {
      signal.throwIfAborted();
      metrics.failed();
      // Tried again from now on; it counts as not done, like an event that followed.
      const { namespace, name } = object.metadata;
      changes.add({ kind, ref: { namespace, name }, object, sequence: sequence + 1n });
    }
  }

  /** Deletes what both hubs have had and the active one has not any more. Returns of how many objects that is not known. */
  async #removeMissing(
    connection: PrimaryConnection,
    snapshot: ReplicationSnapshot,
    present: ReadonlySet<string>,
    news: News,
    signal: AbortSignal,
  ): Promise<number> {
    const { kinds, writer, logger, metrics } = this.#options;
    let unknown = 0;
    const own: string[] = [];
    const missing = kinds
      .filter(({ name }) => name !== 'GPGKey')
      .reverse()
      .flatMap((kind) => kind.informer.list().map((object) => ({ kind, object })))
      .filter(
        ({ kind, object }) =>
          !present.has(replicatedKey(kind, object.metadata)) && kind.includes(object) && !isKeptOut(object),
      );
    for (let from = 0; from < missing.length; from += mostAskedAbout) {
      const asked = missing.slice(from, from + mostAskedAbout);
      const { results } = await connection.confirm({
        agentName: '',
        snapshotSequenceNum: snapshot.lastSequenceNum,
        resources: asked.map(({ kind, object: { metadata } }) => ({
          kind: kind.name,
          namespace: metadata.namespace ?? '',
          name: metadata.name,
          // Of the object on the active hub: another one of its name may be there now.
          uid: writer.originOf(replicatedKey(kind, metadata)) ?? metadata.uid ?? '',
          specChecksum: Buffer.alloc(0),
          data: Buffer.alloc(0),
        })),
      });
      const answers = new Map(
        results.map((one): [string, ConfirmMissingResourceResult] => {
          const { kind = '', namespace = '', name = '' } = one.resource ?? {};
          return [`${kind}/${namespace}/${name}`, one];
        }),
      );
      for (const { kind, object } of asked) {
        const key = replicatedKey(kind, object.metadata);
        const answer = answers.get(key);
        // What the active hub records may say that an object without the annotation was on both, too.
        const mayHaveBeen = answer?.reason === deletedHereReason || answer?.reason === unreadableReason;
        if (!wasOnBothHubs(object, kinds) && !mayHaveBeen) {
          if (kind.name === 'Application' || kind.name === 'ApplicationSet') {
            own.push(key);
          }
        } else if (answer?.status === 'deleted') {
          await writer.remove(kind, object.metadata, signal, {
            isCurrent: () => !news.isTouched(kind, object.metadata),
          });
        } else if (answer?.reason === keptOutReason) {
          this.#keptOut(key, object, answer.resource?.uid);
        } else if (!finalReasons.has(answer?.reason ?? '')) {
          unknown++;
          news.need();
        }
      }
    }
    metrics.onlyHere(own.length);
    if (own.length > 0) {
      logger.warn(
        { count: own.length, objects: own.slice(0, 20) },
        'these objects were never on the active hub: they stay here, and are deployed when this principal becomes active',
      );
    }
    return unknown;
  }

  /** @param uid of the active hub's; an earlier version says again what it was asked, which is this hub's */
  #keptOut(key: string, { metadata }: KubeObject, uid: string | undefined): void {
    if (uid !== undefined && uid !== metadata.uid) {
      this.#options.writer.learnOrigin(key, uid);
    }
  }
}

/** Why the active hub tells nothing of an object, and will not as long as it is followed. */
const finalReasons: ReadonlySet<string> = new Set([notTellingReason, notListedReason]);

/** The types of events that are followed one by one; of objects as the active hub has them. */
const followed: ReadonlySet<string> = new Set([
  eventTypes.create,
  eventTypes.specUpdate,
  eventTypes.terminateOperation,
  eventTypes.delete,
]);

function resourcesOf(snapshot: ReplicationSnapshot, kind: string): Resource[] {
  const all = [...snapshot.principalResources, ...snapshot.agents.flatMap(({ resources }) => resources)];
  return all.filter((resource) => resource.kind === kind);
}
