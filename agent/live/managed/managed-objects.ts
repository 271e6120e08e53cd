import { BoundedSet, Semaphore } from '../../../lib/base/index.ts';
import { isForbidden, isNotFound, type KubeObject, type OwnerReference } from '../../../lib/kube/index.ts';
import { instanceOf, type Tracking } from '../../../lib/live/index.ts';
import { CountedSet } from './counted-set.ts';
import { ExpiringCache } from './expiring-cache.ts';

/** The fields of an Application of this cluster that determine its objects. */
export interface OwningApplication extends KubeObject {
  spec?: { destination?: { namespace?: string } };
  status?: { resources?: readonly { group?: string; kind?: string; namespace?: string; name?: string }[] };
}

/** What {@link ManagedObjects} works with. */
export interface ManagedObjectsOptions {
  /** All Applications of this cluster, followed. */
  readonly applications: {
    subscribe(handler: {
      added(application: OwningApplication): void;
      updated(old: OwningApplication, now: OwningApplication): void;
      deleted(application: OwningApplication): void;
    }): unknown;
  };
  /** Argo CD's namespace. */
  readonly namespace: string;
  /** How Argo CD marks objects now. @throws RangeError when it is configured wrongly */
  tracking(): Tracking;
  /** Reads an object by kind; undefined when there is none, or no such kind. A namespace is ignored for cluster-scoped kinds. */
  read(
    reference: {
      readonly apiVersion: string;
      readonly kind: string;
      readonly namespace: string;
      readonly name: string;
    },
    signal: AbortSignal,
  ): Promise<KubeObject | undefined>;
  /** Whether Argo CD looks for orphaned resources in a namespace, which it then shows. Default: nowhere. */
  readonly hasOrphans?: (namespace: string) => boolean;
  /** The StatefulSets of a namespace. */
  statefulSets(namespace: string, signal: AbortSignal): Promise<readonly ClaimingSet[]>;
}

/** A StatefulSet and the templates of its claims. */
export interface ClaimingSet {
  readonly name: string;
  readonly templates: readonly string[];
}

/** Whether an object belongs to an Application. */
export interface ManagedVerdict {
  readonly isManaged: boolean;
  /** What kept us from finding out more: an owner that the agent may not read. */
  readonly hindrance?: string;
}

/** All that {@link ManagedObjects} looks at of an object; of its metadata the `managedFields` are not. */
export const fieldsLookedAt: ReadonlySet<string> = new Set([
  'apiVersion',
  'kind',
  'metadata',
  'involvedObject',
  'regarding',
]);

/** Longer chains of owners do not exist outside of attacks; Argo CD's own trees have five or six levels. */
const mostLevels = 32;
/** How long a result about an owner is used: the objects of a list mostly have few owners. */
const rememberedMs = 10_000;
const mostRemembered = 10_000;
/** Objects that are remembered as visible, for when they are deleted. */
const mostSeen = 50_000;
/** Owners that are read at the same time: a long list must not be a flood for the API server. */
const mostReads = 50;

/** Kinds of orphaned resources that are not shown: a credential, and an object whose kind is not known. */
const hiddenOrphans: ReadonlySet<string> = new Set(['', 'Secret', 'PartialObjectMetadata']);

const no: ManagedVerdict = { isManaged: false };
const yes: ManagedVerdict = { isManaged: true };

/**
 * Knows what belongs to the Applications of this cluster: what Argo CD has marked or lists as theirs, and whatever is owned by these
 * over any number of levels, by cluster-scoped owners too. Owners that Kubernetes does not name are inferred as Argo CD does: the
 * OperatorGroup of a ClusterServiceVersion, the StatefulSet of a PersistentVolumeClaim, the Service of Endpoints; and the pod of its
 * metrics.
 */
export class ManagedObjects {
  readonly #options: ManagedObjectsOptions;
  readonly #instances = new CountedSet();
  readonly #listed = new CountedSet();
  readonly #destinations = new CountedSet();
  readonly #verdicts = new ExpiringCache<ManagedVerdict>(rememberedMs, mostRemembered);
  readonly #sets = new ExpiringCache<readonly ClaimingSet[]>(rememberedMs, mostRemembered);
  readonly #reads = new Semaphore(mostReads);
  readonly #seen = new BoundedSet<string>(mostSeen);

  constructor(options: ManagedObjectsOptions) {
    this.#options = options;
    options.applications.subscribe({
      added: (application) => this.#count(application, 1),
      updated: (old, now) => {
        this.#count(now, 1);
        this.#count(old, -1);
      },
      deleted: (application) => this.#count(application, -1),
    });
  }

  /** Whether an Application deploys into the namespace. */
  isDestination(namespace: string): boolean {
    return this.#destinations.has(namespace);
  }

  /**
   * Whether an object belongs to an Application, and may be changed and deleted.
   * @throws what reading an owner throws, except that it does not exist or may not be read
   */
  verdictOn(object: KubeObject, signal: AbortSignal): Promise<ManagedVerdict> {
    return this.#verdictOn(object, [], signal);
  }

  /**
   * Whether an object may be seen: objects of Applications, the namespaces that Applications deploy into, orphaned resources that Argo CD
   * looks for, and Events about any of these. An Event about a missing or unreadable object is shown with its namespace. Most verdicts need no request.
   * @throws as {@link verdictOn}
   */
  visibilityOf(object: KubeObject, signal: AbortSignal): ManagedVerdict | Promise<ManagedVerdict> {
    const seen = (verdict: ManagedVerdict): ManagedVerdict => {
      if (verdict.isManaged) {
        const { uid = '' } = object.metadata ?? {};
        if (uid !== '') {
          this.#seen.add(uid);
        }
      }
      return verdict;
    };
    const verdict = this.#visibilityOf(object, signal);
    return verdict instanceof Promise ? verdict.then(seen) : seen(verdict);
  }

  /** Whether an object was visible when it was last looked at: when it is deleted, its owners may be gone before it. */
  wasVisible(object: KubeObject): boolean {
    return this.#seen.has(object.metadata?.uid ?? '');
  }

  #visibilityOf(object: KubeObject, signal: AbortSignal): ManagedVerdict | Promise<ManagedVerdict> {
    if (this.#isDestinationItself(object)) {
      return yes;
    }
    const about = subjectOf(object);
    if (about === undefined) {
      return this.#isOrphan(object) ? yes : (this.#knownOf(object) ?? this.verdictOn(object, signal));
    }
    if (this.#listed.has(keyOf(groupOf(about.apiVersion), about.kind, about.namespace, about.name))) {
      return yes;
    }
    const id = `${about.apiVersion}/${about.kind}/${about.namespace}/${about.name}/${about.uid}`;
    return this.#verdicts.get(`event about ${id}`, signal, async () => {
      const found = await this.#read(about, signal);
      if ('hindrance' in found || found.object === undefined) {
        return { isManaged: this.#destinations.has(about.namespace), ...('hindrance' in found ? found : {}) };
      }
      const isSeen = this.#isDestinationItself(found.object) || this.#isOrphan(found.object);
      return isSeen ? yes : this.verdictOn(found.object, signal);
    });
  }

  async #verdictOn(object: KubeObject, above: readonly string[], signal: AbortSignal): Promise<ManagedVerdict> {
    const known = this.#knownOf(object);
    if (known !== undefined) {
      return known;
    }
    const { namespace = '', ownerReferences = [] } = object.metadata;
    let hindrance: string | undefined;
    for (const owner of [...ownerReferences, ...(await this.#inferredOwners(object, signal))]) {
      const verdict = await this.#verdictOnOwner(owner, namespace, above, signal);
      if (verdict.isManaged) {
        return verdict;
      }
      hindrance ??= verdict.hindrance;
    }
    return hindrance === undefined ? no : { isManaged: false, hindrance };
  }

  /** The verdict from the object itself. */
  #knownOf(object: KubeObject): ManagedVerdict | undefined {
    // Objects that the API server computes may have no metadata.
    if (object.metadata === undefined) {
      return no;
    }
    return this.#isOwn(object) ? yes : undefined;
  }

  #isOwn(object: KubeObject): boolean {
    const instance = instanceOf(object, this.#options.tracking());
    if (instance !== undefined && this.#instances.has(instance)) {
      return true;
    }
    const { apiVersion = '', kind = '', metadata } = object;
    const { namespace = '', name } = metadata;
    return this.#listed.has(keyOf(groupOf(apiVersion), kind, namespace, name));
  }

  #isDestinationItself({ apiVersion, kind, metadata }: KubeObject): boolean {
    return apiVersion === 'v1' && kind === 'Namespace' && this.#destinations.has(metadata?.name ?? '');
  }

  /** A credential is read only if an Application has it itself; so is what hides its kind. */
  #isOrphan({ kind = '', metadata }: KubeObject): boolean {
    const { hasOrphans } = this.#options;
    const namespace = metadata?.namespace ?? '';
    return !hiddenOrphans.has(kind) && namespace !== '' && hasOrphans?.(namespace) === true;
  }

  #verdictOnOwner(
    owner: Pick<OwnerReference, 'apiVersion' | 'kind' | 'name'> & { readonly uid?: string },
    namespace: string,
    above: readonly string[],
    signal: AbortSignal,
  ): Promise<ManagedVerdict> {
    const { apiVersion, kind, name, uid = '' } = owner;
    const id = `${apiVersion}/${kind}/${namespace}/${name}/${uid}`;
    if (above.includes(id) || above.length >= mostLevels) {
      return Promise.resolve(no);
    }
    const look = async (): Promise<ManagedVerdict> => {
      const found = await this.#read({ apiVersion, kind, namespace, name }, signal);
      if ('hindrance' in found) {
        return { isManaged: false, hindrance: found.hindrance };
      }
      // Another object that took the name of a deleted owner owns nothing.
      if (found.object === undefined || (uid !== '' && found.object.metadata.uid !== uid)) {
        return no;
      }
      return this.#verdictOn(found.object, [...above, id], signal);
    };
    // In a cycle of owners, a caller that waits for a cached verdict could wait for itself.
    return above.length === 0 ? this.#verdicts.get(id, signal, look) : look();
  }

  async #read(
    reference: {
      readonly apiVersion: string;
      readonly kind: string;
      readonly namespace: string;
      readonly name: string;
    },
    signal: AbortSignal,
  ): Promise<{ readonly object: KubeObject | undefined } | { readonly hindrance: string }> {
    try {
      return { object: await this.#reads.run(() => this.#options.read(reference, signal)) };
    } catch (error) {
      if (isNotFound(error)) {
        return { object: undefined };
      }
      if (!isForbidden(error)) {
        throw error;
      }
      const { kind, namespace, name } = reference;
      return { hindrance: `the agent may not read ${kind} ${namespace === '' ? '' : `${namespace}/`}${name}` };
    }
  }

  /**
   * As Argo CD does, but for the token Secret of a ServiceAccount: Argo CD shows it below its account, while here a credential
   * is read only if an Application has it itself.
   */
  async #inferredOwners(
    object: KubeObject,
    signal: AbortSignal,
  ): Promise<{ readonly apiVersion: string; readonly kind: string; readonly name: string }[]> {
    const { apiVersion = '', kind, metadata } = object;
    const { namespace = '', name, annotations, ownerReferences = [] } = metadata;
    switch (`${groupOf(apiVersion)}/${kind}`) {
      case 'operators.coreos.com/ClusterServiceVersion': {
        const operatorGroup = annotations?.['olm.operatorGroup'];
        if (!operatorGroup) {
          return [];
        }
        return [{ apiVersion: 'operators.coreos.com/v1', kind: 'OperatorGroup', name: operatorGroup }];
      }
      case '/Endpoints':
        return ownerReferences.length === 0 ? [{ apiVersion: 'v1', kind: 'Service', name }] : [];
      case 'metrics.k8s.io/PodMetrics':
        return [{ apiVersion: 'v1', kind: 'Pod', name }];
      case '/PersistentVolumeClaim': {
        // <template>-<StatefulSet>-<ordinal>
        const stem = /^(.+)-\d+$/.exec(name)?.[1];
        if (stem === undefined) {
          return [];
        }
        const sets = await this.#setsOf(namespace, signal);
        return sets
          .filter((set) => set.templates.some((template) => stem === `${template}-${set.name}`))
          .map((set) => ({ apiVersion: 'apps/v1', kind: 'StatefulSet', name: set.name }));
      }
      default:
        return [];
    }
  }

  async #setsOf(namespace: string, signal: AbortSignal): Promise<readonly ClaimingSet[]> {
    try {
      return await this.#sets.get(namespace, signal, () => this.#options.statefulSets(namespace, signal));
    } catch (error) {
      if (isForbidden(error)) {
        return [];
      }
      throw error;
    }
  }

  #count({ metadata, spec, status }: OwningApplication, by: 1 | -1): void {
    const { namespace = '', name } = metadata;
    let isNews = this.#instances.add(namespace === this.#options.namespace ? name : `${namespace}_${name}`, by);
    const destinations = new Set<string>();
    if (spec?.destination?.namespace) {
      destinations.add(spec.destination.namespace);
    }
    for (const { group = '', kind = '', namespace: of = '', name: resource = '' } of status?.resources ?? []) {
      if (this.#listed.add(keyOf(group, kind, of, resource), by)) {
        isNews = true;
      }
      if (of !== '') {
        destinations.add(of);
      }
    }
    for (const destination of destinations) {
      if (this.#destinations.add(destination, by)) {
        isNews = true;
      }
    }
    // Cached verdicts about owners may be outdated.
    if (isNews) {
      this.#verdicts.clear();
    }
  }
}

interface Subject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** The object that an Event (of either API) refers to; undefined for other objects. */
function subjectOf(object: KubeObject): Subject | undefined {
  if (object.kind !== 'Event') {
    return undefined;
  }
  if (object.apiVersion !== 'v1' && groupOf(object.apiVersion ?? '') !== 'events.k8s.io') {
    return undefined;
  }
  const { involvedObject, regarding } = object as { involvedObject?: Partial<Subject>; regarding?: Partial<Subject> };
  const { apiVersion = 'v1', kind = '', namespace = '', name = '', uid = '' } = involvedObject ?? regarding ?? {};
  return kind === '' || name === '' ? undefined : { apiVersion, kind, namespace, name, uid };
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? '' : apiVersion.slice(0, slash);
}

function keyOf(group: string, kind: string, namespace: string, name: string): string {
  return `${group}/${kind}/${namespace}/${name}`;
}
