import type { ObjectRef, ResourceKey } from '../../../sync/index.ts';
import type { Application } from '../../application.ts';
import type { ApplicationMessage } from '../../peer/messages.ts';

/** Work for one Application, under its local name: a message of the principal, or something that changed here. */
export type CopyWork =
  | { readonly is: 'message'; readonly ref: ObjectRef; readonly message: ApplicationMessage }
  /** An operation that waited gets its turn. */
  | { readonly is: 'operation'; readonly ref: ObjectRef; readonly id: string; readonly message: ApplicationMessage }
  /** Argo CD continued an operation that was terminated. */
  | { readonly is: 'termination'; readonly ref: ObjectRef; readonly id: string; readonly message: ApplicationMessage }
  /** A request that the API server refused is tried again. */
  | { readonly is: 'refused'; readonly ref: ObjectRef; readonly id: string; readonly message: ApplicationMessage }
  | { readonly is: 'verify'; readonly ref: ObjectRef; readonly id: string }
  | { readonly is: 'stuck'; readonly ref: ObjectRef; readonly id: string }
  | {
      readonly is: 'reconcile';
      readonly ref: ObjectRef;
      readonly id: string;
      readonly lastSeen: Application | undefined;
    };

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
  if (older.is === 'reconcile') {
    return newer.is === 'reconcile' ? older.lastSeen === undefined : newer.is === 'message' && isState(newer.message);
  }
  if (newer.is !== 'message' || older.is !== 'message') {
    return false;
  }
  const isSame = newer.message.resourceId === older.message.resourceId;
  if (isState(older.message)) {
    return isState(newer.message) || (newer.message.type === 'delete' && isSame);
  }
  // It has left the cluster and is back: what could not be deleted stays.
  return older.message.type === 'delete' && isState(newer.message) && isSame;
}

/** Whether the message has the desired state of an Application, as opposed to a request. */
export function isState(message: ApplicationMessage): boolean {
  return message.type === 'create' || message.type === 'spec-update';
}
