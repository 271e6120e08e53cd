import { lchown, mkdir, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** One file of a volume. */
export interface VolumeFile {
  content: Uint8Array | string;
  /** Permission bits. */
  mode: number;
}

/**
 * Writes the files of a Secret, ConfigMap, downward API or projected volume the way a kubelet does: into a folder of
 * their own, reached through the `..data` symbolic link, which is switched in one rename. A reader sees either all old
 * or all new files, and programs that watch `..data` notice.
 */
export async function writeAtomically(
  folder: string,
  files: ReadonlyMap<string, VolumeFile>,
  group: number | undefined,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  const previous = await readlink(join(folder, '..data')).catch(() => undefined);
  const next = `..${new Date().toISOString().replace(/[-:T.Z]/g, '_')}${process.hrtime.bigint()}`;
  await mkdir(join(folder, next), { mode: 0o755 });
  for (const [path, file] of files) {
    const target = join(folder, next, path);
    await mkdir(dirname(target), { recursive: true, mode: 0o755 });
    await writeFile(target, file.content, { mode: group === undefined ? file.mode : file.mode | 0o440 });
    if (group !== undefined) {
      await lchown(target, process.getuid?.() ?? 0, group);
    }
  }
  await symlink(next, join(folder, '..data_tmp'));
  await rename(join(folder, '..data_tmp'), join(folder, '..data'));
  const tops = new Set([...files.keys()].map((path) => path.split('/')[0] ?? path));
  for (const top of tops) {
    const link = join(folder, top);
    const current = await readlink(link).catch(() => undefined);
    if (current === undefined) {
      await symlink(join('..data', top), link);
    }
  }
  if (previous === undefined) {
    return;
  }
  for (const name of await readdir(join(folder, previous))) {
    if (!tops.has(name)) {
      await rm(join(folder, name), { force: true });
    }
  }
  await rm(join(folder, previous), { recursive: true, force: true });
}
