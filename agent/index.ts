import { command } from '../lib/ops/index.ts';
import { agentFlags } from './flags.ts';
import { runAgent } from './run.ts';

/** `argocd-agent agent`: the managed cluster's side. */
export const agentCommand = command({
  name: 'agent',
  summary: "Run the agent: a managed cluster's side, which connects to the principal",
  flags: agentFlags,
  run: runAgent,
});
