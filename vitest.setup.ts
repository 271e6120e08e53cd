import { vi } from 'vitest';

// A condition that is waited for may take as long as a busy machine needs. Vitest gives up after one second unless told
// otherwise, and a test that gives up early has a reason to on the machine that it was written on alone.
const patienceMs = 40_000;
const { waitFor, waitUntil } = vi;

/** With the patience of this project, unless the test has more. */
function patient<T extends { timeout?: number; interval?: number }>(options: number | T | undefined): T {
  const asked = typeof options === 'number' ? ({ timeout: options } as T) : options;
  return { ...asked, timeout: Math.max(asked?.timeout ?? 0, patienceMs) } as T;
}

vi.waitFor = (callback, options) => waitFor(callback, patient(options));
vi.waitUntil = (callback, options) => waitUntil(callback, patient(options));
