import { z } from 'zod';
import type { ConfigMap } from '../../lib/kube/index.ts';
import { keys } from '../hub/index.ts';
import { fallbackOf, type Parameter } from './parameters.ts';
import type { ParameterRequirement } from './requirements.ts';

const parameterNames = ['redis.server', 'application.namespaces'] as const satisfies readonly Parameter[];

const entry = z.object({ set: z.string(), before: z.string().nullable() });
const configuredSchema = z.partialRecord(z.enum(parameterNames), entry);

/** What the controller has set, by parameter, and the values from before. It is an annotation of the ConfigMap. */
export type ConfiguredParameters = z.infer<typeof configuredSchema>;

/** What the controller has set in Argo CD's parameters. An annotation that is not the controller's counts as nothing. */
export function configuredParametersOf(params: ConfigMap | undefined): ConfiguredParameters {
  const text = params?.metadata.annotations?.[keys.configuredParams];
  if (text === undefined) {
    return {};
  }
  try {
    return configuredSchema.parse(JSON.parse(text));
  } catch {
    return {};
  }
}

/** A change of Argo CD's parameters. */
export interface ParameterPlan {
  /** New values; null removes a key. Empty: nothing is to be written. */
  readonly data: Readonly<Record<string, string | null>>;
  readonly configured: ConfiguredParameters;
}

/**
 * What to write so that the requirements are met and everything else that the controller has set is given back.
 *
 * A value, or Argo CD's default, is replaced if nothing is lost by that. One that the user has set since stays, and is the user's from then on.
 */
export function planParameters(
  data: Readonly<Record<string, string>>,
  before: ConfiguredParameters,
  requirements: readonly ParameterRequirement[],
): ParameterPlan {
  const changes: Record<string, string | null> = {};
  const configured: ConfiguredParameters = {};
  for (const parameter of parameterNames) {
    const mine = before[parameter];
    const live = data[parameter];
    const requirement = requirements.find((one) => one.parameter === parameter);
    if (requirement === undefined) {
      if (mine !== undefined && live === mine.set) {
        changes[parameter] = mine.before;
      }
    } else if (requirement.fits(live || fallbackOf(parameter))) {
      if (mine !== undefined && live === mine.set) {
        configured[parameter] = mine;
      }
    } else if (requirement.mayReplace(live || fallbackOf(parameter))) {
      changes[parameter] = requirement.wanted;
      configured[parameter] = { set: requirement.wanted, before: mine === undefined ? (live ?? null) : mine.before };
    }
  }
  return { data: changes, configured };
}
