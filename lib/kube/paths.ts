import { apiVersionOf, type ObjectKey, type ResourceType } from './types.ts';

/** URL path of a kind's API group and version. */
export function groupVersionPath(type: Pick<ResourceType, 'group' | 'version'>): string {
  return type.group === '' ? `/api/${type.version}` : `/apis/${apiVersionOf(type)}`;
}

/** URL path of a kind's collection, in one namespace or all of them. */
export function collectionPath(type: ResourceType, namespace?: string): string {
  const base = groupVersionPath(type);
  if (namespace === undefined || namespace === '') {
    return `${base}/${type.plural}`;
  }
  if (!type.namespaced) {
    throw new TypeError(`${type.kind} is cluster-scoped, but namespace "${namespace}" was given`);
  }
  return `${base}/namespaces/${encodeURIComponent(namespace)}/${type.plural}`;
}

/** URL path of one object or of a subresource of it. Throws TypeError when the key does not fit the kind. */
export function objectPath(type: ResourceType, key: ObjectKey, subresource?: string): string {
  if (!key.name) {
    throw new TypeError(`a ${type.kind} needs a name`);
  }
  if (type.namespaced && !key.namespace) {
    throw new TypeError(`${type.kind} "${key.name}" needs a namespace`);
  }
  const path = `${collectionPath(type, type.namespaced ? key.namespace : undefined)}/${encodeURIComponent(key.name)}`;
  return subresource ? `${path}/${subresource}` : path;
}

/** Appends the parameters that are set. */
export function withQuery(path: string, parameters: Record<string, string | number | boolean | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== '') {
      query.append(name, String(value));
    }
  }
  return query.size === 0 ? path : `${path}?${query}`;
}
