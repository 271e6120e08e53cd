/** `argocd-agentctl`: the operator's tool. */
export { ctlExecutable } from './executable.ts';
