import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/** Where the version stands that is not the one to release, in words; empty when all is ready. */
function versionProblems(root: string, version: string): readonly string[] {
  const read = (path: string) => readFileSync(join(root, path), 'utf8');
  const found: [string, unknown][] = [
    ['package.json', JSON.parse(read('package.json')).version],
    ['package-lock.json', JSON.parse(read('package-lock.json')).version],
  ];
  for (const chart of chartFolders(root)) {
    const { version: own, appVersion } = parse(read(`${chart}/Chart.yaml`)) as {
      version: unknown;
      appVersion: unknown;
    };
    found.push([`${chart}/Chart.yaml: version`, own], [`${chart}/Chart.yaml: appVersion`, appVersion]);
  }
  for (const name of readdirSync(join(root, 'install/kubernetes')).sort()) {
    const path = `install/kubernetes/${name}/kustomization.yaml`;
    const { images = [] } = parse(read(path)) as { images?: { newTag?: unknown }[] };
    found.push(...images.map(({ newTag }): [string, unknown] => [`${path}: newTag`, newTag]));
  }
  const problems = found.filter(([, has]) => has !== version).map(([place, has]) => `${place} is ${String(has)}`);
  return changelogSection(read('CHANGELOG.md'), version) === undefined
    ? [...problems, `CHANGELOG.md has no section ${version}`]
    : problems;
}

/** @throws Error that names every place in the tree that has another version than the one to release */
export function requireVersion(root: string, version: string): void {
  const problems = versionProblems(root, version);
  if (problems.length > 0) {
    throw new Error(`the tree is not ${version}: ${problems.join('; ')}`);
  }
}

/** The charts that are released, as paths below the root. */
export function chartFolders(root: string): readonly string[] {
  return readdirSync(join(root, 'charts'))
    .sort()
    .map((name) => `charts/${name}`);
}

/** The part of the changelog about a version, without its heading; undefined when there is none. */
export function changelogSection(changelog: string, version: string): string | undefined {
  const [, ...sections] = changelog.split(/^## /m);
  const section = sections.find((one) => one.split(/[\s(]/, 1)[0] === version);
  return section?.slice(section.indexOf('\n') + 1).trim();
}
