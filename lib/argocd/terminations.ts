import type { Application } from './application.ts';

interface Termination<M> {
  readonly uid: string | undefined;
  readonly startedAt: unknown;
  readonly message: M;
}

/**
 * Wishes to end an operation that were carried out, until it has ended. Argo CD's controller overwrites what is written to
 * the state of an operation while it looks at it: one that goes on as if nobody had ended it is ended again.
 */
export class Terminations<M> {
  readonly #asked = new Map<string, Termination<M>>();

  /** The operation of an Application is being ended. */
  carriedOut(place: string, local: Application, message: M): void {
    const { startedAt } = local.status?.operationState ?? {};
    this.#asked.set(place, { uid: local.metadata.uid, startedAt, message });
  }

  /** What has to be carried out again, now that the Application is like this. */
  overruled(place: string, local: Application | undefined): M | undefined {
    const asked = this.#asked.get(place);
    if (asked === undefined) {
      return undefined;
    }
    const { phase, startedAt } = local?.status?.operationState ?? {};
    const isSame = local?.metadata.uid === asked.uid && startedAt === asked.startedAt;
    if (isSame && phase === 'Running') {
      return asked.message;
    }
    if (!isSame || phase !== 'Terminating') {
      this.#asked.delete(place);
    }
    return undefined;
  }
}
