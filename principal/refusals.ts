import type { AuthError } from '../lib/auth/index.ts';
import type { EventRecorder } from '../lib/kube/index.ts';
import type { MappedAgents } from './agents.ts';
import type { ClusterInfos } from './cluster-info.ts';
import type { PrincipalMetrics } from './metrics.ts';

/** Makes refused agents visible beyond the log: counted, and where an operator has to decide, said where they look. */
export function refusals(context: {
  agents: Pick<MappedAgents, 'clustersOf'>;
  clusterInfos: Pick<ClusterInfos, 'refused'>;
  events: Pick<EventRecorder, 'warning'>;
  metrics: Pick<PrincipalMetrics, 'refusedLogin'>;
}): { counted(reason: string): void; wrongMode(error: AuthError): void } {
  return {
    counted: (reason) => context.metrics.refusedLogin(reason),
    wrongMode: ({ agent = '', message, hint = '' }) => {
      context.clusterInfos.refused(agent, message);
      for (const { secret } of context.agents.clustersOf(agent)) {
        const object = { ...secret, apiVersion: 'v1', kind: 'Secret' };
        context.events.warning(object, 'AgentModeRefused', `Agent ${agent} is refused: ${message}. ${hint}`);
      }
    },
  };
}
