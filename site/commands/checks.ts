import { existsSync, readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { argocdAgent } from '../../bin/argocd-agent-commands.ts';
import { gitOpsController } from '../../bin/gitops-controller-commands.ts';
import { ctlExecutable } from '../../ctl/index.ts';
import { tiers } from '../../e2e/tiers/index.ts';
import { type Executable, type FlagSet, findCommand } from '../../lib/ops/index.ts';
import { knownMetadata } from '../reference/metadata.ts';
import type { ShellCommand } from './shell.ts';

const root = join(import.meta.dirname, '../..');
const executables = new Map([argocdAgent, gitOpsController, ctlExecutable()].map((one) => [one.name, one]));
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
const makefile = readFileSync(join(root, 'Makefile'), 'utf8');

/** Programs of every machine: what is done with them is not checked. */
const utilities = new Set([
  ...['base64', 'cosign', 'cp', 'curl', 'grep', 'jq', 'openssl', 'sha256sum', 'skopeo', 'source', 'umask', 'velero'],
]);

const helmFlags = new Set([
  ...['--create-namespace', '--namespace', '--no-hooks', '--output', '--reset-then-reuse-values', '--set', '--values'],
]);
const kubectlVerbs = new Set([
  ...[
    'annotate',
    'apply',
    'config',
    'create',
    'delete',
    'describe',
    'get',
    'label',
    'logs',
    'patch',
    'port-forward',
    'rollout',
  ],
  ...['scale', 'wait'],
]);
/** Kinds that the commands name, with the forms that the API servers take. */
const kinds = new Set([
  ...['application', 'configmap', 'deploy', 'deployment', 'deployments', 'events', 'gitopsclusters', 'managedcluster'],
  ...['managedclusteraddon', 'managedclusteraddons', 'manifestworks', 'pods', 'secret', 'secrets', 'service'],
  ...['statefulset', 'configmaps', 'clusterrolebindings', 'namespace'],
]);

/** What is wrong with a command, in words; undefined when nothing is. */
export function problemOf({ words }: ShellCommand): string | undefined {
  const [program = '', ...args] = words;
  const executable = executables.get(program);
  if (executable !== undefined) {
    return problemOfOwn(executable, args);
  }
  switch (program) {
    case 'npm':
      return problemOfScript(args[0] === 'test' ? 'test' : (args[1] ?? ''), args);
    case 'make':
      return new RegExp(`^${args[0]}:`, 'm').test(makefile) ? undefined : `the Makefile has no ${args[0]}`;
    case 'npx':
    case 'node':
      return problemOfTestRun(args);
    case 'helm':
      return problemOfHelm(args);
    case 'kubectl':
      return problemOfKubectl(args);
    case 'docker':
      return problemOfDocker(args);
    default:
      return utilities.has(program) ? undefined : `nobody knows ${program}`;
  }
}

/** Whether the command, its flags and the number of its arguments are those of the executable. */
function problemOfOwn(executable: Executable, given: readonly string[]): string | undefined {
  const { command, args, path } = findCommand(executable, given);
  if (command === undefined) {
    return `${executable.name} has no command "${path || given[0]}"`;
  }
  const flags: FlagSet = { ...executable.flags, ...command.flags };
  let positional = 0;
  for (let index = 0; index < args.length; index++) {
    const [, dashes = '', name = '', value] = /^(--?)([^=]+)(=.*)?$/.exec(args[index] ?? '') ?? [];
    if (dashes === '') {
      positional++;
      continue;
    }
    const flag = dashes === '--' ? flags[name] : Object.values(flags).find(({ short }) => short === name);
    if (flag === undefined) {
      return `${executable.name} ${command.name} has no flag ${dashes}${name}`;
    }
    index += flag.type === 'bool' || value !== undefined ? 0 : 1;
  }
  const wanted = command.arguments ?? [];
  const needed = wanted.filter((one) => !one.startsWith('[')).length;
  return positional < needed || positional > wanted.length
    ? `${executable.name} ${command.name} takes ${wanted.join(' ') || 'no arguments'}`
    : undefined;
}

function problemOfScript(script: string, args: readonly string[]): string | undefined {
  if (args[0] !== 'run' && args[0] !== 'test') {
    return `npm ${args[0]} is not run here`;
  }
  return script in scripts ? undefined : `package.json has no script ${script}`;
}

/** `npx vitest run …`, `node setup.mjs vitest run …`: the tier, if it names one, and the files exist. */
function problemOfTestRun(args: readonly string[]): string | undefined {
  const [program, ...rest] = args[0] === 'setup.mjs' ? args.slice(1) : args;
  if (program !== 'vitest') {
    return `nobody knows ${program}`;
  }
  const at = rest.indexOf('--project');
  const project = rest[at + 1] ?? '';
  if (at >= 0 && !tiers.some(({ name }) => matchesGlob(name, project))) {
    return `there is no project ${project}`;
  }
  return missingFile(rest.filter((one) => one.includes('/')));
}

function problemOfHelm([verb = '', ...args]: readonly string[]): string | undefined {
  if (!['get', 'install', 'rollback', 'template', 'test', 'uninstall', 'upgrade'].includes(verb)) {
    return `helm ${verb} is not known here`;
  }
  const unknown = args.filter((one) => one.startsWith('-')).find((one) => !helmFlags.has(one.split('=')[0] ?? ''));
  if (unknown !== undefined) {
    return `helm ${verb} has no flag ${unknown} that this test knows`;
  }
  const chart = args.find((one) => one.startsWith('./charts/'));
  if (chart === undefined) {
    return undefined;
  }
  if (!existsSync(join(root, chart, 'Chart.yaml'))) {
    return `there is no chart ${chart}`;
  }
  const schema = JSON.parse(readFileSync(join(root, chart, 'values.schema.json'), 'utf8')) as Schema;
  const values = args.filter((_, index) => args[index - 1] === '--set').map((one) => one.split('=')[0] ?? '');
  const missing = values.find((path) => !hasValue(schema, path.split('.')));
  return missing === undefined ? undefined : `${chart} has no value ${missing}`;
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}

function hasValue(schema: Schema, [key = '', ...rest]: readonly string[]): boolean {
  const found = schema.properties?.[key];
  // Values of a chart inside the chart, and free maps, have a schema elsewhere.
  return found !== undefined && (rest.length === 0 || found.properties === undefined || hasValue(found, rest));
}

/** The verb, the kinds, the files, and labels and annotations of our own names. */
function problemOfKubectl(given: readonly string[]): string | undefined {
  const options = new Set(['--context', '--kubeconfig', '--namespace', '-n']);
  const args = given.filter((one, index) => !options.has(one) && !options.has(given[index - 1] ?? ''));
  const [verb = '', ...rest] = args;
  if (!kubectlVerbs.has(verb)) {
    return `kubectl ${verb} is not known here`;
  }
  const names = given.flatMap((one) => /^((?:[a-z-]+\.)+(?:io|dev)\/[a-z-]+)[=-]?/.exec(one)?.[1] ?? []);
  const own = names.map((name) => name.replace(/-$/, '')).filter((name) => !name.startsWith('app.kubernetes.io/'));
  const strange = own.find((name) => !(name in knownMetadata));
  if (strange !== undefined) {
    return `nobody knows the label or annotation ${strange}`;
  }
  const file = rest[rest.findIndex((one) => one === '-f' || one === '-k') + 1] ?? '';
  if (verb === 'apply' || rest[0] === '-f') {
    return file.includes('/') ? missingFile([file]) : undefined;
  }
  if (['config', 'logs', 'rollout'].includes(verb)) {
    return undefined;
  }
  const kind = (rest[0] ?? '').split('/')[0]?.split(',') ?? [];
  const unknown = kind.find((one) => !kinds.has(one));
  return unknown === undefined ? undefined : `this test does not know the kind "${unknown}"`;
}

/** The program that an image of ours is started with. */
function problemOfDocker(args: readonly string[]): string | undefined {
  if (args[0] === 'push') {
    return undefined;
  }
  const entry = executables.get(args[args.indexOf('--entrypoint') + 1] ?? '');
  const image = args.findIndex((one) => one.includes('/argocd-fleet:'));
  return entry === undefined || image === -1
    ? 'docker does not start a program of ours'
    : problemOfOwn(entry, args.slice(image + 1));
}

const missingFile = (paths: readonly string[]): string | undefined => {
  const missing = paths.find((path) => !existsSync(join(root, path)));
  return missing === undefined ? undefined : `${missing} does not exist`;
};
