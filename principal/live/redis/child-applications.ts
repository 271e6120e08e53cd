import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { applicationOf } from './keys.ts';

/** What a value that names an Application contains, as Go writes JSON. */
export const applicationText = Buffer.from('"kind":"Application"');

/** Larger values pass as they are. A resource in a tree has about 500 bytes. */
const mostBytes = 16 * 1024 * 1024;

/**
 * Where Go writes the namespace of an Application: in nodes, parents and compared resources alike. A text within a text has no quote
 * without a backslash before it, and never matches.
 */
const namespaceOfApplication =
  /("group":"argoproj\.io",(?:"version":"[a-z0-9]{1,63}",)?"kind":"Application","namespace":)"[-a-z0-9]{1,63}"/g;

/**
 * A value of an autonomous agent's cache as the hub must see it: the child Applications in a tree, and among the compared resources, are
 * where their mirrors are, as in `status.resources` of the mirror. Argo CD's UI finds their states and pages by that. Every other byte
 * stays. Call it only for a value that has {@link applicationText}.
 */
export async function withMirroredChildren(key: string, value: Buffer, namespace: string): Promise<Buffer> {
  if (applicationOf(key) === undefined) {
    return value;
  }
  const isPacked = key.endsWith('.gz');
  let content = value;
  if (isPacked) {
    try {
      content = await promisify(gunzip)(value, { maxOutputLength: mostBytes });
    } catch {
      return value;
    }
  } else if (value.length > mostBytes) {
    return value;
  }
  // One character for each byte, so that all come back as they were.
  const text = content.toString('latin1');
  const changed = Buffer.from(text.replace(namespaceOfApplication, `$1"${namespace}"`), 'latin1');
  return changed.equals(content) ? value : isPacked ? promisify(gzip)(changed) : changed;
}
