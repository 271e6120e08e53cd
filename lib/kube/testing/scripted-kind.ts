import { onAbort } from '../../base/index.ts';
import { AnswerListeners } from '../answer-listeners.ts';
import type { KubeClient } from '../client.ts';
import type { ListPage } from '../client-options.ts';
import { ApiError } from '../errors.ts';
import { type KubeObject, keyOf, parseKey, type ResourceType } from '../types.ts';
import type { WatchEvent } from '../watch.ts';

interface Watch<T extends KubeObject> {
  pending: WatchEvent<T>[];
  end: { error: Error | undefined } | undefined;
  wake: () => void;
}

/** What a {@link ScriptedKind} had at a time. */
export interface ScriptedSnapshot<T extends KubeObject> {
  readonly objects: ReadonlyMap<string, T>;
  readonly version: number;
}

/** One kind of an API server in memory, with a history that can be compacted and trouble on demand. */
export class ScriptedKind<T extends KubeObject> implements Pick<KubeClient, 'answers' | 'listPage' | 'watch'> {
  readonly answers = new AnswerListeners();
  /** What lists were asked for. */
  readonly lists: { limit: number | undefined; continue: boolean }[] = [];
  /** How often only the version was asked for. */
  checks = 0;
  /** The versions that watches started from. */
  readonly watchedFrom: string[] = [];
  /** Thrown by the next requests, one each. */
  refuse: Error[] = [];
  /** So many continue tokens turn out expired. */
  expireContinue = 0;
  readonly #objects = new Map<string, T>();
  readonly #watches = new Set<Watch<T>>();
  #history: { version: number; event: WatchEvent<T> }[] = [];
  #version = 100;
  #compacted = 0;

  get openWatches(): number {
    return this.#watches.size;
  }

  put(object: T): T {
    const key = keyOf(object);
    const metadata = { ...object.metadata, resourceVersion: String(++this.#version) };
    const stored = { ...object, metadata };
    const type = this.#objects.has(key) ? 'MODIFIED' : 'ADDED';
    this.#objects.set(key, stored);
    this.#happened({ type, object: stored });
    return stored;
  }

  remove(key: string): void {
    const object = this.#objects.get(key);
    if (!object) {
      throw new Error(`no ${key}`);
    }
    this.#objects.delete(key);
    const metadata = { ...object.metadata, resourceVersion: String(++this.#version) };
    this.#happened({ type: 'DELETED', object: { ...object, metadata } });
  }

  /** Answers a request of the client for an object, or says that there is none. */
  answer(type: ResourceType<T>, key: string): void {
    this.answers.answered(type, parseKey(key), this.#objects.get(key));
  }

  /** Sends an event to the open watches that is in no history. */
  emit(event: WatchEvent<T>): void {
    if (event.type === 'BOOKMARK') {
      this.#version = Math.max(this.#version, Number(event.resourceVersion));
    }
    for (const watch of this.#watches) {
      this.#push(watch, event);
    }
  }

  /** What there is now, for {@link ScriptedKind.restore}. */
  snapshot(): ScriptedSnapshot<T> {
    return { objects: new Map(this.#objects), version: this.#version };
  }

  /**
   * Puts an earlier state back, as a restore of etcd does. Watches of versions that are not reached yet are accepted all the
   * same.
   * @param version which version the server has then; default: that of the snapshot. A higher one is what etcd's
   * documentation asks for, and its history is compacted
   */
  restore(snapshot: ScriptedSnapshot<T>, version = snapshot.version): void {
    this.#objects.clear();
    for (const [key, object] of snapshot.objects) {
      this.#objects.set(key, object);
    }
    this.#version = version;
    this.#history = [];
    this.#compacted = version > snapshot.version ? version : 0;
  }

  compact(): void {
    this.#compacted = this.#version;
    this.#history = [];
  }

  endWatches(): void {
    this.breakWatches(undefined);
  }

  /** Breaks the open watches; what `meanwhile` does is seen by none of them. */
  breakWatches(error: Error | undefined, meanwhile?: () => void): void {
    const watches = [...this.#watches];
    this.#watches.clear();
    meanwhile?.();
    for (const watch of watches) {
      watch.end = { error };
      watch.wake();
    }
  }

  async listPage<U extends KubeObject>(
    _type: ResourceType<U>,
    options: { limit?: number | undefined; continue?: string | undefined; metadataOnly?: boolean | undefined },
  ): Promise<ListPage<U>> {
    if (options.limit === 1 && options.metadataOnly) {
      this.checks++;
    } else {
      this.lists.push({ limit: options.limit, continue: options.continue !== undefined });
    }
    this.#refuse();
    if (options.continue && this.expireContinue > 0) {
      this.expireContinue--;
      throw new ApiError({ status: 410, reason: 'Expired', message: 'the provided continue parameter is too old' });
    }
    const from = Number(options.continue ?? 0);
    const all = [...this.#objects.values()];
    const to = options.limit ? from + options.limit : all.length;
    return {
      items: structuredClone(all.slice(from, to)) as KubeObject[] as U[],
      resourceVersion: String(this.#version),
      continue: to < all.length ? String(to) : undefined,
    };
  }

  async watch<U extends KubeObject>(
    _type: ResourceType<U>,
    options: { resourceVersion: string; signal?: AbortSignal | undefined },
  ): Promise<AsyncGenerator<WatchEvent<U>, void, undefined>> {
    this.#refuse();
    this.watchedFrom.push(options.resourceVersion);
    const since = Number(options.resourceVersion);
    if (since < this.#compacted) {
      throw new ApiError({ status: 410, reason: 'Expired', message: 'too old' });
    }
    const missed = this.#history.filter((entry) => entry.version > since).map((entry) => entry.event);
    const watch: Watch<T> = { pending: structuredClone(missed), end: undefined, wake: () => undefined };
    this.#watches.add(watch);
    return this.#read(watch, options.signal) as AsyncGenerator<WatchEvent<KubeObject>> as AsyncGenerator<WatchEvent<U>>;
  }

  async *#read(watch: Watch<T>, signal: AbortSignal | undefined): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const unlisten = onAbort(signal, () => watch.wake());
    try {
      for (;;) {
        signal?.throwIfAborted();
        const event = watch.pending.shift();
        if (event) {
          yield event;
          continue;
        }
        if (watch.end?.error) {
          throw watch.end.error;
        }
        if (watch.end) {
          return;
        }
        const { promise, resolve } = Promise.withResolvers<void>();
        watch.wake = resolve;
        await promise;
      }
    } finally {
      unlisten();
      this.#watches.delete(watch);
    }
  }

  #happened(event: WatchEvent<T>): void {
    this.#history.push({ version: this.#version, event });
    for (const watch of this.#watches) {
      this.#push(watch, structuredClone(event));
    }
  }

  #push(watch: Watch<T>, event: WatchEvent<T>): void {
    watch.pending.push(event);
    watch.wake();
  }

  #refuse(): void {
    const error = this.refuse.shift();
    if (error) {
      throw error;
    }
  }
}
