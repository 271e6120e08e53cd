/* `npm run release`: the files of a release. */
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import {
  archiveImage,
  archivingEngines,
  findEngine,
  headCommit,
  type ImageArchive,
  NoEngineError,
  useBase,
  withEngineFlags,
} from '../e2e/image/index.ts';
import { makeRelease } from './artifacts.ts';
import { auditPackages } from './audit.ts';
import { requireVersion } from './version.ts';

const root = join(import.meta.dirname, '..');
const usual = { arm64: 'linux/arm64', ppc64: 'linux/ppc64le', s390x: 'linux/s390x' } as Record<string, string>;
const help = `Usage: npm run release -- --version X.Y.Z --output FOLDER [OPTIONS] [-- FLAGS]

Makes what is released from this tree: charts, manifests, CRD, argocd-agentctl as an npm package, bill of materials
(CycloneDX), licences, changes, checksums. The same commit gives the same bytes. The version must be that of the tree:
docs/development.md, "Release". A package with a known vulnerability of severity high or critical (npm audit) is refused, too.

Options:
  --version X.Y.Z    the version to release
  --output FOLDER    where the files go
  --image NAME       makes the image, too, under this name: an OCI archive and its digest, by which charts and manifests then
                     name the image. Needs buildah or podman, to which FLAGS are given
  --platforms LIST   the architectures of the image, for instance linux/amd64,linux/arm64; nothing of them is run. This
                     machine's unless set
  --base NAME        see npm run image
  --npmrc FILE       see npm run image
  --audited          refuses to go on if the registry does not answer npm audit; without it this is only said
  --help             this text
`;

/** The tree cannot be released; the message says why. */
class ReleaseError extends Error {
  override readonly name = 'ReleaseError';
}

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    const { own, flags } = withEngineFlags(process.argv.slice(2));
    const { values } = parseArgs({
      args: own,
      options: {
        version: { type: 'string' },
        output: { type: 'string' },
        image: { type: 'string' },
        platforms: { type: 'string', default: usual[process.arch] ?? 'linux/amd64' },
        base: { type: 'string' },
        npmrc: { type: 'string' },
        audited: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    const { version, output } = values;
    if (values.help) {
      process.stdout.write(help);
      return 0;
    }
    if (version === undefined || output === undefined) {
      throw new Error('--version and --output are needed');
    }
    requireVersion(root, version);
    requireAudit(values.audited);
    const { revision, date } = headCommit(root);
    let image: ImageArchive | undefined;
    if (values.image !== undefined) {
      image = await archiveImage({
        engine: await findEngine(archivingEngines),
        name: values.image,
        platforms: values.platforms.split(','),
        revision,
        date: date.toISOString(),
        base: useBase(values.base),
        npmrc: values.npmrc,
        flags,
        folder: root,
      });
    }
    const names = makeRelease({ root, version, output: resolve(output), revision, date, image });
    process.stdout.write(`${names.map((name) => join(output, name)).join('\n')}\n`);
    return 0;
  } catch (error) {
    const isExplained = error instanceof NoEngineError || error instanceof ReleaseError;
    process.stderr.write(`${(error as Error).message}\n${isExplained ? '' : `\n${help}`}`);
    return isExplained ? 1 : 2;
  }
}

/** @throws Error when a package is vulnerable, or nobody knows and it must be known */
function requireAudit(must: boolean): void {
  const audit = auditPackages(root);
  if (audit.result === 'vulnerable') {
    throw new ReleaseError(`packages with known vulnerabilities:\n  ${audit.packages.join('\n  ')}`);
  }
  if (audit.result === 'unknown') {
    const message = `npm audit could not be asked: ${audit.reason}`;
    if (must) {
      throw new ReleaseError(message);
    }
    process.stderr.write(`${message}\n`);
  }
}
