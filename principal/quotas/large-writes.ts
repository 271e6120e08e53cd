import { KeyedMutex, onAbort, sleep } from '../../lib/base/index.ts';

/** A write of at least this size ({@link jsonSize}) is a large one. A usual Application has 20 to 60 KiB. */
const largeBytes = 256 * 1024;
/** How long an agent's large writes rest after one of them, as a multiple of its duration. */
const restFactor = 3;
/** An API server that does not answer is not the agent's fault. */
const longestRestMs = 2_000;

/**
 * Shares the hub's API server among agents. A large write costs it up to a hundred milliseconds of processor time, so each
 * agent has one at a time, and after it none for three times as long: however large the objects and busy the server are, the
 * large writes of one agent take a quarter of one processor. Small ones do not wait.
 */
export class LargeWrites {
  readonly #lanes = new KeyedMutex();

  /**
   * Runs a write of an agent, after its earlier large ones if it is large.
   * @throws what `send` throws, or the signal's reason when it is aborted before
   */
  run<R>(agent: string, size: number, send: () => Promise<R>, signal: AbortSignal): Promise<R> {
    if (size < largeBytes) {
      return send();
    }
    const { promise, resolve, reject } = Promise.withResolvers<R>();
    const unlisten = onAbort(signal, () => reject(signal.reason));
    void this.#lanes.run(agent, async () => {
      unlisten();
      if (signal.aborted) {
        return;
      }
      const began = performance.now();
      await send().then(resolve, reject);
      const restMs = Math.min((performance.now() - began) * restFactor, longestRestMs);
      await sleep(restMs, signal).catch(() => undefined);
    });
    return promise;
  }
}
