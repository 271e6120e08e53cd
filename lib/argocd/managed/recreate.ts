import type { Application } from '../application.ts';

/** What happens to status and operation when an Application that somebody deleted on the managed cluster is made again. */
export type RecreatePolicy = 'ignore' | 'clear-status' | 'resync';

/** The object to create in place of one that somebody deleted, by what it was when last seen. */
export function recreated(object: Application, lastSeen: Application, policy: RecreatePolicy): Application {
  // Without the time of the last comparison Argo CD compares at once: its finalizer may have removed the resources.
  const { reconciledAt: _, ...status } = lastSeen.status ?? {};
  switch (policy) {
    case 'resync':
      return { ...object, status, operation: object.operation ?? { sync: {} } };
    case 'clear-status': {
      const { operationState: _, ...cleared } = status;
      return { ...object, status: cleared };
    }
    case 'ignore':
      return { ...object, status };
  }
}
