import { afterAll } from 'vitest';
import { type Wait, waits } from '../../lib/base/testing.ts';
import { cpuSeconds } from './cpu.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** CPU time of a test file, with its imports and the programs that it started and ended. Seconds. */
    cpuSeconds?: number;
    /** Waits of a test file that took seconds. */
    waits?: Wait[];
  }
}

const longMs = 2_000;
const before = cpuSeconds();
const long: Wait[] = [];
const take = (wait: unknown) => {
  const { what, ms } = wait as Wait;
  if (ms > longMs) {
    long.push({ what, ms });
  }
};
waits.subscribe(take);

// Registered before those of the file, so it runs after them.
// biome-ignore lint/correctness/noEmptyPattern: Vitest demands a pattern, of the fixtures that a hook uses
afterAll(({}, { meta }) => {
  waits.unsubscribe(take);
  meta.cpuSeconds = cpuSeconds() - before;
  meta.waits = long;
});
