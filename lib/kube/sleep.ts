/** Resolves after the time, or as soon as the signal is aborted; never rejects. */
export async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) {
    return;
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  const onAbort = () => resolve();
  const timer = setTimeout(resolve, ms);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

/** Rejects with the signal's reason once it is aborted, otherwise settles as the promise does. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) {
    return promise;
  }
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Runs with a signal that is aborted with the given one or, with a TimeoutError, after the time. */
export async function withDeadline<T>(
  signal: AbortSignal,
  ms: number,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = new AbortController();
  const onAbort = () => deadline.abort(signal.reason);
  const onTime = () => deadline.abort(new DOMException(`no answer within ${Math.round(ms)} ms`, 'TimeoutError'));
  if (signal.aborted) {
    onAbort();
  }
  signal.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(onTime, ms);
  try {
    return await run(deadline.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
