import { type Logger, onAbort } from '../../lib/base/index.ts';

/** A source of key material. */
interface Source {
  readonly origin: string;
  readonly problem: string | undefined;
  subscribe(heard: () => void): () => void;
}

/**
 * Waits for a proxy's key material, and logs what is missing once `secrets` have been read. Nothing else waits for it: agents and synchronisation do not need the proxies.
 *
 * @returns undefined when aborted before
 */
export async function firstMaterial<T>(
  value: () => T | undefined,
  sources: readonly Source[],
  options: {
    what: string;
    flag: string;
    off: string;
    secrets: { settled(signal: AbortSignal): Promise<void> };
    logger: Logger;
    signal: AbortSignal;
  },
): Promise<T | undefined> {
  const first = value();
  if (first !== undefined) {
    return first;
  }
  const { what, flag, off, secrets, logger, signal } = options;
  const report = () => {
    if (value() !== undefined || signal.aborted) {
      return;
    }
    const missing = sources
      .filter(({ problem }) => problem !== undefined)
      .map(({ origin, problem }) => `${origin}: ${problem}`);
    const hint = `Create it, name another one with --${flag}, or set --${off}`;
    logger.warn({ missing, hint }, `the ${what} waits for its key material`);
  };
  secrets.settled(signal).then(report, report);
  const { promise, resolve } = Promise.withResolvers<T | undefined>();
  const check = () => {
    const found = value();
    if (found !== undefined || signal.aborted) {
      resolve(found);
    }
  };
  const unsubscribes = [...sources.map((source) => source.subscribe(check)), onAbort(signal, check)];
  try {
    return await promise;
  } finally {
    for (const unsubscribe of unsubscribes) {
      unsubscribe();
    }
  }
}
