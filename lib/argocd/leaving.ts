import { applyMergePatch, isEqual, type MergePatch } from '../base/index.ts';
import { annotations } from './names.ts';
import type { Metadata } from './object.ts';
import type { Plan } from './writing/plan.ts';

/*
 * What becomes of a copy whose source leaves. Deleted, moved to another cluster, kept out by a label, not selected any more, its
 * namespace not allowed, released: all of them come here, in whatever order an agent learns of them.
 *
 * 1. A workload goes only if the last state of its source asks for it, by Argo CD's finalizer. An object with a finalizer cannot
 *    vanish from the hub without its principal, so what has vanished had none. One that a user releases asks for nothing.
 * 2. What was here before it became a copy is given back as it was, unless somebody deletes its source.
 * 3. What the cluster needs to live is never taken.
 */

/** What a copy has to be like before it goes, and whether it goes. */
export interface Leave {
  /** The finalizers with which it goes. */
  readonly finalizers: readonly string[];
  /** Corrects other fields before that: Argo CD removes what the copy's spec names. */
  readonly correction?: MergePatch | undefined;
  /** It does not go: this makes it an object of the cluster alone. */
  readonly givenBack?: MergePatch | undefined;
}

/** Decides about a copy whose source has left. */
export function planLeave<T extends { readonly metadata: Metadata }>(local: T, leave: Leave): Plan<T> {
  const { uid = '', deletionTimestamp, finalizers: present = [] } = local.metadata;
  const isGoing = deletionTimestamp !== undefined;
  if (leave.givenBack !== undefined && !isGoing) {
    const isDone = applyMergePatch(local, leave.givenBack);
    return isEqual(isDone, local)
      ? { action: 'none' }
      : { action: 'update', reason: 'given-back', patch: leave.givenBack };
  }
  const { finalizers, correction } = leave;
  if (correction !== undefined || !isEqual(present, finalizers)) {
    const metadata = { ...(isEqual(present, finalizers) ? {} : { finalizers }), uid };
    return { action: 'update', reason: 'changed', patch: { ...correction, metadata } };
  }
  return isGoing ? { action: 'wait' } : { action: 'delete', uid, propagation: 'Background' };
}

/** Whether a deletion says that the source is still there. */
export function isStillThere({ metadata }: { readonly metadata: Metadata }): boolean {
  return metadata.annotations?.[annotations.stillThere] === 'true';
}

/**
 * Whether Argo CD deletes what an Application deployed because of this finalizer, when the Application is deleted. Which of them
 * it is decides how (`isPropagationPolicyFinalizer` of Argo CD).
 */
export function deletesWorkload(finalizer: string): boolean {
  return /^resources-finalizer\.argocd\.argoproj\.io(\/|$)/.test(finalizer);
}

/** Whether a user lets the Application go without what it deployed. */
export function isReleased({ metadata }: { readonly metadata: Metadata }): boolean {
  return metadata.annotations?.[annotations.release] === 'true';
}

/** Whether Argo CD is to delete what this Application deployed. */
export function asksForWorkload(source: { readonly metadata: Metadata }): boolean {
  return !isReleased(source) && (source.metadata.finalizers ?? []).some(deletesWorkload);
}

/**
 * An Application with the finalizers by which it asks. One that is released has none, from then on: an agent may learn of its
 * deletion before the principal has taken them off.
 */
export function asAsking<T extends { readonly metadata: Metadata }>(source: T): T {
  const { finalizers } = source.metadata;
  return finalizers !== undefined && isReleased(source)
    ? { ...source, metadata: { ...source.metadata, finalizers: finalizers.filter((one) => !deletesWorkload(one)) } }
    : source;
}

/**
 * The finalizers with which the copy of an Application goes. The workload goes only if the source's last state and the copy
 * both ask for it, then as the source says. Those of the cluster itself stay; of others, who was to remove them on the hub
 * will not do it here.
 * @param last finalizers of the source's last state
 * @param isOfCluster whether a finalizer is the cluster's own
 */
export function finalizersOfLeave(
  { metadata }: { readonly metadata: Metadata },
  last: readonly string[],
  isOfCluster: (finalizer: string) => boolean,
): string[] {
  const present = metadata.finalizers ?? [];
  const isAsked = present.some(deletesWorkload) && last.some(deletesWorkload);
  // Nobody can add one to an object that is being deleted.
  const asked = !isAsked ? [] : (metadata.deletionTimestamp === undefined ? last : present).filter(deletesWorkload);
  const kept = present.filter((one) => asked.includes(one) || isOfCluster(one));
  return [...kept, ...asked.filter((one) => !kept.includes(one))];
}
