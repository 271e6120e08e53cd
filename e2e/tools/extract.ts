import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { notWritable, ToolError } from './error.ts';

/**
 * Writes one file of a gzipped tar archive to a path, with the machine's `tar`.
 * @throws ToolError when the archive has no such member, there is no `tar`, or the path cannot be written
 */
export async function extractMember(
  archive: string,
  member: string,
  path: string,
  signal?: AbortSignal,
): Promise<void> {
  const tar = spawn('tar', ['-xzOf', archive, member], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(signal && { signal }),
  });
  const ended = Promise.withResolvers<number | null>();
  tar.once('error', ended.reject).once('close', ended.resolve);
  const complaints = tar.stderr.toArray();
  try {
    const [code] = await Promise.all([ended.promise, pipeline(tar.stdout, createWriteStream(path))]);
    if (code !== 0) {
      throw new Error(
        Buffer.concat(await complaints)
          .toString()
          .trim(),
      );
    }
  } catch (error) {
    signal?.throwIfAborted();
    if ((error as NodeJS.ErrnoException).syscall === 'write') {
      throw notWritable(path, error);
    }
    throw new ToolError('DownloadFailed', `${member} cannot be unpacked: ${(error as Error).message}`);
  }
}
