/* `npm run image`: builds the image from the Dockerfile with whatever engine there is. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { useBase } from './base.ts';
import { withEngineFlags } from './command-line.ts';
import { headCommit } from './commit.ts';
import { buildCommand, type EngineName, engineNames, findEngine, NoEngineError } from './engine.ts';

const project = new URL('../..', import.meta.url).pathname;
const { version } = JSON.parse(readFileSync(`${project}/package.json`, 'utf8')) as { version: string };
const usual = `quay.io/open-cluster-management/argocd-fleet:${version}`;

const help = `Usage: npm run image [-- OPTIONS [-- FLAGS]]

Builds the image of controller, principal and agent from the Dockerfile, with docker, podman or buildah: the first that
works. It is the image that the charts name; push it where your clusters find it, or load it into them. FLAGS are for the
engine.

Options:
  --tag NAME      name of the image (${usual})
  --engine NAME   docker, podman or buildah
  --base NAME     an image with Node.js 24 and npm to take Node.js from, instead of the Dockerfile's; local: one that is
                  made of what this machine has, without a registry, by podman
  --npmrc FILE    an npm configuration for the build, for packages from a registry of your own
  --help          this text
`;

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    const { own, flags } = withEngineFlags(process.argv.slice(2));
    const { values } = parseArgs({
      args: own,
      options: {
        tag: { type: 'string', default: usual },
        engine: { type: 'string' },
        base: { type: 'string' },
        npmrc: { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (values.help) {
      process.stdout.write(help);
      return 0;
    }
    if (values.engine !== undefined && !isEngine(values.engine)) {
      return refuse(`--engine: no ${values.engine}`);
    }
    const engine = await findEngine(values.engine === undefined ? engineNames : [values.engine]);
    const { revision, date } = headCommit(project);
    const { command, args } = buildCommand({
      engine,
      tag: values.tag,
      revision,
      date: date.toISOString(),
      base: useBase(values.base),
      npmrc: values.npmrc,
      flags,
    });
    process.stdout.write(`${command} ${args.join(' ')}\n`);
    const [code] = await once(spawn(command, args, { cwd: project, stdio: 'inherit' }), 'exit');
    return code ?? 1;
  } catch (error) {
    if (error instanceof NoEngineError) {
      process.stderr.write(`${error.message}\n`);
      return 1;
    }
    return refuse((error as Error).message);
  }
}

function isEngine(name: string): name is EngineName {
  return (engineNames as readonly string[]).includes(name);
}

function refuse(reason: string): number {
  process.stderr.write(`${reason}\n\n${help}`);
  return 2;
}
