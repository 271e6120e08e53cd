#!/usr/bin/env node
import { applyCrdsCommand, controllerCommand, renderCommand, uninstallCommand } from '../controller/index.ts';
import { runExecutable, runMain, versionCommand } from '../lib/ops/index.ts';

const executable = {
  name: 'gitops-controller',
  summary: 'Enrolls the managed clusters of an Open Cluster Management hub into its Argo CD',
  commands: [controllerCommand, renderCommand, uninstallCommand, applyCrdsCommand, versionCommand('gitops-controller')],
};

// The original takes flags only: without a command it is the controller.
const [first, ...rest] = process.argv.slice(2);
const isHelp = first === '--help' || first === '-h';
const args =
  first === undefined
    ? ['controller']
    : first.startsWith('-') && !isHelp
      ? ['controller', first, ...rest]
      : [first, ...rest];

await runMain((signal) => runExecutable(executable, { args, env: process.env, signal }));
