import { afterAll } from 'vitest';
import { cpuSeconds } from './cpu.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** CPU time of a test file, with its imports and the programs that it started and ended. Seconds. */
    cpuSeconds?: number;
  }
}

const before = cpuSeconds();

// Registered before those of the file, so it runs after them.
// biome-ignore lint/correctness/noEmptyPattern: Vitest demands a pattern, of the fixtures that a hook uses
afterAll(({}, { meta }) => {
  meta.cpuSeconds = cpuSeconds() - before;
});
