/**
 * How far a search through random or numbered cases, or a table of combinations, goes: `usual` in every run of the tests,
 * `thorough` with `npm run test:thorough` (the environment variable `THOROUGH=1`). Each scenario runs in both.
 */
export function effort(usual: number, thorough: number): number {
  return process.env.THOROUGH === '1' ? thorough : usual;
}
