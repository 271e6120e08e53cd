import { SeededDice } from './dice.ts';

/**
 * What befalls some histories beside the faults that all have: one history of so many has it. Each history draws its own, so that
 * one does not hide another, and each seed that draws none is as kind as ever.
 */
export const ingredients = {
  /** Messages travel as bytes, and are checked as those of a peer. */
  bytes: 8,
  /** Values that users write hold texts of all scripts, fractions, large exponents, and empty maps and lists. */
  values: 3,
  /** Values hold nulls. */
  nulls: 4,
  /** Values and labels have keys that every JavaScript object has. */
  prototypeKeys: 4,
  /** Argo CD writes a thousand conditions. */
  manyConditions: 40,
  /** Values of hundreds of kilobytes. */
  large: 150,
  /** API servers refuse some writes for a while, with every code that real ones have for that. */
  refusals: 4,
  /** API servers fail some writes for a while: 429, 500, 503, 504. */
  failures: 4,
  /** A quota is used up for a while. */
  quota: 8,
  /** One Application is refused on a cluster for good. */
  lastingRefusals: 8,
  /** Writes of one Application fail on a cluster for good. */
  lastingFailures: 8,
  /** The API server of an agent's cluster goes back to an earlier state. */
  restores: 6,
  /** Users delete Applications so that what these deployed stays. */
  nonCascading: 3,
  /** The hub takes away what clusters had before it: it has to stay there. */
  lockDown: 4,
  /** What Argo CD removes is compared with what users asked for. */
  workloads: 1,
  /** The hub's AppProjects keep some Applications from their agents for a while. */
  permissions: 8,
  /** Some Applications name their cluster by the URL of its cluster Secret, which is away for a while. */
  clusterSecrets: 8,
  /** A principal comes back with another identity, as on a hub that was restored: with other Applications. */
  newIdentity: 6,
  /** A managed agent is one of argocd-agent's. */
  goManaged: 6,
} as const satisfies Readonly<Record<string, number>>;

/** The name of something that befalls some histories. */
export type Ingredient = keyof typeof ingredients;

const all = Object.entries(ingredients) as readonly [Ingredient, number][];

/** What befalls one history, with dice of its own: what else happens does not depend on them. */
export class Unkindness {
  readonly dice: SeededDice;
  readonly #has: ReadonlySet<Ingredient>;

  /** @param only what the history has. Default: drawn */
  constructor(seed: number, only?: readonly Ingredient[]) {
    this.dice = new SeededDice(seed ^ 0x5bd1e995);
    // Later ones have dice of their own: a seed that does not draw them stays the history that it was.
    const other = new SeededDice(seed ^ 0xdaa66d13);
    const later: { readonly [name in Ingredient]?: SeededDice } = {
      permissions: other,
      newIdentity: other,
      goManaged: other,
      clusterSecrets: new SeededDice(seed ^ 0x3c6ef372),
    };
    const drawn = all.filter(([name, oneOf]) => (later[name] ?? this.dice).chance(1 / oneOf)).map(([name]) => name);
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
