import { isDeepStrictEqual } from 'node:util';
import { type Condition, hasFinalizer, type KubeClient, setCondition } from '../../lib/kube/index.ts';
import {
  type AddOnCondition,
  fieldManager,
  finalizer,
  type ManagedClusterAddOn,
  managedClusterAddOns,
} from '../hub/index.ts';
import type { CleanUpState } from '../render/index.ts';

/** The progress of a detachment. */
export interface DetachProgress {
  /** What the detachment waits for, as a message for users. */
  readonly waitingFor: string;
  /** When to reconcile again without any change, in milliseconds. */
  readonly lookAgainMs?: number;
  /** State of the clean-up Job, once it exists. */
  readonly cleanUp?: CleanUpState;
}

/** OCM's condition of an add-on with a pre-delete hook. */
export const hookCondition = 'HookManifestCompleted';

/**
 * Writes the progress of a detachment into the add-on's status, if it changed. When the agent is gone, its certificate is no
 * longer registered: the clean-up removes the Secret, and OCM's registration agent would request another one, in vain.
 */
export async function writeDetachStatus(
  client: KubeClient,
  addOn: ManagedClusterAddOn | undefined,
  { waitingFor, cleanUp, isAgentGone }: DetachProgress & { readonly isAgentGone: boolean },
  { now, signal }: { readonly now: Date; readonly signal: AbortSignal },
): Promise<void> {
  if (addOn === undefined || (addOn.metadata.deletionTimestamp && !hasFinalizer(addOn, finalizer))) {
    return;
  }
  const changes: AddOnCondition[] = [
    { type: 'Progressing', status: 'True', reason: 'Detaching', message: `the add-on is being removed: ${waitingFor}` },
  ];
  if (cleanUp !== undefined) {
    const isDone = cleanUp === 'complete';
    changes.push({
      type: hookCondition,
      status: isDone ? 'True' : 'False',
      reason: isDone ? 'HookManifestIsCompleted' : 'HookManifestIsNotCompleted',
      message: isDone ? 'the clean-up Job is complete' : waitingFor,
    });
  }
  const before = addOn.status?.conditions ?? [];
  let conditions: Condition[] = before;
  for (const change of changes) {
    conditions = setCondition(conditions, change, now);
  }
  const isRegistered = (addOn.status?.registrations ?? []).length > 0;
  const registrations = isAgentGone && isRegistered ? { registrations: [] } : {};
  if (isDeepStrictEqual(conditions, before) && Object.keys(registrations).length === 0) {
    return;
  }
  const { resourceVersion } = addOn.metadata;
  await client.mergePatch(
    managedClusterAddOns,
    addOn.metadata,
    { metadata: { resourceVersion }, status: { conditions, ...registrations } },
    { subresource: 'status', fieldManager, signal },
  );
}
