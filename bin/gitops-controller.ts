#!/usr/bin/env node
import {
  adoptCommand,
  applyCrdsCommand,
  basicCommand,
  controllerCommand,
  releaseCommand,
  renderCommand,
  uninstallCommand,
} from '../controller/index.ts';
import { runExecutable, runMain, versionCommand } from '../lib/ops/index.ts';

const executable = {
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

// The original takes flags only: without a command it is what --mode says, or the controller.
const given = process.argv.slice(2);
const [first] = given;
const isBasic = given.some(
  (arg, index) => /^--?mode=basic$/.test(arg) || (/^--?mode$/.test(arg) && given[index + 1] === 'basic'),
);
const hasCommand = first !== undefined && (!first.startsWith('-') || ['--help', '-h', '--version'].includes(first));
const args = hasCommand ? given : [isBasic ? 'basic' : 'controller', ...given];

await runMain((signal) => runExecutable(executable, { args, env: process.env, signal }));
