import { gzipSync } from 'node:zlib';

/** An Application that a key of Argo CD's cache is about. */
export interface KeyedApplication {
  /** Empty for Argo CD's own namespace. */
  readonly namespace: string;
  readonly name: string;
  readonly kind: 'resources-tree' | 'managed-resources';
}

/** Names of a namespace and of an Application have at most 63 and 253 characters. */
const longestKey = 1_024;
/**
 * Most parts of a large tree. Argo CD reads as many as the first part names, and an agent could name any number. With the 1,000
 * resources that Argo CD suggests for each part these are a million.
 */
const mostParts = 1_000;

/**
 * The Application whose tree or resources a key or channel is about: `app|<kind>|<instance>|...`, with a field more for a part of
 * a large tree. Undefined for every other key.
 */
export function applicationOf(key: string): KeyedApplication | undefined {
  if (key.length > longestKey) {
    return undefined;
  }
  const fields = key.split('|');
  const [prefix, kind, instance = ''] = fields;
  if (prefix !== 'app' || (kind !== 'resources-tree' && kind !== 'managed-resources')) {
    return undefined;
  }
  if (fields.length < 4 || fields.length > 5 || instance === '') {
    return undefined;
  }
  const split = instance.indexOf('_');
  if (split < 0) {
    return { namespace: '', name: instance, kind };
  }
  return { namespace: instance.slice(0, split), name: instance.slice(split + 1), kind };
}

/** A key of the hub's Argo CD without the text that it puts before each (3.6); others stay as they are. */
export function unprefixed(key: string, prefix: string): string {
  return key.startsWith(prefix) ? key.slice(prefix.length) : key;
}

/** What stands before a key that would be about an Application; undefined for every other key. Such a key is not known here. */
export function unknownPrefix(key: string): string | undefined {
  const at = key.length > longestKey ? -1 : key.search(/app\|(resources-tree|managed-resources)\|/);
  return at > 0 ? key.slice(0, at) : undefined;
}

/** Why a key of an agent is not served; undefined when it is. */
export function keyFault(key: string): string | undefined {
  const fields = key.split('|');
  if (fields.length === 5 && !(/^\d+$/.test(fields[3] ?? '') && Number(fields[3]) < mostParts)) {
    return `part ${fields[3]?.slice(0, 20)} of a resource tree is not served: a tree may have ${mostParts} parts`;
  }
  return undefined;
}

/** The value for an unknown tree or unknown resources: an empty one, compressed if the key requires it. */
export function emptyValue(key: string): Buffer {
  const json = Buffer.from(applicationOf(key)?.kind === 'managed-resources' ? '[]\n' : '{}\n');
  return key.endsWith('.gz') ? gzipSync(json) : json;
}
