import { z } from 'zod';
import { annotations, objectMeta } from '../../lib/argocd/index.ts';
import { canonicalJson, compareVersions, KeyedMutex, type Logger, parseJson } from '../../lib/base/index.ts';
import { namespaceCreator } from '../../lib/bridge/index.ts';
import {
  configMaps,
  isAlreadyExists,
  isNotFound,
  type KubeClient,
  type KubeObject,
  type ObjectKey,
  type OwnerReference,
  secrets,
} from '../../lib/kube/index.ts';
import { principalFieldManager } from '../namespaces.ts';
import { isApplicationSet, isGoing, isKeptOut, type ReplicatedKind, saysOnBothHubs } from './kinds.ts';
import { replicatedKey } from './news.ts';

/** An object of the other hub; everything but the parts that are looked at is kept as it came. */
const replicatedObject = z.looseObject({
  apiVersion: z.string().optional(),
  kind: z.string().optional(),
  metadata: objectMeta,
});

/** What the API server keeps of a Secret, or of a ConfigMap, until it is deleted. */
type Fastened = KubeObject & {
  readonly type?: string;
  readonly immutable?: boolean;
  readonly data?: object;
  readonly binaryData?: object;
};

/** The type of a Secret that names none. */
const opaque = 'Opaque';

/** Metadata that belongs to one API server, or to one hub. */
type Fields = Record<string, unknown> & { metadata: Record<string, unknown> };

/** Why an object that came from the other hub is not written. */
export class UnusableObjectError extends Error {
  override readonly name = 'UnusableObjectError';
}

/**
 * Writes the active hub's objects on the standby. What it writes is equal to the active hub's, except for what belongs to one
 * API server; owners are turned to this hub's ApplicationSets, or left out.
 */
export class StandbyWriter {
  readonly #options: StandbyWriterOptions;
  readonly #turns = new KeyedMutex();
  readonly #createNamespace: (name: string, signal: AbortSignal) => Promise<void>;
  /** The version that was written last, by {@link replicatedKey}. */
  readonly #written = new Map<string, string>();
  /** UIDs on the active hub, by {@link replicatedKey}. */
  readonly #origins = new Map<string, string>();

  constructor(options: StandbyWriterOptions) {
    this.#options = options;
    const { client, logger } = options;
    this.#createNamespace = namespaceCreator({
      client,
      fieldManager: principalFieldManager,
      labels: {},
      check: () => undefined,
      logger,
    });
  }

  /**
   * Reads an object of the other hub.
   * @throws UnusableObjectError when it is none of this kind, or not where objects of this kind are
   */
  parse(kind: ReplicatedKind, data: Uint8Array): KubeObject {
    let object: KubeObject;
    try {
      object = replicatedObject.parse(parseJson(Buffer.from(data).toString('utf8'))) as KubeObject;
    } catch (cause) {
      throw new UnusableObjectError(`not an object of kind ${kind.name}`, { cause });
    }
    const { namespace, name } = object.metadata;
    const isHere =
      kind.name === 'Application' || kind.name === 'ApplicationSet'
        ? namespace !== undefined && namespace !== ''
        : namespace === this.#options.namespace;
    if (!isHere) {
      const own = this.#options.namespace;
      throw new UnusableObjectError(
        `${kind.name} ${namespace ?? ''}/${name} is not in namespace ${own}: both hubs need the same namespace`,
      );
    }
    return object;
  }

  /**
   * Makes the standby's object equal to the active hub's. Resolves with whether it had to be written.
   * @param isCurrent false when something newer about the object has come meanwhile: nothing is written then
   * @param fromCache compare with the cache first, and read the object only when it differs
   * @param isOurs it was equal to the active hub's before, whatever it says now
   */
  put(
    kind: ReplicatedKind,
    object: KubeObject,
    signal: AbortSignal,
    {
      fromCache = false,
      isCurrent = () => true,
      isOurs = false,
    }: { fromCache?: boolean; isCurrent?: () => boolean; isOurs?: boolean } = {},
  ): Promise<boolean> {
    const key = replicatedKey(kind, object.metadata);
    return this.#turns.run(key, async () => {
      signal.throwIfAborted();
      if (!isCurrent() || !kind.includes(object)) {
        return false;
      }
      const cached = fromCache ? this.#cached(kind, object.metadata) : undefined;
      if (cached !== undefined && isGoing(cached) === isGoing(object) && this.#isEqual(kind, object, cached)) {
        this.#origins.set(key, object.metadata.uid ?? '');
        return false;
      }
      const local = await this.#options.client.get(kind.type, object.metadata, signal);
      // When the write fails, nobody knows whose copy is there.
      this.#origins.delete(key);
      if (local === undefined ? isGoing(object) : isKeptOut(local) || (!isOurs && isForeign(kind, local))) {
        return false;
      }
      const isWritten = await this.#write(kind, object, local, signal);
      this.#origins.set(key, object.metadata.uid ?? '');
      return isWritten;
    });
  }

  /** The UID, on the active hub, of the object that this hub has a copy of, by {@link replicatedKey}, as far as is known. */
  originOf(key: string): string | undefined {
    return this.#origins.get(key);
  }

  /** The active hub says of which of its objects this hub has a copy. */
  learnOrigin(key: string, uid: string): void {
    this.#origins.set(key, uid);
  }

  /**
   * Whether nobody has changed the standby's object since it was made equal to the active hub's, as far as the cache knows.
   * @param wanted the active hub's; only asked for when it has to be compared
   * @param isOurs see {@link put}
   */
  isInStep(kind: ReplicatedKind, ref: ObjectKey, wanted: () => KubeObject, isOurs: boolean): boolean {
    const local = kind.informer.get(ref);
    const written = this.#written.get(replicatedKey(kind, ref));
    const version = local?.metadata.resourceVersion ?? '';
    // As the API server has made it, which may leave out or add something each time.
    if (local !== undefined && written !== undefined && (compareVersions(version, written) ?? 1) <= 0) {
      return true;
    }
    const object = wanted();
    if (!kind.includes(object)) {
      return true;
    }
    if (local === undefined) {
      return isGoing(object);
    }
    const isItsOwn = isKeptOut(local) || (!isOurs && isForeign(kind, local));
    return isItsOwn || (isGoing(local) === isGoing(object) && this.#isEqual(kind, object, local));
  }

  /** What was written is not what the active hub has now: {@link isInStep} compares. */
  forget(key: string): void {
    this.#written.delete(key);
  }

  /**
   * Deletes the standby's object, at once: no program of the standby has to clean up after it.
   * @param isCurrent see {@link put}
   * @param isCopy false when the object, as it is on the API server, is this hub's own: it stays then
   */
  remove(
    kind: ReplicatedKind,
    ref: ObjectKey,
    signal: AbortSignal,
    {
      isCurrent = () => true,
      isCopy = () => true,
    }: { isCurrent?: () => boolean; isCopy?: (local: KubeObject) => boolean } = {},
  ): Promise<void> {
    const { client } = this.#options;
    return this.#turns.run(replicatedKey(kind, ref), async () => {
      signal.throwIfAborted();
      const local = isCurrent() ? await client.get(kind.type, ref, signal) : undefined;
      if (
        local === undefined ||
        isKeptOut(local) ||
        !kind.includes(local) ||
        isForeign(kind, local) ||
        !isCopy(local)
      ) {
        return;
      }
      await this.#delete(kind, local, signal);
      this.#origins.delete(replicatedKey(kind, ref));
    });
  }

  async #write(
    kind: ReplicatedKind,
    object: KubeObject,
    local: KubeObject | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (local === undefined) {
      await this.#create(kind, object, signal);
      return true;
    }
    const { client } = this.#options;
    if (!isGoing(object) && (isGoing(local) || !isReplaceable(kind, object, local))) {
      // Here it is still the one that was deleted on the active hub before.
      await this.#delete(kind, local, signal);
      await this.#create(kind, object, signal);
      return true;
    }
    const isEqual = this.#isEqual(kind, object, local);
    if (!isEqual) {
      const fields = this.#fieldsOf(kind, object);
      const { uid, resourceVersion, finalizers = [] } = local.metadata;
      if (isGoing(local)) {
        // Nobody can add a finalizer to an object that is being deleted.
        fields.metadata.finalizers = (fields.metadata.finalizers as string[]).filter((one) => finalizers.includes(one));
      }
      const next = { ...fields, metadata: { ...fields.metadata, uid, resourceVersion } } as unknown as KubeObject;
      const now = await client.replace(kind.type, next, { fieldManager: principalFieldManager, signal });
      this.#wrote(kind, now);
    }
    const isDue = isGoing(object) && !isGoing(local);
    if (isDue) {
      await client.delete(kind.type, local.metadata, { uid: local.metadata.uid, signal });
    }
    return isDue || !isEqual;
  }

  async #create(kind: ReplicatedKind, object: KubeObject, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    const { namespace = '' } = object.metadata;
    const create = async () =>
      this.#wrote(
        kind,
        await client.create(kind.type, this.#fieldsOf(kind, object) as unknown as KubeObject, {
          fieldManager: principalFieldManager,
          signal,
        }),
      );
    try {
      await create();
    } catch (error) {
      if (isAlreadyExists(error) || !isNotFound(error)) {
        throw error;
      }
      await this.#createNamespace(namespace, signal);
      await create();
    }
  }

  async #delete(kind: ReplicatedKind, local: KubeObject, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    const { uid, finalizers = [] } = local.metadata;
    this.#written.delete(replicatedKey(kind, local.metadata));
    try {
      if (finalizers.length > 0) {
        const patch = { metadata: { uid, finalizers: null } };
        await client.mergePatch(kind.type, local.metadata, patch, { fieldManager: principalFieldManager, signal });
      }
      await client.delete(kind.type, local.metadata, { uid, signal });
    } catch (error) {
      if (!isNotFound(error)) {
        throw error;
      }
    }
  }

  /** The object in the cache, unless the cache is behind what was written here. */
  #cached(kind: ReplicatedKind, ref: ObjectKey): KubeObject | undefined {
    const key = replicatedKey(kind, ref);
    const cached = kind.informer.get(ref);
    const written = this.#written.get(key);
    if (written === undefined) {
      return cached;
    }
    const version = cached?.metadata.resourceVersion;
    return version === undefined || (compareVersions(version, written) ?? -1) < 0 ? undefined : cached;
  }

  #wrote(kind: ReplicatedKind, { metadata }: KubeObject): void {
    this.#written.set(replicatedKey(kind, metadata), metadata.resourceVersion ?? '');
  }

  #isEqual(kind: ReplicatedKind, object: KubeObject, local: KubeObject): boolean {
    const [wanted, present] = [this.#fieldsOf(kind, object), this.#fieldsOf(kind, local, true)];
    return canonicalJson(wanted) === canonicalJson(present);
  }

  /** What both hubs have alike. */
  #fieldsOf(kind: ReplicatedKind, object: KubeObject, isLocal = false): Fields {
    const { metadata, apiVersion: _a, kind: _k, ...rest } = object as KubeObject & Record<string, unknown>;
    const { namespace, name, labels = {}, annotations: notes = {}, finalizers = [], ownerReferences = [] } = metadata;
    const { operation, status, ...fields } = rest;
    // One that stands here was asked for while this hub was active. The other one may have run it: it must not run again.
    const request = isLocal && operation !== undefined ? { operation } : {};
    // The API server keeps the status of ApplicationSets apart.
    const shown = kind.name === 'ApplicationSet' || status === undefined ? {} : { status };
    const owners = isLocal ? ownerReferences : this.#ownersOf(kind, metadata.namespace ?? '', ownerReferences);
    // Argo CD's ApplicationSet controller takes the mark away.
    const needsNone = kind.name === 'GPGKey' || owners.some(isApplicationSet);
    const marks = needsNone ? {} : { [annotations.onBothHubs]: 'true' };
    return {
      ...fields,
      ...shown,
      ...request,
      metadata: {
        namespace,
        name,
        labels,
        annotations: isLocal ? notes : { ...this.#notesOf(kind, object), ...marks },
        finalizers,
        ownerReferences: owners,
      },
    };
  }

  /** argocd-agent's standbys put the active hub's UID on every Application. Here it would say that it is an agent's mirror. */
  #notesOf(kind: ReplicatedKind, { metadata }: KubeObject): Record<string, string> {
    const { [annotations.sourceUid]: source, ...others } = metadata.annotations ?? {};
    const isManaged = kind.name === 'Application' && this.#options.isManaged(metadata.namespace ?? '');
    return source === undefined || isManaged ? others : { ...others, [annotations.sourceUid]: source };
  }

  #ownersOf(kind: ReplicatedKind, namespace: string, owners: readonly OwnerReference[]): OwnerReference[] {
    if (kind.name !== 'Application') {
      return [];
    }
    return owners.flatMap((owner) => {
      const uid = isApplicationSet(owner)
        ? this.#options.applicationSetUid({ namespace, name: owner.name })
        : undefined;
      return uid === undefined ? [] : [{ ...owner, uid }];
    });
  }
}

/** What {@link StandbyWriter} needs. */
export interface StandbyWriterOptions {
  readonly client: Pick<KubeClient, 'get' | 'create' | 'replace' | 'mergePatch' | 'delete'>;
  readonly namespace: string;
  /** Whether Applications of a namespace are those of a managed agent, as far as the active hub has said. */
  isManaged(namespace: string): boolean;
  /** This hub's UID of an ApplicationSet. */
  applicationSetUid(ref: ObjectKey): string | undefined;
  readonly logger: Logger;
}

/** An object of the standby's own, of a kind where it may differ. */
function isForeign(kind: ReplicatedKind, local: KubeObject): boolean {
  return kind.yields && !saysOnBothHubs(local);
}

/** Whether the API server lets the one be replaced by the other in place. Of the kinds here it holds Secrets and ConfigMaps fast. */
function isReplaceable(kind: ReplicatedKind, object: KubeObject, local: KubeObject): boolean {
  const { plural } = kind.type;
  if (plural !== secrets.plural && plural !== configMaps.plural) {
    return true;
  }
  const [next, now] = [object as Fastened, local as Fastened];
  const hasOtherType = plural === secrets.plural && (next.type ?? opaque) !== (now.type ?? opaque);
  const isOther = (field: 'data' | 'binaryData' | 'immutable') =>
    canonicalJson(next[field] ?? {}) !== canonicalJson(now[field] ?? {});
  return (
    !hasOtherType && !(now.immutable === true && (isOther('data') || isOther('binaryData') || isOther('immutable')))
  );
}
