import { ConflictBackoff } from '../../lib/argocd/index.ts';
import { becomes, type Logger, sleep, withDeadline } from '../../lib/base/index.ts';
import { type KubeObject, type ObjectKey, type Requeue, WorkQueue } from '../../lib/kube/index.ts';
import { processRuntime } from '../../lib/sync/index.ts';
import { isApplicationSet, type ReplicatedKind, saysOnBothHubs } from './kinds.ts';
import { replicatedKey } from './news.ts';
import type { StandbyWriter } from './standby-writer.ts';

/** What {@link KeptObjects} needs. */
export interface KeptObjectsOptions {
  readonly writer: Pick<StandbyWriter, 'parse' | 'put' | 'isInStep' | 'forget'>;
  /** Other objects than before cannot be put back. */
  refused(): void;
  readonly logger: Logger;
}

/** An object as the active hub had it last. */
interface Wanted {
  readonly kind: ReplicatedKind;
  readonly ref: ObjectKey;
  /** As it came: a hub's objects take less memory so. */
  readonly data: Uint8Array;
}

interface Difference {
  readonly since: number;
  isRefused: boolean;
}

const writers = 4;
/** A change of the active hub is being written: the object is looked at after that. */
const pendingMs = 1_000;
/** An object counts as one that cannot be put back when that has failed so often in a row. */
const failuresOfRefused = 3;
/** Objects that are compared between two turns of the event loop. */
const objectsPerTurn = 200;

/**
 * Keeps a standby's objects as the active hub had them last: what anybody changes or deletes here is put back, also while the
 * active hub is away. Without this a promotion would carry it out on the clusters. An object that somebody keeps changing is put
 * back ever more rarely. Objects that the active hub never had are nobody's business.
 */
export class KeptObjects {
  readonly #options: KeptObjectsOptions;
  readonly #kinds: ReplicatedKind[] = [];
  readonly #wanted = new Map<string, Wanted>();
  readonly #differences = new Map<string, Difference>();
  /** Cluster Secrets that were equal to the active hub's before somebody took their mark away. */
  readonly #robbed = new Set<string>();
  /** ApplicationSets that somebody deleted here: when one is back, it has another UID. */
  readonly #goneSets = new Set<string>();
  readonly #conflicts = new Map<ReplicatedKind['name'], ConflictBackoff>();
  readonly #onSettled = new Set<() => void>();
  readonly #unsubscribe: (() => void)[] = [];
  readonly #queue: WorkQueue;
  #isPending: (key: string) => boolean = () => false;

  constructor(options: KeptObjectsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      name: 'kept-objects',
      concurrency: writers,
      backoff: { initialMs: 200, maxMs: 15_000 },
      handler: (key, signal) => this.#look(key, signal),
      onFailure: (key, failures, error) => this.#failed(key, failures, error),
    });
  }

  /** Looks at the changes of these objects from now on. */
  follow(kind: ReplicatedKind): void {
    this.#kinds.push(kind);
    const { name } = kind;
    this.#conflicts.set(
      name,
      new ConflictBackoff({
        noun: `${name} of the active hub`,
        logFields: ({ namespace, name: object }) => ({ kind: name, object: `${namespace}/${object}` }),
        runtime: processRuntime(this.#options.logger),
      }),
    );
    const unsubscribe = kind.informer.subscribe({
      added: (now, isInitial) => {
        if (!isInitial) {
          this.#changed(kind, now);
          if (this.#goneSets.delete(replicatedKey(kind, now.metadata))) {
            this.#ownedBy(now);
          }
        }
      },
      updated: (old, now) => {
        if (kind.yields && saysOnBothHubs(old) && !saysOnBothHubs(now)) {
          this.#robbed.add(replicatedKey(kind, now.metadata));
        }
        this.#changed(kind, now);
      },
      deleted: (last) => {
        const key = replicatedKey(kind, last.metadata);
        if (kind.name === 'ApplicationSet' && this.#wanted.has(key)) {
          this.#goneSets.add(key);
        }
        this.#changed(kind, last);
      },
    });
    this.#unsubscribe.push(unsubscribe);
  }

  /** Puts back until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#queue.run(signal);
    for (const unsubscribe of this.#unsubscribe) {
      unsubscribe();
    }
    for (const conflicts of this.#conflicts.values()) {
      conflicts.close();
    }
  }

  /** The active hub has the object so. */
  want(kind: ReplicatedKind, ref: ObjectKey, data: Uint8Array): void {
    // A copy: what came is part of a message, which may be a whole snapshot.
    this.#wanted.set(replicatedKey(kind, ref), { kind, ref, data: Uint8Array.from(data) });
  }

  /** The active hub does not have the object any more. */
  drop(kind: ReplicatedKind, ref: ObjectKey): void {
    this.#drop(replicatedKey(kind, ref));
  }

  /** The active hub has no others. */
  dropAllBut(isThere: (key: string) => boolean): void {
    for (const key of this.#wanted.keys()) {
      if (!isThere(key)) {
        this.#drop(key);
      }
    }
  }

  /** Changes of the active hub that are being written now are not looked at. */
  pending(isPending: (key: string) => boolean): void {
    this.#isPending = isPending;
  }

  /** What the active hub has of these objects, by {@link replicatedKey}, is written anew, though nobody changed them here. */
  write(keys: Iterable<string>): void {
    for (const key of keys) {
      if (this.#wanted.has(key)) {
        this.#options.writer.forget(key);
        this.#differ(key);
        this.#queue.add(key);
      }
    }
  }

  /** Objects that differ from the active hub's. */
  get lag(): number {
    return this.#differences.size;
  }

  /** For how long the oldest of them has differed, ms. */
  get lagMs(): number {
    const [first] = this.#differences.values();
    return first === undefined ? 0 : performance.now() - first.since;
  }

  /** Those of them that cannot be put back, by {@link replicatedKey}. */
  get refused(): string[] {
    return [...this.#differences].flatMap(([key, { isRefused }]) => (isRefused ? [key] : []));
  }

  /**
   * Compares all objects with what the active hub had last, and puts back what differs. Returns, after `ms` at most, what still does.
   * @throws Error when the API server does not tell in time what is there
   */
  async settled(ms: number, signal: AbortSignal): Promise<string[]> {
    const until = performance.now() + ms;
    const caches = [...new Set(this.#kinds.map(({ informer }) => informer))].filter(({ hasSynced }) => hasSynced);
    await withDeadline(signal, ms, (late) => Promise.all(caches.map((cache) => cache.caughtUp(late))));
    let compared = 0;
    for (const [key, wanted] of this.#wanted) {
      if (!this.#isPending(key) && !this.#isInStep(key, wanted)) {
        this.#differ(key);
        this.#queue.add(key);
      }
      if (++compared % objectsPerTurn === 0) {
        await sleep(0);
      }
    }
    await becomes(
      () => this.#differences.size === 0,
      (look) => {
        this.#onSettled.add(look);
        return () => this.#onSettled.delete(look);
      },
      Math.max(0, until - performance.now()),
      signal,
    );
    return [...this.#differences.keys()];
  }

  #drop(key: string): void {
    this.#wanted.delete(key);
    this.#robbed.delete(key);
    this.#goneSets.delete(key);
    this.#isAlike(key);
  }

  #changed(kind: ReplicatedKind, { metadata }: KubeObject): void {
    const key = replicatedKey(kind, metadata);
    const wanted = this.#wanted.get(key);
    if (wanted === undefined || this.#isInStep(key, wanted)) {
      this.#isAlike(key);
      return;
    }
    const ref = { namespace: metadata.namespace ?? '', name: metadata.name };
    if (!this.#isPending(key)) {
      this.#differ(key);
    }
    this.#conflicts.get(kind.name)?.whenDue(ref, () => this.#queue.add(key));
  }

  /** What an ApplicationSet makes names it by a UID, which a set that was put back has anew. */
  #ownedBy({ metadata }: KubeObject): void {
    const owned: string[] = [];
    for (const [key, { kind, ref, data }] of this.#wanted) {
      if (kind.name === 'Application' && ref.namespace === metadata.namespace) {
        const { ownerReferences = [] } = this.#options.writer.parse(kind, data).metadata;
        if (ownerReferences.some((owner) => isApplicationSet(owner) && owner.name === metadata.name)) {
          owned.push(key);
        }
      }
    }
    this.write(owned);
  }

  #isInStep(key: string, { kind, ref, data }: Wanted): boolean {
    const { writer } = this.#options;
    return writer.isInStep(kind, ref, () => writer.parse(kind, data), this.#robbed.has(key));
  }

  async #look(key: string, signal: AbortSignal): Promise<Requeue | undefined> {
    const wanted = this.#wanted.get(key);
    if (wanted === undefined) {
      return undefined;
    }
    if (this.#isPending(key)) {
      return { requeueAfterMs: pendingMs };
    }
    const { writer, logger } = this.#options;
    const { kind, ref, data } = wanted;
    if (!this.#isInStep(key, wanted)) {
      this.#differ(key);
      const isWritten = await writer.put(kind, writer.parse(kind, data), signal, {
        isCurrent: () => this.#wanted.get(key) === wanted,
        isOurs: this.#robbed.has(key),
      });
      if (isWritten) {
        this.#conflicts.get(kind.name)?.recordPutBack({ namespace: ref.namespace ?? '', name: ref.name });
        logger.info({ object: key }, 'an object was not as on the active hub any more: it was put back');
      }
    }
    this.#robbed.delete(key);
    this.#isAlike(key);
    return undefined;
  }

  #failed(key: string, failures: number, error: unknown): void {
    const difference = this.#differences.get(key);
    if (difference !== undefined && !difference.isRefused && failures >= failuresOfRefused) {
      difference.isRefused = true;
      this.#options.refused();
      this.#options.logger.warn(
        { object: key, error },
        'an object is not as on the active hub any more, and cannot be put back: that is tried on',
      );
    }
  }

  #differ(key: string): void {
    if (!this.#differences.has(key)) {
      this.#differences.set(key, { since: performance.now(), isRefused: false });
    }
  }

  #isAlike(key: string): void {
    const was = this.#differences.get(key);
    this.#differences.delete(key);
    if (was?.isRefused) {
      this.#options.refused();
    }
    for (const look of this.#onSettled) {
      look();
    }
  }
}
