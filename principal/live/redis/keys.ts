import { gzipSync } from 'node:zlib';

/** An Application that a key of Argo CD's cache is about. */
export interface KeyedApplication {
  /** Empty for Argo CD's own namespace. */
  readonly namespace: string;
  readonly name: string;
  readonly kind: 'resources-tree' | 'managed-resources';
}

/**
 * The Application whose tree or resources a key or channel is about: `app|<kind>|<instance>|...`, with a field more for a part of
 * a large tree. Undefined for every other key.
 */
export function applicationOf(key: string): KeyedApplication | undefined {
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

/** The value for an unknown tree or unknown resources: an empty one, compressed if the key requires it. */
export function emptyValue(key: string): Buffer {
  const json = Buffer.from(applicationOf(key)?.kind === 'managed-resources' ? '[]\n' : '{}\n');
  return key.endsWith('.gz') ? gzipSync(json) : json;
}
