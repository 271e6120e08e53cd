import { createHash } from 'node:crypto';
import { annotations } from '../../lib/argocd/index.ts';
import { BoundedSet, type Logger } from '../../lib/base/index.ts';
import { type ConfigMap, configMaps, isForbidden, type KubeClient, WorkQueue } from '../../lib/kube/index.ts';
import { principalFieldManager } from '../namespaces.ts';
import { retryConflicts } from './retry-conflicts.ts';

/** Deletions that are remembered. They take at most 700 kB of the ConfigMap, which may have 1 MiB. */
const mostDeletions = 20_000;
/** Written at once. */
const mostAtOnce = 1_000;
const name = 'argocd-agent-deleted-objects';
const writing = 'deleted-objects';
const closing = 'deleted-objects-of-a-followed-hub';

/** What {@link DeletedObjects} needs. */
export interface DeletedObjectsOptions {
  readonly client: Pick<KubeClient, 'get' | 'mergePatch'>;
  readonly namespace: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/**
 * What was deleted on this hub since it became active, of the objects that it had from the other hub. That one may have died before
 * it could annotate them ({@link annotations.onBothHubs}), and is told when it follows. A ConfigMap outlives this hub's principals,
 * which all write to it until a standby follows: from then on the other hub's objects have the annotation.
 */
export class DeletedObjects {
  readonly #options: DeletedObjectsOptions;
  readonly #known = new BoundedSet<string>(mostDeletions);
  readonly #unwritten = new Set<string>();
  readonly #queue: WorkQueue;
  /** Whether nothing is written any more; undefined: that was not looked up yet. */
  #isClosed: boolean | undefined;

  constructor(options: DeletedObjectsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      name: 'deleted-objects',
      handler: (what, signal) => (what === writing ? this.#write(signal) : this.#close(signal)),
      concurrency: 1,
      logger: options.logger,
    });
    void this.#queue.run(options.signal);
  }

  /** What was added to this one. */
  get added(): Iterable<string> {
    return this.#known;
  }

  /** An object that both hubs have had was deleted here. */
  add(key: string): void {
    this.#known.add(key);
    if (this.#isClosed !== true && this.#unwritten.size < mostDeletions) {
      this.#unwritten.add(fieldOf(key));
      this.#queue.add(writing);
    }
  }

  /** A standby has all objects of this hub. */
  followed(): void {
    if (this.#isClosed !== true) {
      this.#queue.add(closing);
    }
  }

  /** Tells of each object whether it was added, by this principal or another one of the hub. @throws when the ConfigMap cannot be read */
  async read(): Promise<(key: string) => boolean> {
    const found = await this.#find(this.#options.signal).catch((error: unknown) => {
      // An older chart does not grant it, and then nothing was recorded.
      if (!isForbidden(error)) {
        throw error;
      }
      return undefined;
    });
    const fields = found?.data ?? {};
    return (key) => this.#known.has(key) || fieldOf(key) in fields;
  }

  async #write(signal: AbortSignal): Promise<void> {
    this.#isClosed ??= isClosed(await this.#find(signal));
    const fields = this.#isClosed ? [] : [...this.#unwritten].slice(0, mostAtOnce);
    if (fields.length > 0) {
      const written = await this.#patch({ data: Object.fromEntries(fields.map((field) => [field, ''])) }, signal);
      this.#isClosed = isClosed(written);
      if (Object.keys(written.data ?? {}).length >= mostDeletions) {
        this.#isClosed = true;
        this.#options.logger.warn(
          { configMap: `${this.#options.namespace}/${name}`, deletions: mostDeletions },
          'no more deletions are recorded for the hub that is away: what it has of later ones may stay there',
        );
      }
    }
    if (this.#isClosed) {
      this.#unwritten.clear();
      return;
    }
    for (const field of fields) {
      this.#unwritten.delete(field);
    }
    if (this.#unwritten.size > 0) {
      this.#queue.add(writing);
    }
  }

  async #close(signal: AbortSignal): Promise<void> {
    if (!isClosed(await this.#find(signal))) {
      await this.#patch({ metadata: { annotations: { [annotations.isFollowed]: 'true' } } }, signal);
    }
    this.#isClosed = true;
  }

  #find(signal: AbortSignal): Promise<ConfigMap | undefined> {
    const { client, namespace } = this.#options;
    return client.get(configMaps, { namespace, name }, signal);
  }

  #patch(patch: object, signal: AbortSignal): Promise<ConfigMap> {
    const { client, namespace } = this.#options;
    return client.mergePatch(configMaps, { namespace, name }, patch, { fieldManager: principalFieldManager, signal });
  }
}

/**
 * A hub that becomes active after the other one begins with nothing. It may have become active through another of its principals
 * meanwhile, which records already: `isPromoting` is asked between what was read and what is written.
 */
export async function forgetDeletedObjects(
  client: Pick<KubeClient, 'get' | 'create' | 'mergePatch'>,
  namespace: string,
  isPromoting: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  const options = { fieldManager: principalFieldManager, signal };
  await retryConflicts(async () => {
    const found = await client.get(configMaps, { namespace, name }, signal);
    if (!(await isPromoting())) {
      return;
    }
    if (found === undefined) {
      await client.create(configMaps, { metadata: { namespace, name }, data: {} }, options);
      return;
    }
    const { resourceVersion } = found.metadata;
    const empty = { metadata: { resourceVersion, annotations: { [annotations.isFollowed]: null } }, data: null };
    await client.mergePatch(configMaps, { namespace, name }, empty, options);
  });
}

/** Without the ConfigMap the hub has not become active after the other one. */
function isClosed(found: ConfigMap | undefined): boolean {
  return found === undefined || found.metadata.annotations?.[annotations.isFollowed] === 'true';
}

/** A ConfigMap's keys are short, and have no slash. */
function fieldOf(key: string): string {
  return createHash('sha256').update(key).digest('base64url').slice(0, 22);
}
