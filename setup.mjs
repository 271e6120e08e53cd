/*
 * Starts a program of this repository: node setup.mjs PROGRAM.ts|COMMAND [ARGUMENTS]
 *
 * PROGRAM.ts is a file, COMMAND one of a package (vitest, tsc). Both run with the Node.js of node_modules, which runs
 * TypeScript. In a fresh clone, and when package-lock.json has changed, the packages are installed first. This file
 * itself is plain JavaScript for any Node.js from version 20.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync, realpathSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('.', import.meta.url));
const modules = join(root, 'node_modules');
const node = join(modules, 'node/bin/node');
const oldestNode = 20;
const oldestNpm = 9;

const [program, ...args] = process.argv.slice(2);
if (program === undefined) {
  refuse('Usage: node setup.mjs PROGRAM.ts|COMMAND [ARGUMENTS]');
}
if (Number.parseInt(process.versions.node, 10) < oldestNode) {
  refuse(`Node.js ${oldestNode} or later is needed to install the packages; this is ${process.version}.`);
}
if (!isInstalled()) {
  install();
}
const named = program.endsWith('.ts') ? resolve(program) : join(modules, '.bin', program);
if (!existsSync(named)) {
  refuse(`There is no ${named}.`);
}
const file = program.endsWith('.ts') ? named : realpathSync(named);
if (realpathSync(process.execPath) === realpathSync(node)) {
  process.argv.splice(1, 2, file);
  await import(pathToFileURL(file).href);
} else {
  run([file, ...args]);
}

/** Whether every package of package-lock.json is there in its version. Optional ones are those of other platforms. */
function isInstalled() {
  if (!existsSync(node) || !existsSync(join(modules, '.package-lock.json'))) {
    return false;
  }
  // A link leads to the packages of another working tree, which installs its own.
  if (lstatSync(modules).isSymbolicLink()) {
    return true;
  }
  const { packages: locked } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const { packages: installed } = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8'));
  return Object.entries(locked).every(
    ([path, { version, optional }]) => path === '' || optional || installed[path]?.version === version,
  );
}

function install() {
  // npm names itself to the scripts that it runs.
  const { npm_execpath: cli, npm_config_user_agent: agent = '' } = process.env;
  const [command, ...first] = cli?.endsWith('.js') ? [process.execPath, cli] : ['npm'];
  const version =
    /npm\/(\S+)/.exec(agent)?.[1] ??
    spawnSync(command, [...first, '--version'])
      .stdout?.toString()
      .trim();
  if (!version) {
    refuse('npm is needed to install the packages, and there is no `npm` on the PATH.');
  }
  if (Number.parseInt(version, 10) < oldestNpm) {
    refuse(`npm ${oldestNpm} or later is needed to install the packages; this is ${version}.`);
  }
  process.stderr.write('Installing the packages of package-lock.json (npm ci), less than a minute …\n');
  const options = ['--include=dev', '--no-audit', '--no-fund', '--loglevel=error'];
  const { status } = spawnSync(command, [...first, 'ci', ...options], { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) {
    refuse('The packages could not be installed: `npm ci` failed.');
  }
}

/** Runs Node.js of node_modules and ends as it does. */
function run(nodeArgs) {
  const env = { ...process.env, PATH: `${join(modules, '.bin')}${delimiter}${process.env.PATH ?? ''}` };
  const child = spawn(node, nodeArgs, { stdio: 'inherit', env });
  // Ctrl-C reaches the child by itself; what is sent to this process alone is passed on.
  process.on('SIGINT', () => undefined);
  for (const signal of ['SIGTERM', 'SIGHUP']) {
    process.on(signal, () => child.kill(signal));
  }
  child.on('exit', (code, signal) => {
    process.removeAllListeners();
    if (signal === null) {
      process.exitCode = code;
    } else {
      process.kill(process.pid, signal);
    }
  });
}

function refuse(reason) {
  process.stderr.write(`${reason}\n`);
  process.exit(1);
}
