/** What the tests, the testbed and the benchmarks of all rooms share. */
export { effort } from './testing/effort.ts';
export { growth } from './testing/growth.ts';
export { liveMemory } from './testing/live-memory.ts';
export { processStat, ticksPerSecond } from './testing/process-stat.ts';
export { type Check, type UntilOptions, until, type Wait, waits } from './testing/until.ts';
