import { channel } from 'node:diagnostics_channel';

/** How long a wait may take and what helps to understand it when it was in vain. */
export interface UntilOptions {
  /** Milliseconds; 120 s unless set. A busy machine needs time, so a test sets this only to wait longer. */
  timeoutMs?: number;
  /** Ends the wait; it then rejects with the reason. */
  signal?: AbortSignal;
  /** Text for the end of the error message, such as the logs of the processes under test. */
  details?: () => string;
}

/** A condition, which returns whether it holds, or an assertion, which throws until it holds and returns nothing. */
export type Check = (() => boolean | Promise<boolean>) | (() => void | Promise<void>);

type Awaitable<T> = T | Promise<T>;
type Nothing = undefined | null | false;

/** A wait that has come to its end, as {@link waits} tells it. */
export interface Wait {
  /** What was waited for. */
  readonly what: string;
  readonly ms: number;
}

/** Where each wait is told of, a {@link Wait}, so that a test run can say which were long. */
export const waits = channel('until');

const patienceMs = 120_000;
// Kept here because a test may have replaced the global timers by fake ones.
const { setTimeout: schedule, clearTimeout: cancel } = globalThis;
const now = performance.now.bind(performance);

/**
 * Waits until a check passes: it returns `true`, or it returns nothing and does not throw (an assertion).
 * @throws Error that shows the check and its last error, when the time is over
 */
export async function until(check: Check, options?: UntilOptions): Promise<void>;
/**
 * Waits until a question has an answer: not `undefined`, `null` or `false`, and no error. Returns the answer.
 * @param what what is waited for, for the error message
 * @throws Error that says what was waited for and shows the last error, when the time is over
 */
export async function until<T>(
  what: string,
  ask: () => Awaitable<T | Nothing>,
  options?: UntilOptions,
): Promise<Exclude<T, Nothing>>;
export async function until(
  first: string | (() => unknown),
  second?: UntilOptions | (() => unknown),
  third?: UntilOptions,
): Promise<unknown> {
  const what = typeof first === 'string' ? first : undefined;
  const ask = (what === undefined ? first : second) as () => unknown;
  const options = (what === undefined ? second : third) as UntilOptions | undefined;
  const { timeoutMs = patienceMs, signal, details } = options ?? {};
  const isAnswer = (value: unknown) =>
    value !== false && (what === undefined || (value !== undefined && value !== null));
  const begin = now();
  for (;;) {
    signal?.throwIfAborted();
    const asked = now();
    let failure: unknown;
    try {
      const value = await ask();
      if (isAnswer(value)) {
        waits.publish({ what: what ?? `${ask}`, ms: now() - begin } satisfies Wait);
        return value;
      }
    } catch (error) {
      failure = error;
    }
    const elapsed = now() - begin;
    if (elapsed > timeoutMs) {
      const reason = failure instanceof Error ? failure.message : failure;
      const lines = [`not within ${timeoutMs / 1000} s: ${what ?? ask}`, reason, details?.()];
      throw new Error(lines.filter((line) => line !== undefined).join('\n'), { cause: failure });
    }
    // A tenth of the time waited, so that a quick answer is seen at once; longer where asking itself is costly.
    const took = now() - asked;
    await pause(Math.max(1, Math.min(100, elapsed / 10), Math.min(400, 2 * took)), signal);
  }
}

/** Ends early, without an error, when the signal is aborted. */
function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      cancel(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = schedule(end, ms);
    signal?.addEventListener('abort', end);
  });
}
