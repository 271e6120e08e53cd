import { z } from 'zod';
import type { ConfigMap } from '../../lib/kube/index.ts';
import { keys } from '../hub/index.ts';
import { fallbackOf, type Parameter } from './parameters.ts';
import type { Wish } from './wishes.ts';

const parameterNames = ['redis.server', 'application.namespaces'] as const satisfies readonly Parameter[];

const entry = z.object({ set: z.string(), before: z.string().nullable() });
const settledSchema = z.partialRecord(z.enum(parameterNames), entry);

/** What the controller has set, by parameter, and the values from before. It is an annotation of the ConfigMap. */
export type Settled = z.infer<typeof settledSchema>;

/** What the controller has set in Argo CD's parameters. An annotation that is not the controller's counts as nothing. */
export function settledOf(params: ConfigMap | undefined): Settled {
  const text = params?.metadata.annotations?.[keys.settledParams];
  if (text === undefined) {
    return {};
  }
  try {
    return settledSchema.parse(JSON.parse(text));
  } catch {
    return {};
  }
}

/** A change of Argo CD's parameters. */
export interface ParameterPlan {
  /** New values; null removes a key. Empty: nothing is to be written. */
  readonly data: Readonly<Record<string, string | null>>;
  readonly settled: Settled;
}

/**
 * What to write so that the wishes come true and everything else that the controller has set is given back.
 *
 * A value, or Argo CD's default, is replaced if nothing is lost by that. One that the user has set since stays, and is the user's from then on.
 */
export function planParameters(
  data: Readonly<Record<string, string>>,
  before: Settled,
  wishes: readonly Wish[],
): ParameterPlan {
  const changes: Record<string, string | null> = {};
  const settled: Settled = {};
  for (const parameter of parameterNames) {
    const mine = before[parameter];
    const live = data[parameter];
    const wish = wishes.find((one) => one.parameter === parameter);
    if (wish === undefined) {
      if (mine !== undefined && live === mine.set) {
        changes[parameter] = mine.before;
      }
    } else if (wish.fits(live || fallbackOf(parameter))) {
      if (mine !== undefined && live === mine.set) {
        settled[parameter] = mine;
      }
    } else if (wish.mayReplace(live || fallbackOf(parameter))) {
      changes[parameter] = wish.wanted;
      settled[parameter] = { set: wish.wanted, before: mine === undefined ? (live ?? null) : mine.before };
    }
  }
  return { data: changes, settled };
}
