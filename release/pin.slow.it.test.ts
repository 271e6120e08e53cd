import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { helm, kustomize, withoutHub } from '../e2e/hub/index.ts';
import { makeRelease } from './artifacts.ts';
import { chartFolders } from './version.ts';

// What users of a release install runs the image of that release, unless they say another one.

const root = join(import.meta.dirname, '..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
const repository = 'quay.io/open-cluster-management/argocd-fleet';
const released = `sha256:${'b'.repeat(64)}`;
const chosen = `sha256:${'c'.repeat(64)}`;
const charts = chartFolders(root).map((folder) => basename(folder));

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pinned-'));
  const image = { content: Buffer.from('archive'), digest: released };
  makeRelease({ root, version, output: folder, revision: 'a'.repeat(40), date: new Date(0), image });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The images of this project that a chart renders, without repetitions. */
async function imagesOf(chart: string, ...values: string[]): Promise<string[]> {
  const sets = values.flatMap((value) => ['--set-string', value]);
  const text = await helm(['template', 'edge', chart, ...withoutHub(chart), ...sets]);
  return [...new Set(text.match(/(?<=: ["']?)\S*\/argocd-fleet[@:][\w.:-]+/g) ?? [])];
}

describe.each(charts)('%s', (name) => {
  const tree = join(root, 'charts', name);
  const archive = () => join(folder, `${name}-${version}.tgz`);
  // As in the originals of the charts.
  const isNested = name.endsWith('-agent') || name.endsWith('-principal');
  const [place, tag, digest] = isNested
    ? ['image.repository', 'image.tag', 'image.digest']
    : ['image', 'tag', 'digest'];

  test('of the tree runs the image of its version, by its tag', async () => {
    expect(await imagesOf(tree)).toEqual([`${repository}:${version}`]);
    expect(await imagesOf(tree, `${tag}=v7`)).toEqual([`${repository}:v7`]);
  });

  test('of a release runs the image of the release, by its digest', async () => {
    expect(await imagesOf(archive())).toEqual([`${repository}@${released}`]);
  });

  test('takes a digest before everything else, and a tag before that of the release', async () => {
    for (const chart of [tree, archive()]) {
      expect(await imagesOf(chart, `${tag}=v7`, `${digest}=${chosen}`)).toEqual([`${repository}@${chosen}`]);
      expect(await imagesOf(chart, `${tag}=v7`)).toEqual([`${repository}:v7`]);
      await expect(imagesOf(chart, `${digest}=v7`)).rejects.toThrow(/digest/);
    }
  });

  test('of a release runs the same image from another registry', async () => {
    expect(await imagesOf(archive(), `${place}=registry.example.com/argocd-fleet`)).toEqual([
      `registry.example.com/argocd-fleet@${released}`,
    ]);
  });
});

test.each(['principal', 'agent'] as const)('the manifests of a release run its image: %s', async (program) => {
  execFileSync('tar', ['-xzf', `argocd-fleet-manifests-${version}.tar.gz`], { cwd: folder });
  const objects = await kustomize(join(folder, `argocd-fleet-${version}`, program));
  expect(JSON.stringify(objects)).toContain(`"image":"${repository}@${released}"`);
});
