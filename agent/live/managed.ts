import { isForbidden, isNotFound, type KubeObject, type OwnerReference } from '../../lib/kube/index.ts';
import { instanceOf, type Tracking } from '../../lib/live/index.ts';

/** An Application of this cluster, as far as it says what belongs to it. */
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
  /** Names of the StatefulSets of a namespace. */
  statefulSets(namespace: string, signal: AbortSignal): Promise<readonly string[]>;
}

/** Whether an object belongs to an Application. */
export interface Verdict {
  readonly isManaged: boolean;
  /** What kept us from finding out more: an owner that the agent may not read. */
  readonly hindrance?: string;
}

/** Longer chains of owners do not exist outside of attacks; Argo CD's own trees have five or six levels. */
const mostLevels = 32;
/** What was found out about an owner counts so long: the objects of a list mostly have few owners. */
const rememberedMs = 10_000;
const mostRemembered = 10_000;

const no: Verdict = { isManaged: false };
const yes: Verdict = { isManaged: true };

/**
 * Knows what belongs to the Applications of this cluster: what Argo CD has marked or lists as theirs, their destination namespaces,
 * and whatever is owned by these over any number of levels, by cluster-scoped owners too. Owners that Kubernetes does not name are
 * inferred as Argo CD does: the OperatorGroup of a ClusterServiceVersion, the StatefulSet of a PersistentVolumeClaim.
 */
export class ManagedObjects {
  readonly #options: ManagedObjectsOptions;
  readonly #instances = new Counted();
  readonly #listed = new Counted();
  readonly #destinations = new Counted();
  readonly #verdicts = new Map<string, { readonly until: number; readonly verdict: Promise<Verdict> }>();

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

  /** @throws what reading an owner throws, except that it does not exist or may not be read */
  verdictOn(object: KubeObject, signal: AbortSignal): Promise<Verdict> {
    return this.#verdictOn(object, [], signal);
  }

  async #verdictOn(object: KubeObject, above: readonly string[], signal: AbortSignal): Promise<Verdict> {
    if (this.#isOwn(object)) return yes;
    const about = subjectOf(object);
    if (about !== undefined) return this.#verdictOnSubject(about, above, signal);
    const { namespace = '', ownerReferences = [] } = object.metadata;
    let hindrance: string | undefined;
    for (const owner of [...ownerReferences, ...(await this.#inferredOwners(object, signal))]) {
      const verdict = await this.#verdictOnOwner(owner, namespace, above, signal);
      if (verdict.isManaged) return verdict;
      hindrance ??= verdict.hindrance;
    }
    return hindrance === undefined ? no : { isManaged: false, hindrance };
  }

  #isOwn(object: KubeObject): boolean {
    const instance = instanceOf(object, this.#options.tracking());
    if (instance !== undefined && this.#instances.has(instance)) return true;
    const { apiVersion = '', kind = '', metadata } = object;
    const { namespace = '', name } = metadata;
    const group = groupOf(apiVersion);
    if (this.#listed.has(keyOf(group, kind, namespace, name))) return true;
    return group === '' && kind === 'Namespace' && this.#destinations.has(name);
  }

  /** An Event belongs to whom its object belongs; one about an object that is gone to its namespace. */
  async #verdictOnSubject(about: Subject, above: readonly string[], signal: AbortSignal): Promise<Verdict> {
    if (this.#listed.has(keyOf(groupOf(about.apiVersion), about.kind, about.namespace, about.name))) return yes;
    const id = `${about.apiVersion}/${about.kind}/${about.namespace}/${about.name}/${about.uid}`;
    return this.#remembered(id, async () => {
      const found = await this.#read(about, signal);
      if ('hindrance' in found) return { isManaged: false, hindrance: found.hindrance };
      if (found.object === undefined) return { isManaged: this.#destinations.has(about.namespace) };
      return above.length < mostLevels ? this.#verdictOn(found.object, [...above, id], signal) : no;
    });
  }

  #verdictOnOwner(
    owner: Pick<OwnerReference, 'apiVersion' | 'kind' | 'name'> & { readonly uid?: string },
    namespace: string,
    above: readonly string[],
    signal: AbortSignal,
  ): Promise<Verdict> {
    const { apiVersion, kind, name, uid = '' } = owner;
    const id = `${apiVersion}/${kind}/${namespace}/${name}/${uid}`;
    if (above.includes(id) || above.length >= mostLevels) return Promise.resolve(no);
    const look = async (): Promise<Verdict> => {
      const found = await this.#read({ apiVersion, kind, namespace, name }, signal);
      if ('hindrance' in found) return { isManaged: false, hindrance: found.hindrance };
      // Another object that took the name of a deleted owner owns nothing.
      if (found.object === undefined || (uid !== '' && found.object.metadata.uid !== uid)) return no;
      return this.#verdictOn(found.object, [...above, id], signal);
    };
    // Within a circle of owners whoever waits for a remembered verdict could wait for itself.
    return above.length === 0 ? this.#remembered(id, look) : look();
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
      return { object: await this.#options.read(reference, signal) };
    } catch (error) {
      if (isNotFound(error)) return { object: undefined };
      if (!isForbidden(error)) throw error;
      const { kind, namespace, name } = reference;
      return { hindrance: `the agent may not read ${kind} ${namespace === '' ? '' : `${namespace}/`}${name}` };
    }
  }

  #remembered(id: string, look: () => Promise<Verdict>): Promise<Verdict> {
    const now = performance.now();
    const known = this.#verdicts.get(id);
    if (known !== undefined && known.until > now) return known.verdict;
    const verdict = look();
    // Inserted anew, so that the oldest are at the front.
    this.#verdicts.delete(id);
    this.#verdicts.set(id, { until: now + rememberedMs, verdict });
    verdict.catch(() => this.#verdicts.delete(id));
    for (const oldest of this.#verdicts.keys()) {
      if (this.#verdicts.size <= mostRemembered) break;
      this.#verdicts.delete(oldest);
    }
    return verdict;
  }

  async #inferredOwners(
    object: KubeObject,
    signal: AbortSignal,
  ): Promise<{ readonly apiVersion: string; readonly kind: string; readonly name: string }[]> {
    const { apiVersion = '', kind, metadata } = object;
    const { namespace = '', name, annotations } = metadata;
    if (kind === 'ClusterServiceVersion' && groupOf(apiVersion) === 'operators.coreos.com') {
      const operatorGroup = annotations?.['olm.operatorGroup'];
      if (operatorGroup) return [{ apiVersion: 'operators.coreos.com/v1', kind: 'OperatorGroup', name: operatorGroup }];
    }
    if (kind !== 'PersistentVolumeClaim' || apiVersion !== 'v1') return [];
    // <template>-<StatefulSet>-<ordinal>
    const stem = /^(.+)-\d+$/.exec(name)?.[1];
    if (stem === undefined) return [];
    const sets = await this.#options.statefulSets(namespace, signal);
    return sets
      .filter((set) => stem.endsWith(`-${set}`))
      .map((set) => ({ apiVersion: 'apps/v1', kind: 'StatefulSet', name: set }));
  }

  #count({ metadata, spec, status }: OwningApplication, by: 1 | -1): void {
    const { namespace = '', name } = metadata;
    this.#instances.add(namespace === this.#options.namespace ? name : `${namespace}_${name}`, by);
    const destinations = new Set<string>();
    if (spec?.destination?.namespace) destinations.add(spec.destination.namespace);
    for (const { group = '', kind = '', namespace: of = '', name: resource = '' } of status?.resources ?? []) {
      this.#listed.add(keyOf(group, kind, of, resource), by);
      if (of !== '') destinations.add(of);
    }
    for (const destination of destinations) this.#destinations.add(destination, by);
  }
}

/** Texts with how often each was added. */
class Counted {
  readonly #counts = new Map<string, number>();

  has(text: string): boolean {
    return this.#counts.has(text);
  }

  add(text: string, by: 1 | -1): void {
    const count = (this.#counts.get(text) ?? 0) + by;
    if (count > 0) this.#counts.set(text, count);
    else this.#counts.delete(text);
  }
}

interface Subject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** What an Event (of either API) is about; undefined for other objects. */
function subjectOf(object: KubeObject): Subject | undefined {
  if (object.kind !== 'Event') return undefined;
  if (object.apiVersion !== 'v1' && groupOf(object.apiVersion ?? '') !== 'events.k8s.io') return undefined;
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
