import { findCondition } from '../../lib/kube/index.ts';
import { type PullWork, payloadIn } from './resources.ts';
import { type FeedbackName, feedbackPaths } from './work.ts';

/** Status feedback of an Application's copy, by feedback name. Values of an unexpected type are missing. */
export type Feedback = Readonly<Partial<Record<FeedbackName, string>>> & { readonly historyNumber?: number };

/** Reads the feedback of a work. Empty when there is none, or when it belongs to a copy with another name. */
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
  const values: Record<string, string | number> = {};
  for (const value of found.statusFeedback?.values ?? []) {
    if (!(value.name in feedbackPaths)) {
      continue;
    }
    const { string, integer, boolean } = value.fieldValue ?? {};
    if (value.name === 'historyId') {
      if (typeof integer === 'number') {
        values.historyNumber = integer;
      }
    } else if (typeof string === 'string') {
      values[value.name] = string;
    } else if (typeof boolean === 'boolean') {
      values[value.name] = String(boolean);
    }
  }
  return values as Feedback;
}

/**
 * Reads the condition Applied of a work.
 * @returns `tried`: whether the work agent has processed the current generation; `problem`: why applying failed
 */
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
