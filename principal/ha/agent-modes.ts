import { isAgentMode } from '../../lib/auth/index.ts';
import { type Logger, wellKnown } from '../../lib/base/index.ts';
import { type Informer, isForbidden, type KubeClient, type Lease, leases } from '../../lib/kube/index.ts';
import { agentLeaseName, connectionLabels } from '../sessions/connection-records.ts';

/**
 * Records on a standby in which mode each agent was connected to the active hub, so that a promoted principal takes no agent in
 * another one, and protects the mirrors of autonomous agents before they have connected. Failures are logged: without these
 * records any mode is accepted once.
 */
export async function recordModes(
  modes: ReadonlyMap<string, string>,
  context: {
    readonly client: Pick<KubeClient, 'create' | 'mergePatch'>;
    readonly namespace: string;
    readonly cache: Informer<Lease>;
    readonly logger: Logger;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { client, namespace, cache, logger, signal } = context;
  const { agentModeAnnotation, agentNameLabel } = wellKnown;
  for (const [agent, mode] of modes) {
    if (!isAgentMode(mode) || signal.aborted) {
      continue;
    }
    const key = { namespace, name: agentLeaseName(agent) };
    const known = cache.get(key);
    const annotations = { [agentModeAnnotation]: mode };
    try {
      if (known === undefined) {
        const labels = { ...connectionLabels, [agentNameLabel]: agent };
        await client.create(leases, { metadata: { ...key, labels, annotations } }, { signal });
      } else if (known.metadata.annotations?.[agentModeAnnotation] !== mode) {
        await client.mergePatch(leases, key, { metadata: { annotations } }, { signal });
      }
    } catch (error) {
      if (isForbidden(error)) {
        return;
      }
      logger.debug({ error, agent }, 'the mode of an agent cannot be recorded');
    }
  }
}
