import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** What a file takes, or all files of a folder, in bytes. What another process removes meanwhile takes nothing. */
export async function sizeOf(path: string): Promise<number> {
  const entry = await lstat(path).catch(() => undefined);
  if (!entry?.isDirectory()) {
    return entry?.size ?? 0;
  }
  const names = await readdir(path).catch((): string[] => []);
  const sizes = await Promise.all(names.map((name) => sizeOf(join(path, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}
