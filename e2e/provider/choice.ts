import { type FleetOptions, type SharedFleet, startFleet } from '../fleet/index.ts';
import { startKindFleet } from './kind.ts';

/** Where clusters may come from. */
export const providerNames = ['local', 'kind'] as const;

/** One of {@link providerNames}. */
export type ProviderName = (typeof providerNames)[number];

/**
 * The provider that end-to-end tests shall use: `TEST_PROVIDER`, or local.
 * @throws Error when there is none of that name
 */
export function testProvider(environment: NodeJS.ProcessEnv = process.env): ProviderName {
  const name = environment.TEST_PROVIDER || 'local';
  const found = providerNames.find((one) => one === name);
  if (found === undefined) {
    throw new Error(`TEST_PROVIDER must be ${providerNames.join(' or ')}, not ${name}`);
  }
  return found;
}

/** Starts a fleet for an end-to-end test, of the provider that was asked for. */
export async function startTestFleet(options: FleetOptions = {}): Promise<SharedFleet> {
  return testProvider() === 'kind' ? await startKindFleet(options) : await startFleet(options);
}
