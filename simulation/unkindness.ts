import { SeededDice } from './dice.ts';

interface Rarity {
  /** One history of how many has it. */
  readonly oneOf: number;
  /** False: only a history that asks for it has it. */
  readonly isOn: boolean;
}

/**
 * What befalls some histories beside the faults that all have. Each history draws its own, so that one does not hide another,
 * and each seed that draws none is as kind as ever.
 */
export const ingredients = {
  /** Messages travel as bytes, and are checked as those of a peer. */
  bytes: { oneOf: 8, isOn: true },
  /** Values that users write hold texts of all scripts, fractions, large exponents, and empty maps and lists. */
  values: { oneOf: 3, isOn: true },
  /** Values hold nulls. */
  nulls: { oneOf: 4, isOn: true },
  /** Values and labels have keys that every JavaScript object has. */
  prototypeKeys: { oneOf: 4, isOn: true },
  /** Argo CD writes a thousand conditions. */
  manyConditions: { oneOf: 40, isOn: true },
  /** Values of hundreds of kilobytes. */
  large: { oneOf: 150, isOn: true },
  /** API servers refuse some writes for a while, with every code that real ones have for that. */
  refusals: { oneOf: 4, isOn: true },
  /** API servers fail some writes for a while: 429, 500, 503, 504. */
  failures: { oneOf: 4, isOn: true },
  /** A quota is used up for a while. */
  quota: { oneOf: 8, isOn: true },
  /** One Application is refused on a cluster for good. */
  lastingRefusals: { oneOf: 8, isOn: true },
  /** Writes of one Application fail on a cluster for good. */
  lastingFailures: { oneOf: 8, isOn: true },
  /** The API server of an agent's cluster goes back to an earlier state. */
  restores: { oneOf: 6, isOn: false },
  /** Users delete Applications so that what these deployed stays. */
  nonCascading: { oneOf: 3, isOn: true },
  /** The hub takes away what clusters had before it: it has to stay there. */
  lockDown: { oneOf: 4, isOn: true },
  /** What Argo CD removes is compared with what users asked for. */
  workloads: { oneOf: 1, isOn: true },
} as const satisfies Readonly<Record<string, Rarity>>;

/** The name of something that befalls some histories. */
export type Ingredient = keyof typeof ingredients;

const all = Object.entries(ingredients) as readonly [Ingredient, Rarity][];

/** What befalls one history, with dice of its own: what else happens does not depend on them. */
export class Unkindness {
  readonly dice: SeededDice;
  readonly #has: ReadonlySet<Ingredient>;

  /** @param only what the history has. Default: drawn from what is on */
  constructor(seed: number, only?: readonly Ingredient[]) {
    this.dice = new SeededDice(seed ^ 0x5bd1e995);
    const drawn = all.filter(([, { oneOf, isOn }]) => this.dice.chance(1 / oneOf) && isOn).map(([name]) => name);
    this.#has = new Set(only ?? drawn);
  }

  has(ingredient: Ingredient): boolean {
    return this.#has.has(ingredient);
  }

  /** Whether it has this, and the moment has come. */
  strikes(ingredient: Ingredient, probability: number): boolean {
    return this.has(ingredient) && this.dice.chance(probability);
  }
}
