import { Random } from '../random/index.ts';

/** Numbers in [0, 1), and the seed that repeats them: `INTEROP_SEED`, or by chance. */
export interface Dice {
  (): number;
  readonly seed: number;
}

/** Starts a sequence of random numbers. */
export function seededRandom(seed = Number(process.env.INTEROP_SEED) || Math.floor(Math.random() * 2 ** 31)): Dice {
  const random = new Random(seed);
  return Object.assign(() => random.next(), { seed });
}
