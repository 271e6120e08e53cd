/** Numbers in [0, 1), and the seed that repeats them: `INTEROP_SEED`, or by chance. */
export interface Dice {
  (): number;
  readonly seed: number;
}

/** Starts a sequence of random numbers (mulberry32). */
export function seededRandom(seed = Number(process.env.INTEROP_SEED) || Math.floor(Math.random() * 2 ** 31)): Dice {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return Object.assign(next, { seed });
}
