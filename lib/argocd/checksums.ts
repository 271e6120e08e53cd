import { hash } from 'node:crypto';
import { canonicalJson } from '../base/index.ts';

/**
 * The checksum that resync messages carry for an object: base64 SHA-256 over Go's JSON of `spec` (Secrets and
 * ConfigMaps: `data`) without its top-level key `destination`, which differs between the clusters.
 */
export function specChecksum(spec: Readonly<Record<string, unknown>>): string {
  const { destination: _, ...rest } = spec;
  return hash('sha256', canonicalJson(rest), 'base64');
}

/** One object of the list that a `request-synced-resource-list` sums up. */
export interface ListedResource {
  readonly kind: string;
  readonly name: string;
  /** The source's UID. */
  readonly uid: string;
}

/** The checksum of a set of objects as resync messages carry it; null for the empty set. */
export function resourceListChecksum(resources: Iterable<ListedResource>): string | null {
  const lines = Array.from(resources, ({ kind, name, uid }) => Buffer.from(`${kind}/${name}/${uid}`));
  return lines.length === 0 ? null : hash('sha256', Buffer.concat(lines.sort(Buffer.compare)), 'base64');
}
