import { wellKnown } from '../../lib/base/index.ts';
import type { Condition, Lease } from '../../lib/kube/index.ts';
import { endpointText, type PrincipalEndpoint } from '../endpoint/index.ts';
import type { AddOnReasons } from './condition-types.ts';

/** A condition of a ManagedClusterAddOn without its times. */
export type AddOnCondition<T extends keyof AddOnReasons = keyof AddOnReasons> = {
  [Type in T]: Pick<Condition, 'status' | 'message'> & { readonly type: Type; readonly reason: AddOnReasons[Type] };
}[T];

/**
 * The condition AgentConnected, computed from the Lease in which the principal records the agent's connection.
 * @param endpoint where the agent is to connect; undefined while unknown
 */
export function agentConnected(lease: Lease | undefined, endpoint?: PrincipalEndpoint): AddOnCondition {
  const address = endpoint ? endpointText(endpoint) : 'the principal';
  const type = 'AgentConnected';
  const connected = lease?.metadata.annotations?.[wellKnown.connectedAnnotation];
  if (connected === 'true') {
    const since = lease?.spec?.acquireTime ? ` since ${lease.spec.acquireTime}` : '';
    return {
      type,
      status: 'True',
      reason: 'Connected',
      message: `the agent has been connected to the principal${since}`,
    };
  }
  if (connected === 'false') {
    const since = lease?.spec?.renewTime ? ` since ${lease.spec.renewTime}` : '';
    return {
      type,
      status: 'False',
      reason: 'Disconnected',
      message: `the agent has not been connected to ${address}${since}`,
    };
  }
  return { type, status: 'False', reason: 'NeverConnected', message: `the agent has never connected to ${address}` };
}
