#!/usr/bin/env node
import { runExecutable, runMain } from '../lib/ops/index.ts';
import { argocdAgent } from './argocd-agent-commands.ts';

await runMain((signal) => runExecutable(argocdAgent, { args: process.argv.slice(2), env: process.env, signal }));
