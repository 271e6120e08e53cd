import type { ObjectRef } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { specChecksum } from '../../checksums.ts';
import { copiedFrom } from '../../copied-from.ts';
import type { RequestUpdate } from '../../peer/messages.ts';
import { managedCopyDigest } from '../copy.ts';

/** Tells the principal what a copy looks like, or that there is none, so that it says what should be different. */
export function heldCopy(
  ref: ObjectRef,
  copy: Application | undefined,
  options: {
    /** The hub's namespace of it, as the principal calls it. */
    readonly hubNamespace: string;
    /** Whether something is about to be written that the principal said before. */
    readonly isUnderWay: boolean;
  },
): RequestUpdate {
  const uid = copiedFrom(copy);
  const reported = { kind: 'Application', name: ref.name, namespace: options.hubNamespace, uid } as const;
  if (copy === undefined || uid === '') {
    return { ...reported, checksum: null, digest: '' };
  }
  // Empty, which is no digest of anything, lets the principal say what it wants.
  const settledCopy = copy.metadata.deletionTimestamp === undefined && !options.isUnderWay;
  return { ...reported, checksum: specChecksum(copy.spec), digest: settledCopy ? managedCopyDigest(copy) : '' };
}
