/** What a tier of tests needs to run, from little to much. */
export type TierName = 'unit' | 'integration' | 'e2e' | 'slow-integration' | 'slow-e2e';

/** A tier: the files with these endings are its tests. */
export interface Tier {
  readonly name: TierName;
  /** What a file name ends with. */
  readonly suffix: string;
  /** `npm test` leaves it out. */
  readonly isSlow: boolean;
}

/** All tiers. The longest suffix that a file name has is that of its tier. */
export const tiers: readonly Tier[] = [
  { name: 'unit', suffix: '.test.ts', isSlow: false },
  { name: 'integration', suffix: '.it.test.ts', isSlow: false },
  { name: 'e2e', suffix: '.e2e.test.ts', isSlow: false },
  { name: 'slow-integration', suffix: '.slow.it.test.ts', isSlow: true },
  { name: 'slow-e2e', suffix: '.slow.e2e.test.ts', isSlow: true },
];

/** The tier of a test file. @throws RangeError for another file */
export function tierOf(file: string): Tier {
  const [tier] = tiers
    .filter(({ suffix }) => file.endsWith(suffix))
    .sort((one, other) => other.suffix.length - one.suffix.length);
  if (tier === undefined) {
    throw new RangeError(`${file} is no test`);
  }
  return tier;
}

/** The patterns that find the files of a tier in folders, and those that leave out what another tier has of them. */
export function filesOf(name: TierName, folders: readonly string[]): { include: string[]; exclude: string[] } {
  const { suffix } = tiers.find((tier) => tier.name === name) as Tier;
  const others = tiers.filter((tier) => tier.suffix !== suffix && tier.suffix.endsWith(suffix));
  const patterns = (end: string) => folders.map((folder) => `${folder}/**/*${end}`);
  return { include: patterns(suffix), exclude: others.flatMap((other) => patterns(other.suffix)) };
}
