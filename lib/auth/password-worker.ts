import { parentPort } from 'node:worker_threads';
import { compareSync } from 'bcryptjs';

// Runs in a thread of its own: bcrypt is slow on purpose and must not block the event loop.

/** A request to the thread. */
export interface Comparison {
  readonly password: string;
  readonly hash: string;
}

parentPort?.on('message', ({ password, hash }: Comparison) => {
  let isRight = false;
  try {
    // Revision x marks hashes of a broken implementation; Go's bcrypt, which argocd-agent uses, takes it as any other.
    isRight = compareSync(password, hash.replace(/^\$2x/, '$2a').replace(/^\$2y/, '$2b'));
  } catch {
    // A hash that cannot be read matches nothing.
    isRight = false;
  }
  parentPort?.postMessage(isRight);
});
