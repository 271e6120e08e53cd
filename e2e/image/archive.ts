import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { tarOf } from '../../lib/base/index.ts';
import { type BuildRequest, buildCommand, type Runner, runCommand } from './engine.ts';

/** The engines that can write an image into a folder without a registry. */
export const archivingEngines = ['buildah', 'podman'] as const;

/** What an archive of the image is made with. */
export interface ArchiveRequest extends Omit<BuildRequest, 'tag' | 'engine'> {
  engine: (typeof archivingEngines)[number];
  /** What the image is called in the archive. */
  name: string;
  platforms: readonly string[];
}

/** The image as one file, as `docker load`, `podman load` and `skopeo copy oci-archive:…` take it. */
export interface ImageArchive {
  /** A tar of the OCI image layout. The same commit, base and engine give the same bytes. */
  readonly content: Buffer;
  /** The digest under which a registry has the image. */
  readonly digest: string;
  /** The ID of the image for each architecture. */
  readonly ids: readonly string[];
}

const descriptors = z.array(z.object({ digest: z.string() }));
const index = z.object({ manifests: descriptors });
const manifest = z.object({ config: z.object({ digest: z.string() }) });

/** Builds the image for one or more architectures, and archives it. The engine keeps nothing of it. */
export async function archiveImage(request: ArchiveRequest, run: Runner = runCommand): Promise<ImageArchive> {
  const { engine, name, date } = request;
  const folder = await mkdtemp(join(tmpdir(), 'image-layout-'));
  const list = `localhost/archive-${randomUUID()}`;
  const blob = async (digest: string) => readFile(join(folder, 'blobs', digest.replace(':', '/')), 'utf8');
  const ids: string[] = [];
  try {
    const { command, args } = buildCommand({ ...request, tag: list });
    await run(command, args);
    await run(engine, ['manifest', 'push', '--all', list, `oci:${folder}:${name}`]);
    const { manifests } = index.parse(JSON.parse(await readFile(join(folder, 'index.json'), 'utf8')));
    const digest = manifests[0]?.digest ?? '';
    for (const one of index.parse(JSON.parse(await blob(digest))).manifests) {
      ids.push(manifest.parse(JSON.parse(await blob(one.digest))).config.digest.replace('sha256:', ''));
    }
    const paths = (await readdir(folder, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
      .sort();
    const files = await Promise.all(
      paths.map(async (path) => ({ path, content: await readFile(join(folder, path)), mode: 0o644 })),
    );
    return { content: tarOf(files, new Date(date)), digest, ids };
  } finally {
    await rm(folder, { recursive: true, force: true });
    await run(engine, ['manifest', 'rm', list]).catch(() => undefined);
    // The same image may have been built under a name: then it stays.
    const nameless = ['images', '--quiet', '--no-trunc', '--filter', 'dangling=true'];
    const left = ids.length === 0 ? '' : await run(engine, nameless).catch(() => '');
    for (const id of ids.filter((one) => left.includes(one))) {
      await run(engine, ['rmi', id]).catch(() => undefined);
    }
  }
}
