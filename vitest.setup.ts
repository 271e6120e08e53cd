import { vi } from 'vitest';

// A condition that is waited for may take as long as a busy machine needs: vitest gives up after one second unless told otherwise.
const patience = { timeout: 15_000 };
const { waitFor, waitUntil } = vi;

/** With the patience of this project, unless the test says more. */
function patient<T extends { timeout?: number; interval?: number }>(options: number | T | undefined): number | T {
  return typeof options === 'number' ? options : ({ ...patience, ...options } as T);
}

vi.waitFor = (callback, options) => waitFor(callback, patient(options));
vi.waitUntil = (callback, options) => waitUntil(callback, patient(options));
