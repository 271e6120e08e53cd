import type { PrincipalFlags } from '../flags.ts';
import type { AgentLimits } from './agent-quotas.ts';

/** The limits of each agent, from the flags. */
export function agentLimits(flags: PrincipalFlags): AgentLimits {
  return {
    objects: flags['agent-max-objects'],
    bytes: flags['agent-max-bytes'],
    objectBytes: flags['agent-max-object-bytes'],
    writesPerSecond: flags['agent-max-writes'],
    writtenBytesPerSecond: flags['agent-max-written-bytes'],
  };
}
