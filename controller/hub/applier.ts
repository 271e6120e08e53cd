import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { isNewerVersion, mergePatchBetween, wellKnown } from '../../lib/base/index.ts';
import {
  isAlreadyExists,
  isNotFound,
  type KubeClient,
  type KubeObject,
  keyOf,
  type ResourceType,
} from '../../lib/kube/index.ts';
import { fieldManager, managedBy } from './names.ts';
import { overlay } from './overlay.ts';

/** How long what was written counts more than the cache, without asking the API server. */
const trustMs = 60_000;

/** An object with a name that the controller needs belongs to somebody else. */
export class ForeignObjectError extends Error {
  override readonly name = 'ForeignObjectError';
  readonly code = 'FOREIGN_OBJECT';

  constructor(type: ResourceType, object: KubeObject) {
    super(
      `${type.kind} ${keyOf(object)} exists and was not made by this controller (it lacks the label ${wellKnown.managedByLabel}=${managedBy}); rename or delete it, or add the label to hand it over`,
    );
  }
}

/** Whether this controller made an object, by its label `app.kubernetes.io/managed-by`. */
export function isOurs(object: KubeObject): boolean {
  return object.metadata.labels?.[wellKnown.managedByLabel] === managedBy;
}

/** Options of {@link Applier.ensure}. */
export interface EnsureOptions {
  /** Paths of fields that must equal the desired ones, for example `spec.workload`. Elsewhere others may add fields. */
  readonly exact?: readonly string[];
  /** The write fails with a conflict when the object has changed since it was read. */
  readonly guarded?: boolean;
  /**
   * For large objects whose desired fields nobody else writes. They are created by a plain create and changed by a merge
   * patch, which costs an API server two thirds of a server-side apply. No managed fields are recorded, so this lists the
   * paths (as lists of keys) of all fields that are removed when they are no longer desired. Not together with `guarded`.
   */
  readonly createAndMergePatch?: readonly (readonly string[])[];
  readonly signal?: AbortSignal | undefined;
}

type Client = Pick<KubeClient, 'apply' | 'create' | 'patch' | 'get' | 'delete'>;

/**
 * Writes objects only when they differ from the desired state.
 *
 * It reads its own writes: an object just written is known before the cache shows it. It also remembers how the API server
 * changes a desired state (defaults, pruned fields), so that such a difference does not repeat the same write.
 */
export class Applier {
  readonly #client: Client;
  readonly #owns: (object: KubeObject) => boolean;
  /** What was written, and when by `performance.now()`, until the cache has it. */
  readonly #written = new Map<string, { readonly object: KubeObject; readonly at: number }>();
  readonly #settled = new Map<string, { desired: string; live: string }>();
  #writes = 0;

  /** @param owns whether an existing object may be written; default: {@link isOurs} */
  constructor(client: Client, owns: (object: KubeObject) => boolean = isOurs) {
    this.#client = client;
    this.#owns = owns;
  }

  /** Number of writes so far. */
  get writes(): number {
    return this.#writes;
  }

  /** Remembers an object that was written without this applier, so that {@link Applier.current} knows it before the cache. */
  wrote(type: ResourceType, object: KubeObject): void {
    delete object.metadata.managedFields;
    this.#keep(idOf(type, object), object);
  }

  /**
   * The newest known state of an object: the cached one or the one written later. Without either, asks the API server; also when
   * the cache does not have for long what was written: the API server may have been restored from a backup.
   */
  async current<T extends KubeObject>(
    type: ResourceType<T>,
    key: { namespace?: string; name: string },
    cached: T | undefined,
    signal?: AbortSignal,
  ): Promise<T | undefined> {
    const id = idOf(type, { metadata: key });
    const written = this.#written.get(id);
    if (cached && (written === undefined || !isNewer(written.object, cached))) {
      this.#written.delete(id);
      return cached;
    }
    if (cached && written && performance.now() - written.at < trustMs) {
      return written.object as T;
    }
    const live = await this.#client.get(type, key, signal);
    if (live === undefined) {
      this.#written.delete(id);
    } else if (cached) {
      this.wrote(type, live);
    }
    return live;
  }

  #keep(id: string, object: KubeObject): void {
    this.#written.set(id, { object, at: performance.now() });
  }

  /**
   * Brings an object into the desired state, by server-side apply unless `createAndMergePatch` is given. Labels,
   * annotations and fields that others added stay.
   * @throws ForeignObjectError when an object with that name belongs to somebody else
   */
  async ensure<T extends KubeObject>(
    type: ResourceType<T>,
    desired: T,
    cached: T | undefined,
    options: EnsureOptions = {},
  ): Promise<{ object: T; changed: boolean }> {
    // The create request itself fails when the object exists.
    const isNew =
      options.createAndMergePatch !== undefined && cached === undefined && !this.#written.has(idOf(type, desired));
    const live = isNew ? undefined : await this.current(type, desired.metadata, cached, options.signal);
    return this.change(type, desired, live, options);
  }

  /** As {@link Applier.ensure}, for an object just read: `live` is the result of {@link Applier.current}. */
  async change<T extends KubeObject>(
    type: ResourceType<T>,
    desired: T,
    live: T | undefined,
    options: EnsureOptions = {},
  ): Promise<{ object: T; changed: boolean }> {
    const id = idOf(type, desired);
    if (live) {
      if (!this.#owns(live)) {
        throw new ForeignObjectError(type, live);
      }
      const exact = options.exact ?? [];
      if (covers(live, desired, exact)) {
        return { object: live, changed: false };
      }
      const settled = this.#settled.get(id);
      if (settled && settled.desired === digest(desired) && settled.live === digest(contentOf(live))) {
        return { object: live, changed: false };
      }
    }
    if (options.createAndMergePatch) {
      return this.#createOrPatch(type, desired, live, { ...options, createAndMergePatch: options.createAndMergePatch });
    }
    this.#writes += 1;
    const resourceVersion = options.guarded ? live?.metadata.resourceVersion : undefined;
    const written = resourceVersion ? { ...desired, metadata: { ...desired.metadata, resourceVersion } } : desired;
    const object = await this.#client.apply(type, written, { fieldManager, force: true, signal: options.signal });
    this.wrote(type, object);
    this.#settle(id, desired, object, options);
    return { object, changed: true };
  }

  async #createOrPatch<T extends KubeObject>(
    type: ResourceType<T>,
    desired: T,
    live: T | undefined,
    options: EnsureOptions & Required<Pick<EnsureOptions, 'createAndMergePatch'>>,
  ): Promise<{ object: T; changed: boolean }> {
    const { signal, createAndMergePatch } = options;
    const id = idOf(type, desired);
    // The content is known. Only the server's metadata is read from the response.
    const writeOptions = { fieldManager, signal, metadataOnly: true, repeatable: true } as const;
    this.#writes += 1;
    if (live === undefined) {
      try {
        const { metadata } = await this.#client.create(type, desired, writeOptions);
        return this.#remember(id, desired, metadata);
      } catch (error) {
        if (!isAlreadyExists(error)) {
          throw error;
        }
        const found = await this.#client.get(type, desired.metadata, signal);
        if (found === undefined) {
          throw error; // it was deleted in between
        }
        return this.change(type, desired, found, options);
      }
    }
    try {
      const merged = overlay(live, desired, createAndMergePatch);
      const patch = mergePatchBetween(live, merged) ?? {};
      const { metadata } = await this.#client.patch(type, desired.metadata, patch, { ...writeOptions, planned: live });
      // The server's result equals the existing object.
      if (metadata.resourceVersion === live.metadata.resourceVersion) {
        this.#settle(id, desired, live, options);
      }
      return this.#remember(id, merged, metadata);
    } catch (error) {
      if (!isNotFound(error)) {
        throw error;
      }
      return this.#createOrPatch(type, desired, undefined, options);
    }
  }

  #remember<T extends KubeObject>(id: string, object: T, metadata: KubeObject['metadata']) {
    const { managedFields: _, ...rest } = metadata;
    const written = { ...object, metadata: rest };
    this.#keep(id, written);
    return { object: written, changed: true };
  }

  /** Remembers the server's result of a desired state when the two differ. */
  #settle(id: string, desired: KubeObject, live: KubeObject, { exact = [] }: EnsureOptions): void {
    if (covers(live, desired, exact)) {
      this.#settled.delete(id);
    } else {
      this.#settled.set(id, { desired: digest(desired), live: digest(contentOf(live)) });
    }
  }

  /** Deletes an object, unless it is being deleted already. */
  async remove<T extends KubeObject>(type: ResourceType<T>, object: T, signal?: AbortSignal): Promise<void> {
    const id = idOf(type, object);
    this.#written.delete(id);
    this.#settled.delete(id);
    if (object.metadata.deletionTimestamp) {
      return;
    }
    this.#writes += 1;
    await this.#client.delete(type, object.metadata, { uid: object.metadata.uid, signal });
  }
}

function isNewer(a: KubeObject, b: KubeObject): boolean {
  return isNewerVersion(a.metadata.resourceVersion, b.metadata.resourceVersion);
}

function idOf(type: ResourceType, { metadata }: KubeObject): string {
  return `${type.plural}/${keyOf(metadata)}`;
}

/**
 * Whether an object contains the desired state. Lists and the fields of `exact` must be equal. Elsewhere the object may
 * have more fields, such as the server's defaults.
 */
function covers(live: unknown, desired: unknown, exact: readonly string[], path = ''): boolean {
  if (exact.includes(path)) {
    return isDeepStrictEqual(live, desired);
  }
  // Finalizers are a set: others may have added theirs.
  if (path === 'metadata.finalizers') {
    return (desired as string[]).every((one) => (live as string[] | undefined)?.includes(one) ?? false);
  }
  if (Array.isArray(desired)) {
    if (!Array.isArray(live) || live.length !== desired.length) {
      return false;
    }
    return desired.every((one, index) => covers(live[index], one, exact, `${path}.${index}`));
  }
  if (typeof desired === 'object' && desired !== null) {
    if (typeof live !== 'object' || live === null) {
      return Object.keys(desired).length === 0;
    }
    return Object.entries(desired).every(([key, value]) => {
      const inner = path === '' ? key : `${path}.${key}`;
      // Objects in lists may lack these two. The resource type implies them.
      if (inner === 'apiVersion' || inner === 'kind') {
        return true;
      }
      return covers((live as Record<string, unknown>)[key], value, exact, inner);
    });
  }
  return live === desired;
}

/** The parts of an object that the controller compares: without status and the server's metadata. */
function contentOf(object: KubeObject): object {
  const { metadata, status: _, ...rest } = object as KubeObject & { status?: unknown };
  const { labels, annotations } = metadata;
  return { ...rest, labels, annotations };
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64');
}
