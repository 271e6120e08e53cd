import { discoverEndpoint, endpointText, type PrincipalEndpoint } from '../endpoint/index.ts';
import { type FleetReasons, failed, type StepReport, succeeded } from '../hub/index.ts';
import type { Fleet } from './fleet-deps.ts';

/**
 * Discovers the address and port at which agents reach the principal.
 * @param present the address that agents have; undefined: none yet
 */
export function discoverServer(
  { spec: { server }, exposure, namespace }: Fleet,
  present: string | undefined,
): StepReport<PrincipalEndpoint, FleetReasons['ServerDiscovered']> {
  if (server.problem !== undefined) {
    return { result: failed(`Server discovery failed: ${server.problem}`, 'ServerNotDiscovered') };
  }
  const found = discoverEndpoint(server.value, exposure, namespace, present);
  if ('problem' in found) {
    return { result: failed(found.problem, 'ServerNotDiscovered') };
  }
  return { result: succeeded(`Server at ${endpointText(found)}`), found };
}
