import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checksumsFile, makeRelease } from './artifacts.ts';
import { licenceReport, usedPackages } from './sbom.ts';
import { changelogSection, chartFolders } from './version.ts';

const root = join(import.meta.dirname, '..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
const image = { content: Buffer.from('archive'), digest: `sha256:${'b'.repeat(64)}` };
const made = { root, version, revision: 'a'.repeat(40), date: new Date('2026-01-02T03:04:05Z') };

let folder: string;
let names: readonly string[];
const file = (name: string) => join(folder, 'one', name);
const text = (name: string) => readFileSync(file(name), 'utf8');
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'release-'));
  names = makeRelease({ ...made, output: join(folder, 'one') });
  makeRelease({ ...made, output: join(folder, 'with-image'), image });
  // Two bundles.
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('two runs give the same bytes', () => {
  const again = join(folder, 'again');
  const all = makeRelease({ ...made, output: again, image });
  expect(all.length).toBeGreaterThan(11);
  for (const name of all) {
    expect(readFileSync(join(folder, 'with-image', name)).equals(readFileSync(join(again, name))), name).toBe(true);
  }
});

test('the image, if there is one, is a file of the release, with its digest', () => {
  const read = (name: string) => readFileSync(join(folder, 'with-image', name), 'utf8');
  expect(read(`argocd-fleet-image-${version}.digest`)).toBe(`${image.digest}\n`);
  expect(read(checksumsFile)).toContain(`  argocd-fleet-image-${version}.tar\n`);
});

test('charts and manifests name the image by its digest, and differ from the tree in nothing else', () => {
  const packed = names.filter((name) => /^argocd-(?!agentctl|fleet-[^m]).*gz$/.test(name));
  expect(packed).toHaveLength(chartFolders(root).length + 1);
  for (const name of packed) {
    const [own, other] = ['of-tree', 'of-release'].map((place) => join(folder, place, name)) as [string, string];
    for (const [target, archive] of [
      [own, file(name)],
      [other, join(folder, 'with-image', name)],
    ] as const) {
      mkdirSync(target, { recursive: true });
      execFileSync('tar', ['-xzf', archive, '-C', target]);
    }
    const { stdout } = spawnSync('diff', ['--recursive', '--unified=0', own, other], { encoding: 'utf8' });
    const lines = stdout.split('\n').filter((line) => /^[+-](?![+-])/.test(line));
    const expected = name.includes('manifests')
      ? Array(2)
          .fill([`-    newTag: ${version}`, `+    digest: ${image.digest}`])
          .flat()
      : ['+annotations:', `+  argocd-fleet/image-digest: ${image.digest}`];
    expect(lines, name).toEqual(expected);
  }
});

test('the checksums are those of the files', () => {
  execFileSync('sha256sum', ['--check', '--quiet', checksumsFile], { cwd: join(folder, 'one') });
  expect(text(checksumsFile).trim().split('\n')).toHaveLength(names.length - 1);
});

test('a chart is an archive as Helm packs it, with everything', () => {
  const listed = execFileSync('tar', ['-tzf', file(`argocd-agent-addon-${version}.tgz`)], { encoding: 'utf8' });
  expect(listed.split('\n')).toEqual(
    expect.arrayContaining([
      'argocd-agent-addon/Chart.yaml',
      'argocd-agent-addon/crds/gitopsclusters.yaml',
      'argocd-agent-addon/charts/argocd-hub/templates/_helpers.tpl',
    ]),
  );
});

test('the tool runs from its package', () => {
  const target = join(folder, 'tool');
  mkdirSync(target);
  execFileSync('tar', ['-xzf', file(`argocd-agentctl-${version}.tgz`), '-C', target]);
  const tool = join(target, 'package/bin/argocd-agentctl.js');
  const said = JSON.parse(execFileSync(process.execPath, [tool, 'version'], { encoding: 'utf8' })) as object;
  expect(JSON.stringify(said)).toContain(version);
  expect(JSON.stringify(said)).toContain(made.revision.slice(0, 7));
  const { bin } = JSON.parse(readFileSync(join(target, 'package/package.json'), 'utf8')) as { bin: object };
  expect(Object.keys(bin)).toEqual(['argocd-agentctl', 'kubectl-argocd_fleet']);
});

test('the bill of materials has every package with licence and digest, and all that they use', () => {
  const document = JSON.parse(text(`argocd-fleet-${version}.cdx.json`)) as {
    bomFormat: string;
    components: {
      'bom-ref': string;
      name: string;
      version: string;
      licenses?: object[];
      hashes?: object[];
      purl: string;
    }[];
    dependencies: { ref: string; dependsOn: string[] }[];
  };
  expect(document.bomFormat).toBe('CycloneDX');
  const { components, dependencies } = document;
  expect(components.length).toBe(usedPackages(readFileSync(join(root, 'package-lock.json'), 'utf8')).length);
  expect(components.find(({ name }) => name === '@redis/client')?.purl).toMatch(/^pkg:npm\/%40redis\/client@\d/);
  expect(components.filter(({ licenses, hashes }) => !licenses || !hashes).map(({ name }) => name)).toEqual([]);
  expect(components.some(({ name }) => name === 'vitest')).toBe(false);
  const known = new Set([...components.map((one) => one['bom-ref']), dependencies[0]?.ref]);
  expect(dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn]).filter((ref) => !known.has(ref))).toEqual(
    [],
  );
  expect(text(`licences-${version}.md`)).toContain('| undici |');
});

test('a package with a licence that asks for more than its name is refused', () => {
  const one = { path: 'node_modules/a', name: 'a', version: '1.0.0', sha512: undefined, uses: [] };
  expect(licenceReport([{ ...one, license: '(MIT OR Apache-2.0)' }])).toContain('| a | 1.0.0 |');
  expect(() => licenceReport([{ ...one, license: 'GPL-3.0-only' }])).toThrow('a 1.0.0 has the licence GPL-3.0-only');
  expect(() => licenceReport([{ ...one, license: undefined }])).toThrow('a 1.0.0 has no licence');
});

test('a tree of another version is refused, with every place', () => {
  const attempt = () => makeRelease({ ...made, version: '9.9.9', output: join(folder, 'refused') });
  expect(attempt).toThrow(
    /the tree is not 9\.9\.9: package\.json is .*Chart\.yaml: appVersion is .*CHANGELOG\.md has no section 9\.9\.9/,
  );
});

test('the section of a version is found in the changelog', () => {
  const changelog = '# Changelog\n\n## 0.2.0 (unreleased)\n\nnew\n\n### Added\n\n- x\n\n## 0.1.0 (2026-01-02)\n\nold\n';
  expect(changelogSection(changelog, '0.2.0')).toBe('new\n\n### Added\n\n- x');
  expect(changelogSection(changelog, '0.1.0')).toBe('old');
  expect(changelogSection(changelog, '0.1')).toBeUndefined();
});
