import type { ObjectRef, ResourceKey } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import type { ApplicationMessage } from '../../peer/messages.ts';

/** Something to do for one Application, named as it is called here: what the principal said, or a look at what changed. */
export type CopyWork =
  | { readonly is: 'message'; readonly ref: ObjectRef; readonly message: ApplicationMessage }
  /** An operation that waited gets its turn. */
  | { readonly is: 'operation'; readonly ref: ObjectRef; readonly id: string; readonly message: ApplicationMessage }
  /** Argo CD went on with an operation that was to end. */
  | { readonly is: 'termination'; readonly ref: ObjectRef; readonly id: string; readonly message: ApplicationMessage }
  | { readonly is: 'doubt'; readonly ref: ObjectRef; readonly id: string }
  | { readonly is: 'nudge'; readonly ref: ObjectRef; readonly id: string }
  | { readonly is: 'look'; readonly ref: ObjectRef; readonly id: string; readonly lastSeen: Application | undefined };

/** The engine's key of an Application. */
export function applicationKey({ namespace, name }: ObjectRef): ResourceKey {
  return { kind: 'Application', namespace, name };
}

/** Equal for two copies of the same work. */
export function workId(work: CopyWork): string {
  return work.is === 'message' ? `${work.message.type}/${work.message.resourceId}/${work.message.eventId}` : work.id;
}

/** Whether the older work need not be done when the newer one is. */
export function supersedes(newer: CopyWork, older: CopyWork): boolean {
  if (older.is === 'look') {
    return newer.is === 'look' ? older.lastSeen === undefined : newer.is === 'message' && isState(newer.message);
  }
  if (newer.is !== 'message' || older.is !== 'message' || !isState(older.message)) {
    return false;
  }
  return (
    isState(newer.message) || (newer.message.type === 'delete' && newer.message.resourceId === older.message.resourceId)
  );
}

/** Whether the message says what an Application should be, as opposed to what should be done. */
export function isState(message: ApplicationMessage): boolean {
  return message.type === 'create' || message.type === 'spec-update';
}
