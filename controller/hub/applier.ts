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

/** An object of a name that the controller needs belongs to someone else. */
export class ForeignObjectError extends Error {
  override readonly name = 'ForeignObjectError';
  readonly code = 'FOREIGN_OBJECT';

  constructor(type: ResourceType, object: KubeObject) {
    super(
      `${type.kind} ${keyOf(object)} exists and was not made by this controller (it lacks the label ${wellKnown.managedByLabel}=${managedBy}); rename or delete it, or add the label to hand it over`,
    );
  }
}

/** Whether the controller made an object. */
export function isOurs(object: KubeObject): boolean {
  return object.metadata.labels?.[wellKnown.managedByLabel] === managedBy;
}

/** How an object is brought into the desired state. */
export interface EnsureOptions {
  /** Paths (`spec.workload`) of fields that must be equal; elsewhere others may add something. */
  readonly exact?: readonly string[];
  /** The write is a conflict when the object is no longer the one that was looked at. */
  readonly guarded?: boolean;
  /**
   * For large objects whose desired fields nobody else writes: they are created plainly and changed by a merge patch, which
   * costs an API server two thirds of a server-side apply. Nothing records which fields were ours, so this lists the paths
   * (as lists of keys) of everything that is removed when it is no longer desired. Not together with `guarded`.
   */
  readonly createAndMergePatch?: readonly (readonly string[])[];
  readonly signal?: AbortSignal | undefined;
}

type Client = Pick<KubeClient, 'apply' | 'create' | 'mergePatch' | 'get' | 'delete'>;

/**
 * Writes objects only when they differ from what is there.
 *
 * Reads its own writes: an object just written counts as present before the cache has seen it. What the API server made
 * of a written object (defaults, fields that its schema does not know) is remembered, so that such a difference does not
 * lead to the same write for ever.
 */
export class Applier {
  readonly #client: Client;
  readonly #owns: (object: KubeObject) => boolean;
  readonly #written = new Map<string, KubeObject>();
  readonly #settled = new Map<string, { desired: string; live: string }>();
  #writes = 0;

  /** `owns` tells whether an object that exists may be written. */
  constructor(client: Client, owns: (object: KubeObject) => boolean = isOurs) {
    this.#client = client;
    this.#owns = owns;
  }

  /** Number of writes so far. */
  get writes(): number {
    return this.#writes;
  }

  /** The newest known state of an object: the cache's, or what was written after it; asks the server when neither has it. */
  async current<T extends KubeObject>(
    type: ResourceType<T>,
    key: { namespace?: string; name: string },
    cached: T | undefined,
    signal?: AbortSignal,
  ): Promise<T | undefined> {
    const id = idOf(type, { metadata: key });
    const written = this.#written.get(id) as T | undefined;
    if (
      cached &&
      (written === undefined || !isNewerVersion(written.metadata.resourceVersion, cached.metadata.resourceVersion))
    ) {
      this.#written.delete(id);
      return cached;
    }
    if (cached && written) {
      return written;
    }
    const live = await this.#client.get(type, key, signal);
    if (live === undefined) {
      this.#written.delete(id);
    }
    return live;
  }

  /**
   * Brings an object into the desired state, by server-side apply unless `createAndMergePatch` is given. Labels, annotations and
   * fields that others added are left alone.
   * @throws ForeignObjectError when an object of that name is not ours
   */
  async ensure<T extends KubeObject>(
    type: ResourceType<T>,
    desired: T,
    cached: T | undefined,
    options: EnsureOptions = {},
  ): Promise<{ object: T; changed: boolean }> {
    // A creation finds out by itself that there is one.
    const isNew =
      options.createAndMergePatch !== undefined && cached === undefined && !this.#written.has(idOf(type, desired));
    const live = isNew ? undefined : await this.current(type, desired.metadata, cached, options.signal);
    return this.change(type, desired, live, options);
  }

  /** As `ensure`, for an object that `current` has just been asked for: `live` is its answer. */
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
    delete object.metadata.managedFields;
    this.#written.set(id, object);
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
    // What it looks like is known; of the answer only the server's bookkeeping is news.
    const how = { fieldManager, signal, metadataOnly: true, repeatable: true } as const;
    this.#writes += 1;
    if (live === undefined) {
      try {
        const { metadata } = await this.#client.create(type, desired, how);
        return this.#remember(id, desired, metadata);
      } catch (error) {
        if (!isAlreadyExists(error)) {
          throw error;
        }
        const found = await this.#client.get(type, desired.metadata, signal);
        if (found === undefined) {
          throw error; // gone again by now
        }
        return this.change(type, desired, found, options);
      }
    }
    try {
      const wanted = overlay(live, desired, createAndMergePatch);
      const patch = mergePatchBetween(live, wanted) ?? {};
      const { metadata } = await this.#client.mergePatch(type, desired.metadata, patch, how);
      // The server has made of it what there was already.
      if (metadata.resourceVersion === live.metadata.resourceVersion) {
        this.#settle(id, desired, live, options);
      }
      return this.#remember(id, wanted, metadata);
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
    this.#written.set(id, written);
    return { object: written, changed: true };
  }

  /** Notes what the server makes of a desired state when that is not the same. */
  #settle(id: string, desired: KubeObject, live: KubeObject, { exact = [] }: EnsureOptions): void {
    if (covers(live, desired, exact)) {
      this.#settled.delete(id);
    } else {
      this.#settled.set(id, { desired: digest(desired), live: digest(contentOf(live)) });
    }
  }

  /** Deletes an object if it is ours and not on its way out already. */
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

function idOf(type: ResourceType, { metadata }: KubeObject): string {
  return `${type.plural}/${keyOf(metadata)}`;
}

/**
 * Whether everything desired is there already. Lists and the fields of `exact` must be equal; elsewhere more may be there,
 * such as defaults that the server fills in.
 */
function covers(live: unknown, desired: unknown, exact: readonly string[], path = ''): boolean {
  if (exact.includes(path)) {
    return isDeepStrictEqual(live, desired);
  }
  // A set: others hold the object too.
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
      // Objects from lists lack these two in some places; the type says them.
      if (inner === 'apiVersion' || inner === 'kind') {
        return true;
      }
      return covers((live as Record<string, unknown>)[key], value, exact, inner);
    });
  }
  return live === desired;
}

/** What of an object the controller may be interested in: not status, not the server's bookkeeping. */
function contentOf(object: KubeObject): object {
  const { metadata, status: _, ...rest } = object as KubeObject & { status?: unknown };
  const { labels, annotations } = metadata;
  return { ...rest, labels, annotations };
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64');
}
