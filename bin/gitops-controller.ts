#!/usr/bin/env node
import { runExecutable, runMain } from '../lib/ops/index.ts';
import { gitOpsController } from './gitops-controller-commands.ts';

// The original takes flags only: without a command it is what --mode says, or the controller.
const given = process.argv.slice(2);
const [first] = given;
const isBasic = given.some(
  (arg, index) => /^--?mode=basic$/.test(arg) || (/^--?mode$/.test(arg) && given[index + 1] === 'basic'),
);
const hasCommand = first !== undefined && (!first.startsWith('-') || ['--help', '-h', '--version'].includes(first));
const args = hasCommand ? given : [isBasic ? 'basic' : 'controller', ...given];

await runMain((signal) => runExecutable(gitOpsController, { args, env: process.env, signal }));
