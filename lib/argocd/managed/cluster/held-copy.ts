import type { ObjectRef } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import { specChecksum } from '../../checksums.ts';
import { copiedFrom } from '../../copied-from.ts';
import { annotations } from '../../names.ts';
import type { RequestUpdate } from '../../peer/messages.ts';
import { managedCopyDigest } from '../copy.ts';

/** Reports a copy to the principal, or that there is none, so that the principal sends the differences. */
export function heldCopy(
  ref: ObjectRef,
  copy: Application | undefined,
  options: {
    /** The hub's namespace of it, as the principal calls it. */
    readonly hubNamespace: string;
    /** Whether it is known to be what the principal sent: nothing of that is still being written. */
    readonly isSettled: boolean;
  },
): RequestUpdate {
  const uid = copiedFrom(copy);
  const reported = { kind: 'Application', name: ref.name, namespace: options.hubNamespace, uid } as const;
  if (copy === undefined || uid === '') {
    return { ...reported, checksum: null, digest: '' };
  }
  // An empty one is no digest of anything: the principal sends the state.
  const isSettled = copy.metadata.deletionTimestamp === undefined && options.isSettled;
  const principalUid = copy.metadata.annotations?.[annotations.principalUid];
  return {
    ...reported,
    checksum: specChecksum(copy.spec),
    digest: isSettled ? managedCopyDigest(copy) : '',
    ...(principalUid === undefined ? {} : { principalUid }),
  };
}
