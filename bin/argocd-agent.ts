#!/usr/bin/env node
import { agentCommand } from '../agent/index.ts';
import { runExecutable, runMain, versionCommand } from '../lib/ops/index.ts';
import { principalCommand } from '../principal/index.ts';

const executable = {
  name: 'argocd-agent',
  summary: 'Keeps the Argo CD of a hub and those of many clusters in step',
  commands: [principalCommand, agentCommand, versionCommand('argocd-agent')],
};

await runMain((signal) => runExecutable(executable, { args: process.argv.slice(2), env: process.env, signal }));
