import { type AgentMode, AuthError, isAgentMode } from '../../lib/auth/index.ts';
import type { MappedAgents } from '../clusters/mapped-agents.ts';

/** Where an agent's mode is known from. */
export interface ModeSources {
  readonly agents: Pick<MappedAgents, 'has' | 'clustersOf'>;
  /** The mode of the agent's last connection. */
  readonly recorded: (agent: string) => string | undefined;
}

/**
 * The mode that an agent must have, undefined when it may have any: the operator's setting on its cluster Secret, else that
 * of its last connection. An agent without a cluster Secret is not pinned: nothing is synchronised with it.
 *
 * Argo CD's originals take any mode that an agent claims; one that is taken over could so make its cluster the owner of what
 * the hub owns.
 */
export function pinnedMode({ agents, recorded }: ModeSources, agent: string): AgentMode | undefined {
  if (!agents.has(agent)) {
    return undefined;
  }
  const last = recorded(agent) ?? '';
  return declaredMode(agents, agent) ?? (isAgentMode(last) ? last : undefined);
}

/** @throws AuthError `wrong-mode` when the agent must have another one */
export function checkMode(sources: ModeSources, { agent, mode }: { agent: string; mode: string }): void {
  const pinned = pinnedMode(sources, agent);
  if (pinned === undefined || pinned === mode) {
    return;
  }
  const why =
    declaredMode(sources.agents, agent) === undefined
      ? `it has been ${pinned} since it first connected`
      : `its cluster Secret says ${pinned}`;
  throw new AuthError('wrong-mode', `It comes as ${mode}, but ${why}`, {
    agent,
    answer: `this agent's mode is pinned to ${pinned}; an operator of the hub has to allow ${mode}`,
  });
}

/** The operator's settings on the agent's cluster Secrets. */
function declaredMode(agents: ModeSources['agents'], agent: string): AgentMode | undefined {
  return agents.clustersOf(agent).find(({ mode }) => mode !== undefined)?.mode;
}
