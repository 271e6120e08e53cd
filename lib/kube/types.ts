/** A reference from a dependent object to the object that owns it, as the garbage collector reads it. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** The metadata of a Kubernetes object: the fields that this project reads or writes. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  creationTimestamp?: string;
  managedFields?: unknown[];
  generateName?: string;
}

/** What every Kubernetes object has. Objects read through this library always carry apiVersion and kind. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** Names one object of a kind. `namespace` is left out for cluster-scoped kinds. */
export interface ObjectKey {
  namespace?: string | undefined;
  name: string;
}

/** One API kind: everything that is needed to build its URLs. `T` is the type of its objects. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  /** API group; empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** The name in URLs, `secrets` for Secret. */
  readonly plural: string;
  readonly namespaced: boolean;
  /** Never set: it only lets TypeScript infer `T` from a resource type. */
  readonly example?: T;
}

/** Declares an API kind. */
export function resourceType<T extends KubeObject>(type: {
  group: string;
  version: string;
  kind: string;
  plural: string;
  namespaced: boolean;
}): ResourceType<T> {
  return Object.freeze({ ...type });
}

/** `v1` for the core group, `group/version` otherwise. */
export function apiVersionOf(type: Pick<ResourceType, 'group' | 'version'>): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`;
}

/** The key string of an object or object key: `namespace/name`, or `name` when cluster-scoped. */
export function keyOf(object: KubeObject | ObjectKey): string {
  const { namespace, name } = 'metadata' in object ? object.metadata : object;
  return namespace ? `${namespace}/${name}` : name;
}

/** The inverse of `keyOf`. */
export function parseKey(key: string): ObjectKey {
  const slash = key.indexOf('/');
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** A status condition, as in `metav1.Condition`. */
export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  /** RFC 3339; changes only when `status` does. */
  lastTransitionTime: string;
  observedGeneration?: number;
}
