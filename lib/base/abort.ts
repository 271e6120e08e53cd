import { after } from './timer.ts';

/**
 * Calls `run` once when the signal is aborted, at once if it already is. The returned function removes the listener;
 * calling it later does nothing.
 */
export function onAbort(signal: AbortSignal | undefined, run: () => void): () => void {
  if (signal?.aborted) {
    run();
  } else {
    signal?.addEventListener('abort', run, { once: true });
  }
  return () => signal?.removeEventListener('abort', run);
}

/** Resolves when the signal is aborted, at once if it already is. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, resolve));
}

/** Resolves after the time, or as soon as the signal is aborted; never rejects. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) {
    return;
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = after(ms, resolve);
  const unlisten = onAbort(signal, resolve);
  try {
    await promise;
  } finally {
    cancel();
    unlisten();
  }
}

/**
 * Resolves with true as soon as `isSo` is, which is looked at now and whenever `subscribe` calls; with false after `ms` milliseconds,
 * or when aborted.
 * @param subscribe returns the function that ends the calls
 */
export async function becomes(
  isSo: () => boolean,
  subscribe: (look: () => void) => () => void,
  ms: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const unsubscribe = subscribe(() => isSo() && resolve());
  const end = new AbortController();
  const unlisten = onAbort(signal, () => end.abort());
  try {
    await (isSo() ? undefined : Promise.race([promise, sleep(ms, end.signal)]));
    return isSo();
  } finally {
    unsubscribe();
    unlisten();
    end.abort();
  }
}

/**
 * Settles as the promise does, or rejects with the signal's reason as soon as the signal is aborted. The work behind the
 * promise goes on; its later rejection is not reported as unhandled.
 */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) {
    return promise;
  }
  const { promise: abort, reject } = Promise.withResolvers<never>();
  const unlisten = onAbort(signal, () => reject(signal.reason));
  try {
    return await Promise.race([abort, promise]);
  } finally {
    unlisten();
  }
}

/**
 * Runs with a signal that is aborted when the given one is, or with a TimeoutError after `ms` milliseconds. The result is
 * that of `run`: it decides how it ends once its signal is aborted.
 */
export async function withDeadline<T>(
  signal: AbortSignal | undefined,
  ms: number,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = new AbortController();
  const expire = () => deadline.abort(new DOMException(`no answer within ${Math.round(ms)} ms`, 'TimeoutError'));
  const cancel = after(ms, expire);
  const unlisten = onAbort(signal, () => deadline.abort(signal?.reason));
  try {
    return await run(deadline.signal);
  } finally {
    cancel();
    unlisten();
  }
}
