#!/usr/bin/env node
import { basename } from 'node:path';
import { ctlExecutable } from '../ctl/index.ts';
import { runExecutable, runMain } from '../lib/ops/index.ts';

// kubectl finds the plug-in of `kubectl argocd-fleet` by this name.
const isPlugIn = basename(process.argv[1] ?? '') === 'kubectl-argocd_fleet';
const executable = ctlExecutable(isPlugIn ? 'kubectl argocd-fleet' : 'argocd-agentctl');

// Who reads the output has seen enough, as `head` has.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

await runMain((signal) => runExecutable(executable, { args: process.argv.slice(2), env: process.env, signal }));
