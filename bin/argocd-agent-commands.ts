import { agentCommand } from '../agent/index.ts';
import { type Executable, versionCommand } from '../lib/ops/index.ts';
import { enrollCommand, migrateCommand, pkiCommand, principalCommand } from '../principal/index.ts';

/** `argocd-agent` and its commands. */
export const argocdAgent: Executable = {
  name: 'argocd-agent',
  summary: 'Synchronises the Argo CD of a hub with the Argo CD of each managed cluster',
  commands: [principalCommand, agentCommand, pkiCommand, enrollCommand, migrateCommand, versionCommand('argocd-agent')],
};
