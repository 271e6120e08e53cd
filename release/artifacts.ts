import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type ArchivedFile, tarOf } from '../lib/base/index.ts';
import { pinChart, pinKustomizations } from './pin.ts';
import { billOfMaterials, licenceReport, usedPackages } from './sbom.ts';
import { changelogSection, chartFolders, requireVersion } from './version.ts';

/** What is released, and from where. */
export interface ReleaseOptions {
  readonly root: string;
  readonly version: string;
  /** The folder for the files; made if it is missing. What it holds stays. */
  readonly output: string;
  /** The commit, and when it was made: nothing else in the files tells one build from another. */
  readonly revision: string;
  readonly date: Date;
  /** The image, archived. */
  readonly image?: { readonly content: Uint8Array; readonly digest: string } | undefined;
}

/** The name of the file with the SHA-256 of all others. */
export const checksumsFile = 'checksums.txt';

/**
 * Makes the files of a release: charts, manifests, CRD, the tool as an npm package, the image if there is one, bill of
 * materials, licences, changes and checksums. With an image, charts and manifests run it by its digest. The same tree gives
 * the same bytes.
 * @returns the names of the files
 * @throws Error when a version in the tree is another one
 */
export function makeRelease(options: ReleaseOptions): readonly string[] {
  const { root, version, output, image } = options;
  requireVersion(root, version);
  const read = (path: string) => readFileSync(join(root, path), 'utf8');
  const packages = usedPackages(read('package-lock.json'));
  const files = new Map<string, string | Uint8Array>();
  for (const chart of chartFolders(root)) {
    const name = basename(chart);
    const all = filesBelow(join(root, chart), name);
    files.set(`${name}-${version}.tgz`, archive(image ? pinChart(all, image.digest) : all, options));
  }
  const manifests = filesBelow(join(root, 'install/kubernetes'), `argocd-fleet-${version}`);
  const pinned = image ? pinKustomizations(manifests, image.digest) : manifests;
  files.set(`argocd-fleet-manifests-${version}.tar.gz`, archive(pinned, options));
  files.set(`gitopsclusters-${version}.yaml`, read('charts/argocd-agent-addon/crds/gitopsclusters.yaml'));
  files.set(`argocd-agentctl-${version}.tgz`, archive(toolPackage(options), options));
  const product = { name: 'argocd-fleet', version, date: options.date };
  files.set(`argocd-fleet-${version}.cdx.json`, billOfMaterials(packages, product));
  files.set(`licences-${version}.md`, licenceReport(packages));
  files.set(`changes-${version}.md`, `${changelogSection(read('CHANGELOG.md'), version)}\n`);
  if (image !== undefined) {
    files.set(`argocd-fleet-image-${version}.tar`, image.content);
    files.set(`argocd-fleet-image-${version}.digest`, `${image.digest}\n`);
  }
  const names = [...files.keys()].sort();
  files.set(
    checksumsFile,
    names
      .map(
        (name) =>
          `${createHash('sha256')
            .update(files.get(name) ?? '')
            .digest('hex')}  ${name}\n`,
      )
      .join(''),
  );
  mkdirSync(output, { recursive: true });
  for (const [name, content] of files) {
    writeFileSync(join(output, name), content);
  }
  return [...names, checksumsFile];
}

function archive(files: readonly ArchivedFile[], { date }: Pick<ReleaseOptions, 'date'>): Uint8Array {
  return gzipSync(tarOf(files, date), { level: 9 });
}

/** All files below a folder, in order, under another name; a file that may be run stays so. */
function filesBelow(folder: string, name: string): ArchivedFile[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => ({
      path: `${name}/${relative(folder, path)}`,
      content: readFileSync(path),
      mode: (statSync(path).mode & 0o100) === 0 ? 0o644 : 0o755,
    }));
}

/** `argocd-agentctl` as an npm package: the bundle, so that installing it fetches nothing. */
function toolPackage({ root, version, revision, date }: ReleaseOptions): ArchivedFile[] {
  const dist = mkdtempSync(join(tmpdir(), 'argocd-fleet-release-'));
  try {
    const env = { ...process.env, GIT_REVISION: revision, BUILD_DATE: date.toISOString() };
    execFileSync(process.execPath, [join(root, 'build.ts'), dist], {
      cwd: root,
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const all = new Map(filesBelow(dist, 'package').map((file) => [file.path, file]));
    const needed = new Set(['package/LICENSE', 'package/THIRD-PARTY-NOTICES']);
    addImports('package/bin/argocd-agentctl.js', all, needed);
    const built = JSON.parse(readFileSync(join(dist, 'package.json'), 'utf8')) as object;
    const manifest = {
      ...built,
      name: 'argocd-agentctl',
      version,
      description: 'Configures, watches and mends principals and agents of argocd-agent',
      bin: { 'argocd-agentctl': 'bin/argocd-agentctl.js', 'kubectl-argocd_fleet': 'bin/argocd-agentctl.js' },
      engines: { node: '>=24' },
    };
    const content = `${JSON.stringify(manifest, undefined, 2)}\n`;
    return [
      { path: 'package/package.json', content, mode: 0o644 },
      ...[...all.values()].filter(({ path }) => needed.has(path)),
    ];
  } finally {
    rmSync(dist, { recursive: true, force: true });
  }
}

/** Adds a file of the bundle and all that it loads. */
function addImports(path: string, all: ReadonlyMap<string, ArchivedFile>, found: Set<string>): void {
  const file = all.get(path);
  if (file === undefined || found.has(path)) {
    return;
  }
  found.add(path);
  for (const [, target = ''] of file.content.toString().matchAll(/["'](\.{1,2}\/[\w./-]+\.js)["']/g)) {
    addImports(join(path, '..', target), all, found);
  }
}
