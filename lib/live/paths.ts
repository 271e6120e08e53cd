import { isDnsLabel } from '../base/index.ts';

/** The parts of a path of the Kubernetes API; a missing part is empty. */
export interface ResourcePath {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** Empty for cluster-scoped resources and for all namespaces. */
  readonly namespace: string;
  /** The plural name of a kind. */
  readonly resource: string;
  /** Empty for a collection. */
  readonly name: string;
  readonly subresource: string;
}

const versionPattern = /^v[a-z0-9]{1,62}$/;
const groupPattern = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const resourcePattern = /^[a-z][-a-z0-9]{0,62}$/;
/** Names of most kinds are DNS names; those of RBAC's and of a Service's port hold `:` as well, some kinds' anything but these. */
const namePattern = /^[^/%\\\p{C}\p{Z}]{1,253}$/u;
/** Subresources of a Namespace; every other segment in this place is a collection in the namespace. */
const namespaceSubresources: ReadonlySet<string> = new Set(['status', 'finalize']);

/**
 * Reads the path of a request for a resource or a collection, as it stands in the request line, without the query. Undefined for
 * every other path, and for one that could mean different things to different readers: empty or dot segments, and encoded
 * characters other than those that a name may hold.
 */
export function parseResourcePath(path: string): ResourcePath | undefined {
  const segments = decoded(path);
  if (segments === undefined) {
    return undefined;
  }
  const [root, ...rest] = segments;
  let group = '';
  if (root === 'apis') {
    group = rest.shift() ?? '';
  } else if (root !== 'api') {
    return undefined;
  }
  const version = rest.shift() ?? '';
  if (!versionPattern.test(version) || (root === 'apis' && !groupPattern.test(group))) {
    return undefined;
  }
  let namespace = '';
  const [first, second = '', third] = rest;
  if (first === 'namespaces' && third !== undefined && !namespaceSubresources.has(third)) {
    namespace = second;
    if (!isDnsLabel(namespace)) {
      return undefined;
    }
    rest.splice(0, 2);
  }
  const [resource = '', name = '', subresource = '', ...more] = rest;
  // The API server's older way to watch, where another kind's name stands in the place of an object's.
  if (more.length > 0 || resource === 'watch' || !resourcePattern.test(resource)) {
    return undefined;
  }
  if ((name !== '' && !isName(name)) || (subresource !== '' && !resourcePattern.test(subresource))) {
    return undefined;
  }
  return { group, version, namespace, resource, name, subresource };
}

/**
 * The path of a resource or a collection.
 * @throws RangeError for a part that could lead elsewhere
 */
export function resourcePathOf(parts: ResourcePath): string {
  const { group, version, namespace, resource, name, subresource } = parts;
  const path = [
    group === '' ? '/api' : `/apis/${group}`,
    version,
    ...(namespace === '' ? [] : ['namespaces', namespace]),
    resource,
    ...(name === '' ? [] : [encodeURIComponent(name).replaceAll('%3A', ':')]),
    ...(subresource === '' ? [] : [subresource]),
  ].join('/');
  const read = parseResourcePath(path);
  if (read === undefined || !isSame(read, parts)) {
    throw new RangeError('the request names no resource');
  }
  return path;
}

/**
 * Whether a path is a discovery path instead of a resource: lists of groups, versions and kinds, the server's version and
 * schemas. These responses contain no objects.
 */
export function isDiscoveryPath(path: string): boolean {
  const [root, group, version, ...more] = decoded(path.replace(/(?<=.)\/$/, '')) ?? [];
  if (more.some((segment) => !namePattern.test(segment))) {
    return false;
  }
  switch (root) {
    case 'version':
      return group === undefined;
    case 'api':
      return version === undefined && (group === undefined || versionPattern.test(group));
    case 'apis':
      if (more.length > 0 || (version !== undefined && !versionPattern.test(version))) {
        return false;
      }
      return group === undefined || groupPattern.test(group);
    case 'openapi':
      if (group === 'v2') {
        return version === undefined;
      }
      return group === 'v3' && more.length <= 2;
    default:
      return false;
  }
}

/** The segments of an absolute path; undefined when one is empty, goes elsewhere or hides something. */
function decoded(path: string): string[] | undefined {
  const [start, ...segments] = path.split('/');
  if (start !== '' || segments.length === 0) {
    return undefined;
  }
  const result: string[] = [];
  for (const segment of segments) {
    let text: string;
    try {
      text = decodeURIComponent(segment);
    } catch {
      return undefined;
    }
    if (text === '' || text === '.' || text === '..' || /[/%\\\p{C}]/u.test(text)) {
      return undefined;
    }
    result.push(text);
  }
  return result;
}

function isName(name: string): boolean {
  return namePattern.test(name) && name !== '.' && name !== '..';
}

function isSame(a: ResourcePath, b: ResourcePath): boolean {
  return (Object.keys(a) as (keyof ResourcePath)[]).every((key) => a[key] === b[key]);
}
