import { hasGoneBack, isEqual } from '../../../base/index.ts';
import type { Application } from '../../application.ts';
import type { ApplicationMessage } from '../../peer/messages.ts';

interface SetOperation {
  /** The Application with the operation, as the API server returned it. */
  readonly written: Application;
  readonly message: ApplicationMessage;
}

/**
 * Operations that were set, until they are over. A restore of the cluster's storage takes one away that its principal holds for
 * delivered: it is carried out again.
 */
export class SetOperations {
  readonly #set = new Map<string, SetOperation>();

  /** An operation was asked for, and this is the Application now. */
  carriedOut(place: string, local: Application | undefined, message: ApplicationMessage): void {
    if (local !== undefined && isEqual(local.operation, message.object.operation)) {
      this.#set.set(place, { written: local, message });
    }
  }

  /** The request whose operation was lost by a restore, given the Application as it is now. */
  lost(place: string, local: Application | undefined): ApplicationMessage | undefined {
    const set = this.#set.get(place);
    if (set === undefined || (local !== undefined && isEqual(local.operation, set.message.object.operation))) {
      return undefined;
    }
    this.#set.delete(place);
    const isLost = local?.operation === undefined && hasGoneBack(set.written.metadata, local?.metadata ?? {});
    return isLost ? set.message : undefined;
  }
}
