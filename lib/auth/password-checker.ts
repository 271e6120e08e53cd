import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { AuthError } from './errors.ts';
import type { Comparison } from './password-worker.ts';

/** How many comparisons may wait, and how many of them for one address. A fleet may share one address. */
export interface PasswordLimits {
  readonly threads: number;
  readonly maxWaiting: number;
  readonly maxWaitingPerAddress: number;
}

const defaultLimits: PasswordLimits = {
  threads: Math.min(4, Math.max(1, availableParallelism() - 1)),
  maxWaiting: 4096,
  maxWaitingPerAddress: 2048,
};

interface Job extends Comparison {
  readonly isWanted: () => boolean;
  readonly resolve: (isRight: boolean) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Compares passwords with bcrypt hashes in threads of their own, so that guessing does not slow the fleet down: the event
 * loop stays free, the number of waiting comparisons is bounded, and addresses take turns.
 */
export class PasswordChecker {
  readonly #limits: PasswordLimits;
  /** Waiting comparisons by address; addresses take turns. */
  readonly #waiting = new Map<string, Job[]>();
  readonly #idle: Worker[] = [];
  #threads = 0;
  #count = 0;

  constructor(limits: Partial<PasswordLimits> = {}) {
    this.#limits = { ...defaultLimits, ...limits };
  }

  /**
   * Whether a password fits a hash.
   *
   * @param from `address:port` of the peer
   * @param isWanted whether the peer still waits when its turn has come
   * @throws AuthError `too-many-logins` when too many comparisons wait, or the peer has gone away
   */
  compare({ password, hash }: Comparison, from: string, isWanted: () => boolean = () => true): Promise<boolean> {
    const address = from.replace(/:\d+$/, '');
    const jobs = this.#waiting.get(address) ?? [];
    if (this.#count >= this.#limits.maxWaiting || jobs.length >= this.#limits.maxWaitingPerAddress) {
      throw new AuthError('too-many-logins', `${this.#count} logins wait for the check of a password`);
    }
    return new Promise((resolve, reject) => {
      jobs.push({ password, hash, isWanted, resolve, reject });
      this.#waiting.set(address, jobs);
      this.#count++;
      this.#evaluate();
    });
  }

  #evaluate(): void {
    while (this.#count > 0) {
      const worker = this.#idle.pop() ?? this.#start();
      if (worker === undefined) {
        return;
      }
      const job = this.#next();
      if (job === undefined) {
        this.#idle.push(worker);
        return;
      }
      this.#run(worker, job);
    }
  }

  /** The next comparison whose peer still waits. */
  #next(): Job | undefined {
    for (const [address, jobs] of this.#waiting) {
      // The address goes to the end of the queue if it has more.
      this.#waiting.delete(address);
      const job = jobs.shift();
      if (jobs.length > 0) {
        this.#waiting.set(address, jobs);
      }
      if (job === undefined) {
        continue;
      }
      this.#count--;
      if (job.isWanted()) {
        return job;
      }
      job.reject(new AuthError('too-many-logins', 'The agent left before its password was checked'));
    }
    return undefined;
  }

  #start(): Worker | undefined {
    if (this.#threads >= this.#limits.threads) {
      return undefined;
    }
    const script = import.meta.url.endsWith('.ts') ? './password-worker.ts' : './password-worker.js';
    const worker = new Worker(new URL(script, import.meta.url));
    // It must not keep the program alive.
    worker.unref();
    this.#threads++;
    worker.on('exit', () => {
      this.#threads--;
      const index = this.#idle.indexOf(worker);
      if (index >= 0) {
        this.#idle.splice(index, 1);
      }
      this.#evaluate();
    });
    return worker;
  }

  #run(worker: Worker, job: Job): void {
    const done = (isRight: boolean) => {
      worker.off('error', failed);
      this.#idle.push(worker);
      job.resolve(isRight);
      this.#evaluate();
    };
    const failed = (error: Error) => {
      worker.off('message', done);
      job.reject(error);
    };
    worker.once('message', done);
    worker.once('error', failed);
    worker.postMessage({ password: job.password, hash: job.hash } satisfies Comparison);
  }
}
