import { wellKnown } from '../base/index.ts';
import { annotations } from './names.ts';

interface Marked {
  readonly metadata: {
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
}

/**
 * Argo CD's annotations that name the Application which made an object, and its installation. On the other side they would name
 * another Application of that name, which would take the object for its own, be out of sync, and prune it.
 */
export const ownerAnnotations: readonly string[] = [wellKnown.trackingAnnotation, annotations.installationId];

/**
 * Argo CD's annotations that tell the Application which made an object how to compare, sync and show it, on the side where that is.
 * An Application's own compare options are for itself, too: managed copies have them.
 */
export const ownerOptions: readonly string[] = [
  'argocd.argoproj.io/sync-options',
  'argocd.argoproj.io/compare-options',
  'argocd.argoproj.io/managed-by-url',
];

/** The labels that name an Application as `tracking-id` does: Argo CD's default, and the one that its documentation proposes instead. */
export const ownerLabels: readonly string[] = [wellKnown.instanceLabel, 'argocd.argoproj.io/instance'];

/** Longest value of a label; Argo CD cuts names that are longer. */
const longestLabel = 63;

/** Whether an object has an annotation by which Argo CD takes it for a part of an Application. */
export function hasOwnerAnnotation({ metadata }: Marked): boolean {
  return ownerAnnotations.some((key) => metadata.annotations?.[key] !== undefined);
}

/** Whether an object has an annotation that is for the side of its source alone. */
export function hasForeignAnnotation({ metadata }: Marked): boolean {
  return [...ownerAnnotations, ...ownerOptions].some((key) => metadata.annotations?.[key] !== undefined);
}

/**
 * An object without the marks by which Argo CD on this side takes it for a part of an Application of this side. On the other side
 * they would name another Application of that name, which would take a copy for its own, and prune it. The label is such a mark
 * if it names an Application of this side; else a user set it, and it stays.
 * @param isApplication whether this side has an Application that the label would name so
 */
export function withoutOwner<T extends Marked>(object: T, isApplication: (instance: string) => boolean): T {
  const { annotations: all = {}, labels = {} } = object.metadata;
  const owner = cut(all[wellKnown.trackingAnnotation]?.split(':', 1)[0] ?? '');
  const isOwners = (key: string, value: string) =>
    ownerLabels.includes(key) && (value === owner || isApplication(value));
  const others = Object.entries(labels).filter(([key, value]) => !isOwners(key, value));
  const isOwner = others.length < Object.keys(labels).length;
  if (!isOwner && !hasOwnerAnnotation(object)) {
    return object;
  }
  const kept = Object.entries(all).filter(([key]) => !ownerAnnotations.includes(key));
  return {
    ...object,
    metadata: {
      ...object.metadata,
      ...(object.metadata.annotations && { annotations: Object.fromEntries(kept) }),
      ...(isOwner && { labels: Object.fromEntries(others) }),
    },
  };
}

/** What the Applications of a side are called in labels: by their name, those outside of Argo CD's namespace with it. */
export class InstanceNames {
  readonly #counts = new Map<string, number>();

  /** An Application came or went. */
  count({ namespace, name }: { readonly namespace: string; readonly name: string }, by: 1 | -1): void {
    for (const instance of new Set([cut(name), cut(`${namespace}_${name}`)])) {
      const count = (this.#counts.get(instance) ?? 0) + by;
      if (count > 0) {
        this.#counts.set(instance, count);
      } else {
        this.#counts.delete(instance);
      }
    }
  }

  has(instance: string): boolean {
    return this.#counts.has(instance);
  }
}

/** A name as Argo CD writes it into a label. */
function cut(name: string): string {
  return name.length <= longestLabel ? name : name.slice(0, longestLabel).replace(/[^a-zA-Z0-9]+$/, '');
}
