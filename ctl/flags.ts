import { homedir } from 'node:os';
import { join } from 'node:path';
import { stringFlag } from '../lib/ops/index.ts';

/** Flags of every command: which hub, which cluster. Names, variables and defaults of the original, and kubectl's own. */
export const globalFlags = {
  'principal-context': stringFlag({
    usage: "context of the principal's cluster, the hub; default: the current one",
    env: 'ARGOCD_AGENT_PRINCIPAL_CONTEXT',
  }),
  'principal-namespace': stringFlag({
    usage: "the principal's namespace",
    default: 'argocd',
    env: 'ARGOCD_AGENT_PRINCIPAL_NAMESPACE',
  }),
  'agent-context': stringFlag({ usage: "context of the agent's cluster", env: 'ARGOCD_AGENT_AGENT_CONTEXT' }),
  'agent-namespace': stringFlag({
    usage: "the agent's namespace",
    default: 'argocd',
    env: 'ARGOCD_AGENT_AGENT_NAMESPACE',
  }),
  principal: stringFlag({ usage: 'name of a principal in the configuration file' }),
  agent: stringFlag({ usage: 'name of an agent in the configuration file' }),
  config: stringFlag({ usage: 'configuration file of this tool', default: defaultConfigPath() }),
  kubeconfig: stringFlag({ usage: 'kubeconfig file; default: KUBECONFIG, else ~/.kube/config' }),
  context: stringFlag({ usage: "kubectl's name of --principal-context" }),
  namespace: stringFlag({ usage: "kubectl's name of --principal-namespace", short: 'n' }),
};

/** Where the configuration file is unless a flag says so. */
export function defaultConfigPath(): string {
  return join(homedir(), '.config', 'argocd-agent', 'ctl.conf');
}
