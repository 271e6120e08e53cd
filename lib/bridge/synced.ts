import { timeoutSignal } from '../base/index.ts';
import { FatalError, formatDuration } from '../ops/index.ts';

/** The part of an informer that is waited for. */
interface Cache {
  synced(signal?: AbortSignal): Promise<void>;
  readonly stats?: { readonly problem?: string | undefined };
}

/**
 * Waits for the first listing of everything; `waiting` gets the names of what is missing, now and at each change.
 * @throws FatalError that names what could not be listed in time, followed by `advice`
 */
export async function allSynced(
  caches: Readonly<Record<string, Cache>>,
  options: { timeoutMs: number; signal: AbortSignal; advice: string; waiting?(missing: readonly string[]): void },
): Promise<void> {
  const { timeoutMs, signal, waiting } = options;
  const missing = new Set(Object.keys(caches));
  waiting?.([...missing]);
  const late = timeoutSignal(timeoutMs);
  const all = Object.entries(caches).map(async ([what, cache]) => {
    await cache.synced(AbortSignal.any([signal, late]));
    missing.delete(what);
    waiting?.([...missing]);
  });
  try {
    await Promise.all(all);
  } catch (error) {
    await Promise.allSettled(all);
    if (signal.aborted || !late.aborted) {
      throw error;
    }
    const problems = [...missing].map((what) => {
      const problem = caches[what]?.stats?.problem;
      return problem === undefined ? what : `${what} (${problem})`;
    });
    throw new FatalError(
      `${problems.join(', ')} could not be listed within ${formatDuration(timeoutMs)}: ${options.advice}`,
      { cause: error },
    );
  }
}
