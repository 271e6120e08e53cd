import type { GrpcStatusCode } from './status.ts';

/** Observes a call; for metrics. */
export interface CallObserver {
  received(): void;
  sent(): void;
  /** The call has ended; `canceled` when the other side went away or the call was given up. Called once. */
  over(code: GrpcStatusCode): void;
}
