import type { Condition, Lease } from '../../lib/kube/index.ts';

/** A condition of a ManagedClusterAddOn without its times. */
export type AddOnCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** The condition AgentConnected, computed from the Lease in which the principal records the agent's connection. */
export function agentConnected(lease: Lease | undefined): AddOnCondition {
  const type = 'AgentConnected';
  const connected = lease?.metadata.annotations?.['argocd-agent.argoproj-labs.io/connected'];
  if (connected === 'true') {
    const since = lease?.spec?.acquireTime ? ` since ${lease.spec.acquireTime}` : '';
    return { type, status: 'True', reason: 'Connected', message: `the agent is connected to the principal${since}` };
  }
  if (connected === 'false') {
    const since = lease?.spec?.renewTime ? ` since ${lease.spec.renewTime}` : '';
    return { type, status: 'False', reason: 'Disconnected', message: `the agent is not connected${since}` };
  }
  return { type, status: 'False', reason: 'NeverConnected', message: 'the agent has not connected yet' };
}
