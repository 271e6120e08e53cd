import { digestOf } from '../../../base/index.ts';
import type { Application } from '../../application.ts';
import { isInProgress } from '../../operation-state.ts';

/** An operation that was set here. */
interface Run {
  readonly digest: string;
  /** The report of its end that was sent last. */
  report?: EventAddress;
}

/** What an acknowledgement names. */
interface EventAddress {
  readonly resourceId: string;
  readonly eventId: string;
}

/**
 * The operations that were set here as users of the hub asked for them, and whose end the principal has not acknowledged. Until
 * then the mirror shows the request, so that nobody can make the same one anew: when it comes again, it is from another principal,
 * which does not know that it was delivered.
 */
export class UnreportedRuns {
  /** By name: Argo CD takes one operation at a time. Few at any time: those that run or have just ended. */
  readonly #runs = new Map<string, Run>();

  /** An operation is being set. */
  set(name: string, operation: object): void {
    this.#runs.set(name, { digest: digestOf(operation) });
  }

  /** A report of this Application was sent. */
  sent({ resourceId, eventId }: EventAddress, { metadata, operation, status }: Application): void {
    const run = this.#runs.get(metadata.name);
    if (run !== undefined && operation === undefined && !isInProgress(status?.operationState)) {
      run.report = { resourceId, eventId };
    }
  }

  /** The principal has acknowledged an event. */
  acknowledged({ resourceId, eventId }: EventAddress): void {
    for (const [name, { report }] of this.#runs) {
      if (report?.eventId === eventId && report.resourceId === resourceId) {
        this.#runs.delete(name);
      }
    }
  }

  /** The Application is gone. */
  gone(name: string): void {
    this.#runs.delete(name);
  }

  /** Whether this operation was set, and the principal has not acknowledged its end. */
  has(name: string, operation: object): boolean {
    return this.#runs.get(name)?.digest === digestOf(operation);
  }
}
