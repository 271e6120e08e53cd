import { BoundedMap } from '../../../lib/base/index.ts';

/** Keeps results by key for a time, at most a number of them. Callers that ask while a result is computed share it. */
export class ExpiringCache<T> {
  readonly #lifetimeMs: number;
  readonly #entries: BoundedMap<string, { readonly until: number; readonly value: Promise<T> }>;

  constructor(lifetimeMs: number, max: number) {
    this.#lifetimeMs = lifetimeMs;
    this.#entries = new BoundedMap(max);
  }

  /** The result of a key, computed unless it is kept. @throws what `compute` throws; failures are not kept */
  async get(key: string, signal: AbortSignal, compute: () => Promise<T>): Promise<T> {
    const now = performance.now();
    const known = this.#entries.get(key);
    if (known !== undefined && known.until > now) {
      try {
        return await known.value;
      } catch {
        // The other caller may have been aborted, which must not affect this one.
        signal.throwIfAborted();
        return compute();
      }
    }
    const value = compute();
    const entry = { until: now + this.#lifetimeMs, value };
    this.#entries.set(key, entry);
    try {
      return await value;
    } catch (error) {
      if (this.#entries.get(key) === entry) {
        this.#entries.delete(key);
      }
      throw error;
    }
  }

  clear(): void {
    this.#entries.clear();
  }
}
