/**
 * How far a search through random or numbered cases, or a table of combinations, goes: `usual` in every run of the tests,
 * `thorough` with `npm run test:thorough` (the environment variable `THOROUGH=1`). Each scenario of a search runs in both; of a table,
 * the first rows do in every run.
 */
export function effort(usual: number, thorough: number): number {
  return process.env.THOROUGH === '1' ? thorough : usual;
}
