import {
  adoptCommand,
  applyCrdsCommand,
  basicCommand,
  controllerCommand,
  releaseCommand,
  renderCommand,
  uninstallCommand,
} from '../controller/index.ts';
import { type Executable, versionCommand } from '../lib/ops/index.ts';

/** `gitops-controller` and its commands. */
export const gitOpsController: Executable = {
  name: 'gitops-controller',
  summary: 'Enrolls the managed clusters of an Open Cluster Management hub into its Argo CD',
  commands: [
    controllerCommand,
    basicCommand,
    renderCommand,
    uninstallCommand,
    adoptCommand,
    releaseCommand,
    applyCrdsCommand,
    versionCommand('gitops-controller'),
  ],
};
