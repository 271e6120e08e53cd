import type { InformerHandler } from '../cache/informer.ts';
import { type KubeObject, keyOf } from '../types.ts';

/**
 * The state that an informer's notifications add up to. Throws at one that contradicts the earlier ones:
 * an object added twice, an update whose old state was never reported, a deletion of an unknown object.
 */
export class Mirror<T extends KubeObject> implements InformerHandler<T> {
  readonly objects = new Map<string, T>();
  readonly complaints: string[] = [];
  readonly counts = { added: 0, updated: 0, deleted: 0 };

  added = (object: T): void => {
    this.counts.added++;
    const key = keyOf(object);
    if (this.objects.has(key)) {
      this.complaints.push(`${key} added twice`);
    }
    this.objects.set(key, object);
  };

  updated = (old: T, now: T): void => {
    this.counts.updated++;
    const key = keyOf(now);
    if (this.objects.get(key) !== old) {
      this.complaints.push(`${key} updated from a state that was not reported`);
    }
    if (old.metadata.resourceVersion === now.metadata.resourceVersion) {
      this.complaints.push(`${key} did not change`);
    }
    if (old.metadata.uid !== now.metadata.uid) {
      this.complaints.push(`${key} is another object now`);
    }
    this.objects.set(key, now);
  };

  deleted = (last: T): void => {
    this.counts.deleted++;
    const key = keyOf(last);
    if (this.objects.get(key)?.metadata.uid !== last.metadata.uid) {
      this.complaints.push(`${key} deleted, but not there`);
    }
    this.objects.delete(key);
  };

  /** Key → uid and resourceVersion, sorted: to be compared with the same of a list. */
  get versions(): string[] {
    return versionsOf(this.objects.values());
  }
}

/** One line per object: key, uid and resourceVersion. */
export function versionsOf(objects: Iterable<KubeObject>): string[] {
  return [...objects].map((o) => `${keyOf(o)} ${o.metadata.uid} ${o.metadata.resourceVersion}`).sort();
}
