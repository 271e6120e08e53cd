/** What the tests, the testbed and the benchmarks of all rooms share. */
export { type Check, type UntilOptions, until } from './testing/until.ts';
