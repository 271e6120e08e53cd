import { wellKnown } from '../base/index.ts';
import type { ResourcePath } from './paths.ts';

/** A request to a cluster's API server, from method and path. */
export interface LiveAsk {
  /** In capitals. */
  readonly method: string;
  readonly path: ResourcePath;
}

/**
 * What must hold for a request to be carried out:
 * - `visible`: the object belongs to an Application, is a namespace that one deploys into, or an Event about any of these;
 * - `managed`: the object belongs to an Application;
 * - `items`: only the visible items of a collection are shown;
 * - `destination`: an Application may create objects there;
 * - `nothing`: the request concerns no object;
 * - a refusal, with its reason.
 */
export type Requirement = 'visible' | 'managed' | 'items' | 'destination' | 'nothing' | { readonly refused: string };

/** Subresources that tunnel through the API server. Its authorization does not distinguish their targets. */
const tunnels: ReadonlySet<string> = new Set(['proxy', 'portforward', 'attach', 'exec']);
/** Kinds whose creation is a query about the caller, here the agent: its rights and its identity. */
const questions: Readonly<Record<string, ReadonlySet<string>>> = {
  'authorization.k8s.io': new Set(['selfsubjectaccessreviews', 'selfsubjectrulesreviews']),
  'authentication.k8s.io': new Set(['selfsubjectreviews']),
};

/**
 * What must hold for a request, in every mode and mapping. At least as strict as argocd-agent's agent for objects that are read,
 * changed or deleted; stricter for what is created (which it does not look at) and for credentials. Whether a GET watches does not
 * matter: the API server does not watch a single object.
 */
export function requirementOf({ method, path }: LiveAsk): Requirement {
  const { group, name, subresource, resource } = path;
  if (tunnels.has(subresource)) {
    return { refused: `${resource}/${subresource} is not served by the resource proxy` };
  }
  if (resource === 'serviceaccounts' && subresource === 'token') {
    return { refused: 'tokens of service accounts are not handed out through the resource proxy' };
  }
  switch (method) {
    case 'GET':
      return name === '' ? 'items' : 'visible';
    case 'POST':
      if (name !== '') {
        return 'managed';
      }
      return questions[group]?.has(resource) ? 'nothing' : 'destination';
    case 'PUT':
    case 'PATCH':
      if (name === '') {
        return { refused: `${method} needs the name of an object` };
      }
      return 'managed';
    case 'DELETE':
      if (name === '') {
        return { refused: 'collections are not deleted through the resource proxy; delete objects one by one' };
      }
      return 'managed';
    default:
      return { refused: `${method} is not served by the resource proxy` };
  }
}

/** Whether the query of a request for a collection makes it a watch. */
export function asksToWatch(query: URLSearchParams): boolean {
  return isOn(query.get('watch'));
}

/** Whether a request for the log of a pod follows it. */
export function asksToFollow({ resource, subresource }: ResourcePath, query: URLSearchParams): boolean {
  return resource === 'pods' && subresource === 'log' && isOn(query.get('follow'));
}

/** The API server takes every value but these for yes. */
function isOn(value: string | null): boolean {
  return value !== null && !/^(0|false)$/i.test(value);
}

/**
 * How Argo CD marks the objects that it manages: `application.resourceTrackingMethod`, `application.instanceLabelKey` and
 * `installationID` of `argocd-cm`.
 */
export interface Tracking {
  readonly method: 'annotation' | 'annotation+label' | 'label';
  readonly labelKey: string;
  /** Tells its objects from those of another Argo CD that has Applications of the same names. */
  readonly installationId: string;
}

/** Argo CD's defaults when `argocd-cm` sets nothing. */
export const defaultTracking: Tracking = {
  method: 'annotation',
  labelKey: 'app.kubernetes.io/instance',
  installationId: '',
};

/**
 * Reads `argocd-cm`.
 * @throws RangeError that names a method that Argo CD does not know
 */
export function trackingOf(data: Readonly<Record<string, string>> | undefined): Tracking {
  const method = data?.['application.resourceTrackingMethod'] || defaultTracking.method;
  if (method !== 'annotation' && method !== 'annotation+label' && method !== 'label') {
    throw new RangeError(
      `ConfigMap argocd-cm: application.resourceTrackingMethod must be annotation, annotation+label or label, not ${JSON.stringify(method)}`,
    );
  }
  return {
    method,
    labelKey: data?.['application.instanceLabelKey'] || defaultTracking.labelKey,
    installationId: data?.installationID ?? '',
  };
}

interface Tracked {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

const installationAnnotation = 'argocd.argoproj.io/installation-id';

/**
 * The instance name of the Application that an object is marked with: its name, or `<namespace>_<name>` for one outside of Argo
 * CD's own namespace. Undefined for an object without mark, with one that is not complete, or with that of another Argo CD. The
 * rule is Argo CD's (`GetAppName`).
 */
export function instanceOf(object: Tracked, { method, labelKey, installationId }: Tracking): string | undefined {
  const { labels, annotations } = object.metadata ?? {};
  if (method === 'label') {
    return labels?.[labelKey] || undefined;
  }
  if ((annotations?.[installationAnnotation] ?? '') !== installationId) {
    return undefined;
  }
  // <instance>:<group>/<kind>:<namespace>/<name>, where the name may have colons.
  const id = /^([^:]*):[^:/]*\/[^:/]*:[^/]*\/[^/]*$/s.exec(annotations?.[wellKnown.trackingAnnotation] ?? '');
  return id?.[1] || undefined;
}
