import type { Application } from './application.ts';

interface Termination<M> {
  readonly uid: string | undefined;
  readonly startedAt: unknown;
  readonly message: M;
}

/**
 * Terminations that were carried out, until the operation has ended. Argo CD's controller overwrites the state of an
 * operation while it processes it: an operation that continues is terminated again.
 */
export class Terminations<M> {
  readonly #asked = new Map<string, Termination<M>>();

  /** The operation of an Application is being ended. */
  carriedOut(place: string, local: Application, message: M): void {
    const { startedAt } = local.status?.operationState ?? {};
    this.#asked.set(place, { uid: local.metadata.uid, startedAt, message });
  }

  /** The termination to carry out again, given the Application as it is now. */
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
