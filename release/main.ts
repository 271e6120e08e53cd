/* `npm run release`: the files of a release. */
import { execFileSync, spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { makeRelease } from './artifacts.ts';

const root = join(import.meta.dirname, '..');
const help = `Usage: npm run release -- --version X.Y.Z --output FOLDER [--image NAME]

Makes what is released from this tree: charts, manifests, CRD, argocd-agentctl as an npm package, bill of materials
(CycloneDX), licences, changes, checksums. The same commit gives the same bytes. The version must be that of the tree:
docs/development.md, "Release".

Options:
  --version X.Y.Z   the version to release
  --output FOLDER   where the files go
  --image NAME      builds the image, too, under this name (npm run image)
  --help            this text
`;

process.exitCode = main();

function main(): number {
  try {
    const { values } = parseArgs({
      options: {
        version: { type: 'string' },
        output: { type: 'string' },
        image: { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    const { version, output, image } = values;
    if (values.help) {
      process.stdout.write(help);
      return 0;
    }
    if (version === undefined || output === undefined) {
      throw new Error('--version and --output are needed');
    }
    const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
    const date = new Date(Number(git('log', '-1', '--format=%ct')) * 1_000);
    const names = makeRelease({ root, version, output: resolve(output), revision: git('rev-parse', 'HEAD'), date });
    process.stdout.write(`${names.map((name) => join(output, name)).join('\n')}\n`);
    if (image === undefined) {
      return 0;
    }
    return spawnSync('npm', ['run', 'image', '--', '--tag', image], { cwd: root, stdio: 'inherit' }).status ?? 1;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${help}`);
    return 2;
  }
}
