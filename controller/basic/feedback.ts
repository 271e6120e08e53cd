import { findCondition } from '../../lib/kube/index.ts';
import { type PullWork, payloadIn } from './resources.ts';
import { type FeedbackName, feedbackPaths } from './work.ts';

/** What a cluster tells of its copy. Values of another type than expected count as not told. */
export type Feedback = Readonly<Partial<Record<FeedbackName, string>>> & { readonly historyNumber?: number };

/** Reads the feedback of a work; empty while there is none, or while it is that of a copy of another name. */
export function feedbackOf(work: PullWork | undefined): Feedback {
  const payload = payloadIn(work);
  const found = work?.status?.resourceStatus?.manifests?.find(({ resourceMeta }) => resourceMeta.ordinal === 0);
  if (!payload || !found) {
    return {};
  }
  const { name, namespace } = found.resourceMeta;
  if (name !== payload.metadata.name || (namespace ?? '') !== payload.metadata.namespace) {
    return {};
  }
  const told: Record<string, string | number> = {};
  for (const value of found.statusFeedback?.values ?? []) {
    if (!(value.name in feedbackPaths)) {
      continue;
    }
    const { string, integer, boolean } = value.fieldValue ?? {};
    if (value.name === 'historyId') {
      if (typeof integer === 'number') {
        told.historyNumber = integer;
      }
    } else if (typeof string === 'string') {
      told[value.name] = string;
    } else if (typeof boolean === 'boolean') {
      told[value.name] = String(boolean);
    }
  }
  return told as Feedback;
}

/** Whether the work agent has tried to apply a work as it is now, and how that went. */
export function applied(work: PullWork): { readonly tried: boolean; readonly problem?: string } {
  const condition = findCondition(work.status?.conditions, 'Applied');
  const tried = condition !== undefined && (condition.observedGeneration ?? 0) >= (work.metadata.generation ?? 0);
  if (condition?.status !== 'False') {
    return { tried };
  }
  const manifest = work.status?.resourceStatus?.manifests?.find(({ resourceMeta }) => resourceMeta.ordinal === 0);
  const detail = findCondition(manifest?.conditions, 'Applied');
  const why = detail?.status === 'False' ? detail.message : condition.message;
  return { tried, problem: why || condition.reason };
}
