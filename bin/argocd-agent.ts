#!/usr/bin/env node
import { agentCommand } from '../agent/index.ts';
import { runExecutable, runMain, versionCommand } from '../lib/ops/index.ts';
import { enrollCommand, migrateCommand, pkiCommand, principalCommand } from '../principal/index.ts';

const executable = {
  name: 'argocd-agent',
  summary: 'Synchronises the Argo CD of a hub with the Argo CD of each managed cluster',
  commands: [principalCommand, agentCommand, pkiCommand, enrollCommand, migrateCommand, versionCommand('argocd-agent')],
};

await runMain((signal) => runExecutable(executable, { args: process.argv.slice(2), env: process.env, signal }));
