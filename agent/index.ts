import { command } from '../lib/ops/index.ts';
import { agentFlags } from './flags.ts';

/** `argocd-agent agent`: the managed cluster's side. */
export const agentCommand = command({
  name: 'agent',
  summary: "Run the agent: a managed cluster's side, which connects to the principal",
  flags: agentFlags,
  ignoresArguments: true,
  // Loaded when it runs: principal and agent share an executable, and neither carries the other's code.
  run: async (flags, context) => (await import('./run.ts')).runAgent(flags, context),
});
