import { isDeepStrictEqual } from 'node:util';
import { type Condition, hasFinalizer, type KubeClient, setCondition } from '../../lib/kube/index.ts';
import { fieldManager, finalizer } from '../hub/names.ts';
import { type ManagedClusterAddOn, managedClusterAddOns } from '../hub/resources.ts';
import type { CleanUpState } from '../render/cleanup.ts';
import type { Verdict } from './cluster-health.ts';

/** How far the departure of a cluster is. */
export interface Departure {
  /** What must happen next, for users to read. */
  readonly waitingFor: string;
  /** When to look again although nothing changed, in milliseconds. */
  readonly lookAgainMs?: number;
  /** How the clean-up Job fares, once it is there. */
  readonly cleanUp?: CleanUpState;
}

/** Condition of an add-on that says whether its pre-delete hook is done (OCM's). */
export const hookCondition = 'HookManifestCompleted';

/** Writes on the add-on how far the departure is, if that changed. */
export async function sayDetaching(
  { client, signal }: { client: KubeClient; signal: AbortSignal },
  addOn: ManagedClusterAddOn | undefined,
  { waitingFor, cleanUp }: Departure,
  now: Date,
): Promise<void> {
  if (addOn === undefined || (addOn.metadata.deletionTimestamp && !hasFinalizer(addOn, finalizer))) {
    return;
  }
  const verdicts: Verdict[] = [
    { type: 'Progressing', status: 'True', reason: 'Detaching', message: `the add-on is being removed: ${waitingFor}` },
  ];
  if (cleanUp !== undefined) {
    const isDone = cleanUp === 'complete';
    verdicts.push({
      type: hookCondition,
      status: isDone ? 'True' : 'False',
      reason: isDone ? 'HookManifestIsCompleted' : 'HookManifestIsNotCompleted',
      message: isDone ? 'the clean-up Job is complete' : waitingFor,
    });
  }
  const before = addOn.status?.conditions ?? [];
  let conditions: Condition[] = before;
  for (const verdict of verdicts) {
    conditions = setCondition(conditions, verdict, now);
  }
  if (isDeepStrictEqual(conditions, before)) {
    return;
  }
  const { resourceVersion } = addOn.metadata;
  await client.mergePatch(
    managedClusterAddOns,
    addOn.metadata,
    { metadata: { resourceVersion }, status: { conditions } },
    { subresource: 'status', fieldManager, signal },
  );
}
